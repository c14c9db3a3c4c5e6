import type { listAgents } from '../../../../api/agents.ts';
import { AGENT_COLUMNS } from '../../../agents.ts';
import { BOT_ARGUMENT } from '../../../bots.ts';
import { connect } from '../../../connect.ts';
import { showItems } from '../../../show-items.ts';
import { defineVerb } from '../../../verb.ts';

export const verb = defineVerb({
  summary: 'list the agents of a research bot, with their last reports',
  description:
    'When each is asked by itself, as whom, and how its last report began, all of which is in the event: bots events BOT --kind agent.reported.',
  arguments: { bot: BOT_ARGUMENT },
  settings: ['server_url'],
  examples: ['bots agents list sma-research'],
  async run(context, { bot: bot_ref }) {
    const server = await connect(context);
    const { items: agents } = await server.call<typeof listAgents>(
      'get',
      '/bots/{bot_ref}/agents',
      { params: { bot_ref } },
    );
    return { data: { agents }, show: (out) => showItems(out, agents, AGENT_COLUMNS) };
  },
});
