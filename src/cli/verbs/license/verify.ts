import { ServiceError } from '../../../base/errors.ts';
import { readImport, showClaims, viewLicense } from '../../license.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'verify a lease, and show its state and contents',
  description:
    'Verifies that a key of this machine, or of the given keyset, signed the lease, and shows its state and contents. Keys in the file itself prove nothing. Needs no network. Exits with 0 while the lease is valid, with 3 if it does not verify, and with 4 if it is genuine but has ended.',
  arguments: { file: { description: 'lease, or lease with keyset', complete: 'file' } },
  options: {
    keyset: {
      value: 'file',
      description: 'keys to verify it with (default: the keys of this machine)',
      complete: 'file',
    },
  },
  examples: [
    'license verify license_lease.json',
    'license verify lease.json --keyset license-keys.json --json | jq .state',
  ],
  async run(context, { file }, { keyset }) {
    const { verifyImport } = await import('../../../../daemon/offline.ts');
    const { statusOf } = await import('../../../gate/license.ts');
    const now = Date.now();
    const { files, license } = await viewLicense(context, now);
    const { lease, named } = await readImport(context.cwd, file, keyset);
    const { claims, by } = verifyImport({ lease, named }, license, {
      pin: files.pin,
      now,
    });
    const { state, reason } = statusOf({ claims }, now, license.running);
    const { public_key_id: key } = claims;
    const whose = by === 'named' ? keyset! : 'this machine';
    const until = claims.grace_ends_at;
    return {
      data: { state, reason, verified_by: by, public_key_id: key, claims },
      failure:
        state === 'expired'
          ? new ServiceError('license_invalid', `the lease is genuine, but ended at ${until}`, {
              reason: 'expired',
              remedy: 'Ask its issuer for a new lease.',
            })
          : undefined,
      show(out) {
        out.line(`The lease is genuine: the key ${key} of ${whose} signed it.`);
        if (state !== 'expired') out.line(`It works until ${until}.`);
        showClaims(out, claims);
      },
    };
  },
});
