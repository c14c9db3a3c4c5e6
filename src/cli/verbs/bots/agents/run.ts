import type { runAgent } from '../../../../api/agents.ts';
import { printable, printableLine } from '../../../../base/printable.ts';
import { ROLE_ARGUMENT } from '../../../agents.ts';
import { BOT_ARGUMENT } from '../../../bots.ts';
import { requireAnswer } from '../../../chat-turn.ts';
import { defineServerVerb } from '../../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'run an agent now, with the question of its schedule',
  description:
    'Runs the agent with your scopes, whether or not its schedule is on. The answer is also recorded as an event of the bot.',
  arguments: { bot: BOT_ARGUMENT, role: ROLE_ARGUMENT },
  examples: ['bots agents run sma-research watcher'],
  async run(server, { bot: bot_ref, role }) {
    const path = '/bots/{bot_ref}/agents/{role}/run';
    const turn = await server.call<typeof runAgent>('post', path, { params: { bot_ref, role } });
    const data = requireAnswer(turn);
    return {
      data,
      show(out) {
        const { answer, citations, status } = data;
        if (answer !== '') out.line(printable(answer));
        for (const { source } of citations) out.line(out.style.dim(printableLine(`  ${source}`)));
        if (status === 'running')
          out.line('The agent is still answering; see `service-local bots agents list`.');
      },
    };
  },
});
