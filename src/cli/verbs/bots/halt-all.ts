import type { haltAllBots } from '../../../api/halts.ts';
import { connect } from '../../connect.ts';
import { haltAnswer, REASON_OPTION, requestHalt } from '../../halts.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'stop all trading of all bots and verify that it has ended',
  description:
    'The kill switch: halts all bots as `bots halt` halts one, without confirmation. No bot starts until `bots resume-all`. The exit code is 7 if not everything could be verified, or if the halt failed; a failure states whether the halt is in force.',
  options: { reason: REASON_OPTION },
  settings: ['server_url'],
  examples: ['bots halt-all --reason "the feed is wrong"'],
  async run(context, _args, { reason }) {
    const server = await connect(context);
    const body = { reason };
    const report = await requestHalt(() =>
      server.call<typeof haltAllBots>('post', '/bots/halt-all', { body }),
    );
    return haltAnswer(report);
  },
});
