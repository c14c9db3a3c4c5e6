import type { listAgents } from '../../../../api/agents.ts';
import { AGENT_COLUMNS } from '../../../agents.ts';
import { BOT_ARGUMENT } from '../../../bots.ts';
import { showItems } from '../../../show-items.ts';
import { defineServerVerb } from '../../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'list the agents of a research bot, with their last reports',
  description:
    'Lists the schedule of each agent, the account it runs as, and the beginning of its last report. `bots events BOT --kind agent.reported` prints whole reports.',
  arguments: { bot: BOT_ARGUMENT },
  examples: ['bots agents list sma-research'],
  async run(server, { bot: bot_ref }) {
    const { items: agents } = await server.call<typeof listAgents>(
      'get',
      '/bots/{bot_ref}/agents',
      { params: { bot_ref } },
    );
    return { data: { agents }, show: (out) => showItems(out, agents, AGENT_COLUMNS) };
  },
});
