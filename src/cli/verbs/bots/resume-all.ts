import type { resumeAllBots } from '../../../api/halts.ts';
import { REASON_OPTION } from '../../halts.ts';
import { defineServerVerb } from '../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'lift the halt of all bots, so that they can be started again',
  description:
    'Lifts the halt of `bots halt-all`. Starts nothing. A bot with a halt of its own stays halted.',
  options: { reason: REASON_OPTION },
  examples: ['bots resume-all --reason "the feed is correct again"'],
  async run(server, _args, { reason }) {
    const body = { reason };
    const halt = await server.call<typeof resumeAllBots>('post', '/bots/resume-all', { body });
    return { data: halt, show: (out) => out.line('Bots can be started again.') };
  },
});
