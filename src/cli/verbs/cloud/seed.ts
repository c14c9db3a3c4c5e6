import { resolve } from 'node:path';
import type { Seeded } from '../../../deploy/cloud/seed.ts';
import { INSTALL_OPTIONS, findInstall, withSeeding } from '../../cloud.ts';
import { formatLimits } from '../../leases.ts';
import { checkOutFile, writeOutFile, type OutFile } from '../../out-file.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'issue a lease and write it to the secret store of a customer',
  description:
    'For environments without a daemon. Issues a lease for the license_deployment_id of the environment and writes two secrets to its store. service/customer/SLUG/ENV/license/public_key contains all keys of leases that can still be valid; …/license/lease contains the lease. Running tasks keep their lease until `cloud redeploy`. Prints a secret_seed_manifest with names, version IDs and dates, but no values. Needs no permission to read the secrets. After an interruption, run it again.',
  options: {
    ...INSTALL_OPTIONS,
    out: { value: 'file', description: 'also write the manifest to this file', complete: 'file' },
  },
  settings: ['cloud_file', 'clusters_file', 'server_url'],
  examples: [
    'cloud seed --customer acme --env prod --out seeded.json',
    'cloud seed --customer acme --env prod && service-local cloud redeploy --customer acme --env prod --wait',
  ],
  async run(context, _args, options) {
    const out = options.out === undefined ? undefined : manifestAt(context.cwd, options.out);
    if (out !== undefined) await checkOutFile(out);
    const install = await findInstall(context, options);
    const { seed } = await import('../../../deploy/cloud/seed.ts');
    const seeded: Seeded = await withSeeding(context, install, seed);
    const { manifest, limits } = seeded;
    for (const line of formatLimits(limits)) context.message(line);
    const text = JSON.stringify(manifest, null, 2);
    if (out !== undefined) {
      await writeOutFile(
        out,
        `${text}\n`,
        `the secrets were written, but not the manifest ${out.path}`,
      );
    }
    return { data: manifest, show: (output) => output.line(text) };
  },
});

function manifestAt(cwd: string, file: string): OutFile {
  return {
    path: resolve(cwd, file),
    kind: 'a secret_seed_manifest',
    isOne: (text) => text.includes('secret_seed_manifest'),
  };
}
