import type { resumeAllBots } from '../../../api/halts.ts';
import { connect } from '../../connect.ts';
import { REASON_OPTION } from '../../halts.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'let bots be started again after halt-all',
  description:
    'Lifts the halt of all bots. It starts nothing by itself, and bots that are halted by themselves stay so.',
  options: { reason: REASON_OPTION },
  settings: ['server_url'],
  examples: ['bots resume-all --reason "the feed is right again"'],
  async run(context, _args, { reason }) {
    const server = await connect(context);
    const body = { reason };
    const halt = await server.call<typeof resumeAllBots>('post', '/bots/resume-all', { body });
    return { data: halt, show: (out) => out.line('Bots may be started again.') };
  },
});
