import type { resumeBot } from '../../../api/halts.ts';
import { BOT_ARGUMENT } from '../../bots.ts';
import { connect } from '../../connect.ts';
import { REASON_OPTION } from '../../halts.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'let a bot that is halted be started again',
  description:
    'Lifts its halt. It starts nothing by itself: what was halted has ended, and is started anew; where it has not, the halt is to be asked for again first. While all bots are halted, none is resumed.',
  arguments: { bot: BOT_ARGUMENT },
  options: { reason: REASON_OPTION },
  settings: ['server_url'],
  examples: ['bots resume sma-crossover --reason "the size was mended in version 3"'],
  async run(context, { bot: bot_ref }, { reason }) {
    const server = await connect(context);
    const halt = await server.call<typeof resumeBot>('post', '/bots/{bot_ref}/resume', {
      params: { bot_ref },
      body: { reason },
    });
    return { data: halt, show: (out) => out.line(`${bot_ref} may be started again.`) };
  },
});
