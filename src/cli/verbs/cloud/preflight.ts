import { resolve } from 'node:path';
import { ServiceError } from '../../../base/errors.ts';
import { findInstall, SECRET_COLUMNS, withStore } from '../../cloud.ts';
import { showItems } from '../../show-items.ts';
import { readNamedFile } from '../../read-named-file.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'check the secrets of a customer before a deployment',
  description:
    'Before a deployment: checks that both secrets are there and well-formed, that the lease verifies by the keyset beside it, and this by the root that SERVICE_LICENSE_ROOT pins, if any; that it is of that deployment, and has not outlived its time; with --manifest also that this is of the same install, and the lease none from before that. Tells names and what is wrong, and never a value. Exits with 0 when all is well, also when a renewal is due, else with 4. Reads the secrets; asks no server.',
  options: {
    customer: { value: 'slug', description: 'whose it is, without --manifest' },
    env: { value: 'name', description: 'which environment, without --manifest' },
    manifest: {
      value: 'file',
      description: 'what `cloud seed --out` wrote',
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
    const { readManifest, refuseOther } = await import('../../../deploy/cloud/manifest.ts');
    const path = resolve(context.cwd, options.manifest ?? '');
    const manifest =
      options.manifest === undefined ? undefined : readManifest(await readNamedFile(path), path);
    const { customer = manifest?.customer, env = manifest?.env } = options;
    if (customer === undefined || env === undefined) {
      throw new ServiceError('usage', 'either --manifest, or --customer and --env, are needed');
    }
    const install = await findInstall(context, { customer, env });
    if (manifest !== undefined) refuseOther(manifest, install);
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
  "To have them checked, set SERVICE_LICENSE_ROOT to the fingerprint of the issuer's root.";
