import { z } from 'zod';
import { ServiceError } from '../../base/errors.ts';
import type { LeaseClaims } from '../../lease/claims.ts';
import { renewalMoment } from '../../lease/renewal-moment.ts';
import { formatTime, parseTime } from '../../lease/time.ts';
import type { Install } from './cloud-file.ts';

const time = z.string().refine((text) => parseTime(text) !== undefined, 'must be a time in UTC');

const leaseFacts = {
  lease_id: z.string(),
  public_key_id: z.string(),
  issued_at: time,
  expires_at: time,
  grace_ends_at: time,
  /** When renewal is due. */
  due_at: time,
};

const manifestSchema = z.strictObject({
  schema: z.literal('service-local/secret_seed_manifest/v1'),
  customer: z.string(),
  env: z.string(),
  license_deployment_id: z.string(),
  /** Human-readable location, such as `AWS Secrets Manager in eu-west-1`. */
  store: z.string(),
  status: z.literal('seeded'),
  seeded_at: time,
  ...leaseFacts,
  /** In the order of writing. */
  secrets: z.array(
    z.strictObject({ name: z.string(), version_id: z.string(), status: z.literal('seeded') }),
  ),
});

/** Describes what was written to a secret store. Contains no secret values. */
export type SeedManifest = z.output<typeof manifestSchema>;

const factsSchema = z.object(leaseFacts);

/** The public facts of a lease. */
export type LeaseFacts = Readonly<z.output<typeof factsSchema>>;

export function factsOf(claims: LeaseClaims): LeaseFacts {
  const { lease_id, public_key_id, issued_at, expires_at, grace_ends_at } = claims;
  const due_at = formatTime(Math.ceil(renewalMoment(claims) / 1000) * 1000);
  return { lease_id, public_key_id, issued_at, expires_at, grace_ends_at, due_at };
}

/** @throws ServiceError `invalid_data` if the manifest describes another installation. */
export function assertManifestOf(manifest: SeedManifest, install: Install): void {
  const { customer, env, license_deployment_id, secrets } = install;
  const isIt =
    manifest.customer === customer &&
    manifest.env === env &&
    manifest.license_deployment_id === license_deployment_id &&
    manifest.secrets.map(({ name }) => name).join() === [secrets.public_key, secrets.lease].join();
  if (isIt) return;
  const what = `${customer} ${env} with the installation ${license_deployment_id}`;
  throw new ServiceError('invalid_data', `the manifest does not belong to ${what}`, {
    remedy: 'Specify the right manifest, or check whether the manifest or cloud_file was changed.',
  });
}

/** @throws ServiceError `invalid_data` */
export function readManifest(text: string, path: string): SeedManifest {
  const { success, data } = manifestSchema.safeParse(parsed(text));
  if (success) return data;
  throw new ServiceError('invalid_data', `${path} is not a secret_seed_manifest`, {
    remedy: 'Specify the file that `service-local cloud seed --out FILE` wrote.',
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
