import type { resumeBot } from '../../../api/halts.ts';
import { BOT_ARGUMENT } from '../../bots.ts';
import { REASON_OPTION } from '../../halts.ts';
import { defineServerVerb } from '../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'lift the halt of a bot, so that it can be started again',
  description:
    'Lifts the halt of the bot. Starts nothing: halted sessions and deployments have ended and must be started again. If one of them has not ended yet, repeat the halt first. Fails while all bots are halted.',
  arguments: { bot: BOT_ARGUMENT },
  options: { reason: REASON_OPTION },
  examples: ['bots resume sma-crossover --reason "the size was fixed in version 3"'],
  async run(server, { bot: bot_ref }, { reason }) {
    const halt = await server.call<typeof resumeBot>('post', '/bots/{bot_ref}/resume', {
      params: { bot_ref },
      body: { reason },
    });
    return { data: halt, show: (out) => out.line(`${bot_ref} can be started again.`) };
  },
});
