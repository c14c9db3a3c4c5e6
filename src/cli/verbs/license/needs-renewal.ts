import { viewLicense } from '../../license.ts';
import { defineVerb } from '../../verb.ts';

const DUE = 0;
const NOT_DUE = 1;
const NO_LEASE = 2;

export const verb = defineVerb({
  summary: 'check in a script whether the lease is due for renewal',
  description:
    'For scripts. Exits with 0 if the lease is due for renewal or has ended, with 1 if it is not due yet, and with 2 if no lease verifies. Needs no network.',
  examples: [
    'license needs-renewal && service-local license renew',
    'license needs-renewal --json | jq .due_at',
  ],
  async run(context) {
    const { held, license } = await viewLicense(context, Date.now());
    if (held === undefined) {
      const { reason, detail } = license.refused[0]!;
      return {
        data: { due: null, due_at: null, reason },
        exitCode: NO_LEASE,
        show: (out) => out.line(`There is no lease to renew: ${detail}`),
      };
    }
    const { isDue: due, due_at, status } = held;
    return {
      data: { due, due_at, reason: status.reason },
      exitCode: due ? DUE : NOT_DUE,
      show: (out) =>
        out.line(
          due
            ? `Due: the renewal was due at ${due_at}.`
            : `Not due: the renewal is due at ${due_at}.`,
        ),
    };
  },
});
