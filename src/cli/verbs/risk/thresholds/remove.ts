import type { setThreshold } from '../../../../api/risk.ts';
import { connect } from '../../../connect.ts';
import { resolveSubject, SUBJECT_OPTIONS } from '../../../risk.ts';
import { defineVerb } from '../../../verb.ts';

export const verb = defineVerb({
  summary: 'remove a threshold',
  description: 'The history keeps the threshold, the reason for its removal and who removed it.',
  options: SUBJECT_OPTIONS,
  settings: ['server_url'],
  examples: [
    'risk thresholds remove --level desk --subject index --currency USD --rationale "the desk is closed"',
  ],
  async run(context, _args, { level, subject: given, currency, rationale }) {
    const subject = resolveSubject(level, given);
    const server = await connect(context);
    const data = await server.call<typeof setThreshold>('put', '/risk/thresholds', {
      body: { level, subject, currency, limits: null, rationale },
    });
    return {
      data,
      show: (out) => out.line(`Removed the threshold of ${level} ${subject} in ${currency}.`),
    };
  },
});
