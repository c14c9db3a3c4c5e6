import { resolve } from 'node:path';
import { ServiceError } from '../../../base/errors.ts';
import { findInstall, SECRET_COLUMNS, withStore } from '../../cloud.ts';
import { showItems } from '../../show-items.ts';
import { readNamedFile } from '../../read-named-file.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'check the secrets of a customer before a deployment',
  description:
    'Run this before a deployment. Checks that both secrets exist and are well-formed, that the keyset verifies the lease, and that the lease belongs to the installation and has not expired. If SERVICE_LICENSE_ROOT is set, that root must have signed the keyset. With --manifest, also checks that the manifest belongs to the same installation and that the lease is not older. Prints names and problems, never values. Exits with 0 if all is valid, even if renewal is due, otherwise with 4. Reads the secrets; sends no request to the license server.',
  options: {
    customer: { value: 'slug', description: 'customer, required without --manifest' },
    env: { value: 'name', description: 'environment, required without --manifest' },
    manifest: {
      value: 'file',
      description: 'the manifest that `cloud seed --out` wrote',
      complete: 'file',
    },
  },
  settings: ['cloud_file', 'clusters_file'],
  examples: [
    'cloud preflight --customer acme --env prod',
    'cloud preflight --manifest seeded.json --json | jq .secrets',
  ],
  async run(context, _args, options) {
    const { checkFailure, checkSecrets } = await import('../../../deploy/cloud/check.ts');
    const { describeTrust } = await import('../../../gate/describe-trust.ts');
    const { readManifest, assertManifestOf } = await import('../../../deploy/cloud/manifest.ts');
    const path = resolve(context.cwd, options.manifest ?? '');
    const manifest =
      options.manifest === undefined ? undefined : readManifest(await readNamedFile(path), path);
    const { customer = manifest?.customer, env = manifest?.env } = options;
    if (customer === undefined || env === undefined) {
      throw new ServiceError('usage', 'specify --manifest, or both --customer and --env');
    }
    const install = await findInstall(context, { customer, env });
    if (manifest !== undefined) assertManifestOf(manifest, install);
    const checked = await withStore(context, install, (store) =>
      checkSecrets(install, store, Date.now(), manifest),
    );
    const secrets = [checked.public_key, checked.lease];
    const failure = checkFailure(checked);
    const { trust = null } = checked;
    return {
      data: {
        customer,
        env,
        ok: failure === undefined,
        lease: checked.facts ?? null,
        trust: trust && { by: trust.by, pin: trust.pin ?? null, root: trust.fingerprint ?? null },
        secrets,
      },
      failure,
      show(out) {
        showItems(out, secrets, SECRET_COLUMNS);
        if (trust === null) return;
        out.line(describeTrust(trust, 'secret'));
        if (trust.by === 'unpinned') out.line(TO_PIN);
      },
    };
  },
});

const TO_PIN =
  "To verify the keys, set SERVICE_LICENSE_ROOT to the fingerprint of the issuer's root.";
