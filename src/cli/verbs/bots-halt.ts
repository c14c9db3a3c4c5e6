import type { haltBot } from '../../api/halts.ts';
import { BOT_ARGUMENT } from '../bots.ts';
import { connect } from '../connect.ts';
import { haltAnswer, REASON_OPTION, requestHalt } from '../halts.ts';
import { defineVerb } from '../verb.ts';

export const verb = defineVerb({
  description:
    'Cancels its working orders, ends its paper sessions, whether they answer or not, and keeps it from starting any until `bots resume`. In production its runner cancels them at the venue, before its pod goes. Then reads back what became of each deployment and each order: it ends with 7 where that is not all as it should be, and where the server cannot be reached or its database does not answer; then it says whether the halt is in force. Halting again is harmless, and verifies again. A token with the scope halt is enough.',
  arguments: { bot: BOT_ARGUMENT },
  options: { reason: REASON_OPTION },
  settings: ['server_url'],
  examples: [
    'bots halt sma-crossover --reason "it buys too much"',
    'bots halt sma-crossover --reason "it buys too much" --json | jq .verified',
  ],
  async run(context, { bot: bot_ref }, { reason }) {
    const server = await connect(context);
    const request = { params: { bot_ref }, body: { reason } };
    const report = await requestHalt(() =>
      server.call<typeof haltBot>('post', '/bots/{bot_ref}/halt', request),
    );
    return haltAnswer(report);
  },
});
