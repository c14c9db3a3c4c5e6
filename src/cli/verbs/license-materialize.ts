import { LEASE_REASONS } from '../../lease/reasons.ts';
import { licenseFiles } from '../../license-files.ts';
import { defineVerb } from '../verb.ts';

export const verb = defineVerb({
  description:
    'For the start of a container: writes the values of SERVICE_LICENSE_LEASE and SERVICE_LICENSE_PUBLIC_KEY, each as it was issued or in base64, to the files that SERVICE_LICENSE_LEASE_PATH and SERVICE_LICENSE_PUBLIC_KEY_PATH name, or else to those of the home directory. The key may be a keyset, a JWK or PEM. What is not good is refused before anything is touched, and a better lease that is there stays.',
  examples: ['license materialize', 'license materialize && exec node api.js'],
  async run({ settings, io, message }) {
    const { materialize } = await import('../../../daemon/materialize.ts');
    const files = licenseFiles(settings.home, io.env);
    const { lease, keyset, held } = await materialize(files, io.env, Date.now());
    if (held !== undefined && held.status.reason !== null) {
      message(LEASE_REASONS[held.status.reason]);
    }
    return {
      data: {
        lease: { file: files.lease, outcome: lease },
        keyset: { file: files.keyset, outcome: keyset },
        state: held?.status.state ?? 'none',
        reason: held === undefined ? 'missing' : held.status.reason,
        lease_id: held?.claims.lease_id ?? null,
        expires_at: held?.claims.expires_at ?? null,
        grace_ends_at: held?.claims.grace_ends_at ?? null,
      },
      show(out) {
        out.line(`${files.keyset} ${OUTCOMES[keyset]}`);
        out.line(`${files.lease} ${OUTCOMES[lease]}`);
        if (held === undefined) return;
        const { expires_at, grace_ends_at } = held.claims;
        out.line(`The lease is good until ${expires_at}, with grace until ${grace_ends_at}.`);
      },
    };
  },
});

const OUTCOMES = {
  written: 'was written.',
  same: 'is what was injected already.',
  kept: 'was kept: it is better than what was injected.',
  not_given: 'was left as it is: nothing was injected for it.',
} as const;
