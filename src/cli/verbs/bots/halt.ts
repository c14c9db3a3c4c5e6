import type { haltBot } from '../../../api/halts.ts';
import { BOT_ARGUMENT } from '../../bots.ts';
import { haltAnswer, REASON_OPTION, requestHalt } from '../../halts.ts';
import { defineServerVerb } from '../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'stop all trading of a bot and verify that it has ended',
  description:
    'Cancels the working orders of the bot, ends its paper sessions, whether they respond or not, and prevents new ones until `bots resume`. In production, the runner cancels the orders at the venue before its pod is removed. Then it reads back the state of each deployment and each order; a paper session is a deployment with the target paper. The exit code is 7 if any of them is not verified, or if the server or its database does not answer; a failure states whether the halt is in force. Halting again is harmless, and verifies again. A token with the scope halt is enough.',
  arguments: { bot: BOT_ARGUMENT },
  options: { reason: REASON_OPTION },
  examples: [
    'bots halt sma-crossover --reason "it buys too much"',
    'bots halt sma-crossover --reason "it buys too much" --json | jq .verified',
  ],
  async run(server, { bot: bot_ref }, { reason }) {
    const request = { params: { bot_ref }, body: { reason } };
    const report = await requestHalt(() =>
      server.call<typeof haltBot>('post', '/bots/{bot_ref}/halt', request),
    );
    return haltAnswer(report);
  },
});
