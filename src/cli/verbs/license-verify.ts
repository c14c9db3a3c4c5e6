import { ServiceError } from '../../errors.ts';
import { readBrought, showClaims, viewLicense } from '../license.ts';
import { defineVerb } from '../verb.ts';

export const verb = defineVerb({
  description:
    'Says whether a lease is signed by a key of the keyset, and what it is worth now. Needs no network. Exits with 0 while it works, with 3 when it is refused, and with 4 when it is genuine and has ended.',
  arguments: { file: { description: 'lease, or lease with keyset', complete: 'file' } },
  options: {
    keyset: {
      value: 'file',
      description: 'keys that verify it (default: those in the file, else those of this machine)',
      complete: 'file',
    },
  },
  examples: [
    'license verify license_lease.json',
    'license verify lease.json --keyset license-keys.json --json | jq .state',
  ],
  async run(context, { file }, { keyset }) {
    const { verifyBrought } = await import('../../../daemon/offline.ts');
    const { leaseStatus } = await import('../../lease/status.ts');
    const { knownTime } = await import('../../lease/known-time.ts');
    const now = Date.now();
    const { license } = await viewLicense(context, now);
    const brought = await readBrought(context.cwd, file, keyset);
    const { claims } = verifyBrought(brought, license.keyset);
    const { state, reason } = leaseStatus(claims, now, knownTime(claims, license.running));
    const until = claims.grace_ends_at;
    return {
      data: { state, reason, claims },
      failure:
        state === 'expired'
          ? new ServiceError('license_invalid', `the lease is genuine, and ended on ${until}`, {
              reason: 'expired',
              remedy: 'Ask whoever issued it for a new one.',
            })
          : undefined,
      show(out) {
        if (state !== 'expired') out.line(`The lease is genuine, and works until ${until}.`);
        showClaims(out, claims);
      },
    };
  },
});
