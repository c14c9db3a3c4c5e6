import type { haltAllBots } from '../../../api/halts.ts';
import { haltAnswer, REASON_OPTION, requestHalt } from '../../halts.ts';
import { defineServerVerb } from '../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'stop all trading of all bots and verify that it has ended',
  description:
    'The kill switch: halts all bots as `bots halt` halts one, without confirmation. No bot starts until `bots resume-all`. The exit code is 7 if not everything could be verified, or if the halt failed; a failure states whether the halt is in force.',
  options: { reason: REASON_OPTION },
  examples: ['bots halt-all --reason "the feed is wrong"'],
  async run(server, _args, { reason }) {
    const body = { reason };
    const report = await requestHalt(() =>
      server.call<typeof haltAllBots>('post', '/bots/halt-all', { body }),
    );
    return haltAnswer(report);
  },
});
