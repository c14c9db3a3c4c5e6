import { LEASE_REASONS } from '../../../lease/reasons.ts';
import { licenseFiles } from '../../../gate/license-files.ts';
import { formatValidity, viewLicense, findLicenseFailure } from '../../license.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'write the lease from the environment of a container to its file',
  description:
    'For the start of a container. Writes the values of SERVICE_LICENSE_LEASE and SERVICE_LICENSE_PUBLIC_KEY, each as issued or in base64, to the files that SERVICE_LICENSE_LEASE_PATH and SERVICE_LICENSE_PUBLIC_KEY_PATH name, or else to those of the home directory. The public key may be a keyset, a JWK or PEM. The lease may be the file with keys that `identity leases issue --request` writes; those keys count only if there are no others. Invalid values are refused before any file is changed, and a better lease in the file is kept. Exits with 4 if no lease works afterwards.',
  examples: ['license materialize', 'license materialize && exec node api.js'],
  async run(context) {
    const { settings, io, message } = context;
    const { materialize } = await import('../../../../daemon/materialize.ts');
    const files = licenseFiles(settings.home, io.env);
    const { lease, keyset } = await materialize(files, io.env, Date.now());
    const view = await viewLicense(context, Date.now());
    const { held, license } = view;
    const failure = findLicenseFailure(
      view,
      'Set SERVICE_LICENSE_LEASE to a lease that works, and run the command again.',
    );
    if (failure === undefined && held!.status.reason !== null) {
      message(LEASE_REASONS[held!.status.reason]);
    }
    return {
      data: {
        lease: { file: files.lease, outcome: lease },
        keyset: { file: files.keyset, outcome: keyset },
        state: held?.status.state ?? 'none',
        reason: held === undefined ? license.refused[0]!.reason : held.status.reason,
        lease_id: held?.claims.lease_id ?? null,
        expires_at: held?.claims.expires_at ?? null,
        grace_ends_at: held?.claims.grace_ends_at ?? null,
      },
      failure,
      show(out) {
        out.line(`${files.keyset} ${OUTCOMES[keyset]}`);
        out.line(`${files.lease} ${OUTCOMES[lease]}`);
        if (failure === undefined) out.line(`The lease ${formatValidity(held!.claims)}.`);
      },
    };
  },
});

const OUTCOMES = {
  written: 'was written.',
  same: 'already contains this value.',
  kept: 'was kept: it is better than the lease in the environment.',
  not_given: 'was not changed: its variable is not set.',
} as const;
