import { LEASE_REASONS } from '../../../lease/reasons.ts';
import { licenseFiles } from '../../../gate/license-files.ts';
import { formatValidity, viewLicense, findLicenseFailure } from '../../license.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'write the lease from the environment of a container to its file',
  description:
    'For the start of a container: writes the values of SERVICE_LICENSE_LEASE and SERVICE_LICENSE_PUBLIC_KEY, each as it was issued or in base64, to the files that SERVICE_LICENSE_LEASE_PATH and SERVICE_LICENSE_PUBLIC_KEY_PATH name, or else to those of the home directory. The key may be a keyset, a JWK or PEM; the lease may be the file with keys that `identity leases issue --request` writes, whose keys count only where there are none. What is not good is refused before anything is touched, and a better lease that is there stays. Exits with 4 when what is in place then does not work.',
  examples: ['license materialize', 'license materialize && exec node api.js'],
  async run(context) {
    const { settings, io, message } = context;
    const { materialize } = await import('../../../../daemon/materialize.ts');
    const files = licenseFiles(settings.home, io.env);
    const { lease, keyset } = await materialize(files, io.env, Date.now());
    const view = await viewLicense(context, Date.now());
    const { held, license } = view;
    const failure = findLicenseFailure(view, 'Inject a lease that works, and run it again.');
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
  same: 'is what was injected already.',
  kept: 'was kept: it is better than what was injected.',
  not_given: 'was left as it is: nothing was injected for it.',
} as const;
