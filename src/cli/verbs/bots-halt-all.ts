import type { haltAllBots } from '../../api/halts.ts';
import { connect } from '../connect.ts';
import { haltAnswer, REASON_OPTION, requestHalt } from '../halts.ts';
import { defineVerb } from '../verb.ts';

export const verb = defineVerb({
  description:
    'The kill switch: does to all bots what `bots halt` does to one, and asks nothing before. None starts until `bots resume-all`. It ends with 7 where not all could be verified, and where the halt failed; then it says whether it is in force.',
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
