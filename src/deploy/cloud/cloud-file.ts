import { dirname, resolve } from 'node:path';
import { z } from 'zod';
import { closest } from '../../base/closest.ts';
import { ServiceError } from '../../base/errors.ts';
import { ID_FORMAT, ID_FORMAT_RULE } from '../../base/id-format.ts';
import { plainUrl, readYamlFile } from '../../base/yaml-file.ts';

/** Slugs are part of the names of secrets, files and Kubernetes objects. */
const SLUG = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
const SLUG_RULE = 'must consist of at most 63 lower-case letters, digits and dashes';

const slug = z.string().regex(SLUG, SLUG_RULE);
const id = z.string().regex(ID_FORMAT, ID_FORMAT_RULE);
const name = z.string().min(1).max(255);

/** The SDK takes credentials from the environment, the profile or the role of the machine. */
const aws = {
  /** Defaults to the region of the environment or profile. */
  region: z
    .string()
    .regex(/^[a-z0-9-]{1,64}$/, 'must be a region such as eu-west-1')
    .optional(),
  /** URL of a compatible service; defaults to AWS_ENDPOINT_URL, then to AWS in the region. */
  endpoint: plainUrl.optional(),
};

const secretObject = z
  .string()
  .regex(/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/, 'must be a valid Kubernetes name');

const storeSchema = z.discriminatedUnion('type', [
  /** `path` is relative to the cloud file. */
  z.strictObject({ type: z.literal('directory'), path: name.default('secrets') }),
  z.strictObject({
    type: z.literal('aws'),
    ...aws,
    // The key is copied into IAM policies, where a wildcard would grant more.
    kms_key: z
      .string()
      .regex(/^[\w:/-]{1,2048}$/, 'must be the id, alias or ARN of a key')
      .optional(),
  }),
  /** One Secret with the keys `lease` and `public_key`. */
  z.strictObject({
    type: z.literal('kubernetes'),
    /** Name of a cluster in `clusters_file`. */
    cluster: name,
    /** Defaults to the namespace of the cluster in `clusters_file`. */
    namespace: slug.optional(),
    secret: secretObject.optional(),
  }),
]);

const ecsName = z.string().regex(/^[\w-]{1,255}$/, 'must be a name, not an ARN');

const servicesSchema = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('none') }),
  /** AWS ECS services; region and endpoint default to the ones of the store. */
  z.strictObject({
    type: z.literal('ecs'),
    ...aws,
    cluster: ecsName,
    api: ecsName,
    worker: ecsName,
    scheduler: ecsName,
  }),
  /** Deployments in the namespace of the Secret, because pods elsewhere cannot read it. */
  z.strictObject({
    type: z.literal('kubernetes'),
    api: slug,
    worker: slug,
    scheduler: slug,
  }),
]);

/** Maps each type of store to the type of service that can read from it. */
const READERS = { directory: 'none', aws: 'ecs', kubernetes: 'kubernetes' } as const;

const installSchema = z
  .strictObject({
    license_deployment_id: id,
    /** The customer in the registry who owns the installation; defaults to the slug. */
    customer_id: id.optional(),
    store: storeSchema.default({ type: 'directory', path: 'secrets' }),
    services: servicesSchema.default({ type: 'none' }),
  })
  .refine(({ store, services }) => ['none', READERS[store.type]].includes(services.type), {
    path: ['services', 'type'],
    message: 'must match store.type: ecs for aws, kubernetes for kubernetes, none for any store',
  });

const fileSchema = z.strictObject({ customers: z.record(slug, z.record(slug, installSchema)) });

type Store = z.output<typeof storeSchema>;
type Services = z.output<typeof servicesSchema>;

export interface ClusterPlace {
  readonly cluster: string;
  readonly namespace?: string | undefined;
}

export type DirectoryDefinition = Extract<Store, { readonly type: 'directory' }>;
export type AwsDefinition = Extract<Store, { readonly type: 'aws' }>;
export type SecretDefinition = Extract<Store, { readonly type: 'kubernetes' }> & {
  readonly secret: string;
};
export type EcsDefinition = Extract<Services, { readonly type: 'ecs' }>;
export type DeploymentsDefinition = Extract<Services, { readonly type: 'kubernetes' }> &
  ClusterPlace;

/** An environment of a customer that receives its lease and keys as secrets. */
export interface Install {
  readonly customer: string;
  readonly env: string;
  readonly customer_id: string;
  readonly license_deployment_id: string;
  readonly store: DirectoryDefinition | AwsDefinition | SecretDefinition;
  readonly services: { readonly type: 'none' } | EcsDefinition | DeploymentsDefinition;
  readonly secrets: SecretNames;
  /** Fingerprint of the root that must have signed the keyset. */
  readonly pin?: string | undefined;
}

/** Names of the two secrets, the same in every store. */
export interface SecretNames {
  readonly public_key: string;
  readonly lease: string;
}

/**
 * @param file YAML or JSON: `customers: {SLUG: {ENV: {license_deployment_id, store, services}}}`.
 * Paths in the result are absolute.
 * @throws ServiceError `file_not_found`; `invalid_setting` with every problem; `not_found` if the
 * file does not contain the customer or the environment.
 */
export function readInstall(file: string, customer: string, env: string): Install {
  const { customers } = readCloudFile(file);
  const envs = pickNamed(customers, customer, 'customer', file);
  const install = pickNamed(envs, env, `environment of ${customer}`, file);
  return {
    customer,
    env,
    customer_id: install.customer_id ?? customer,
    license_deployment_id: install.license_deployment_id,
    ...placesOf(install, file, `license.${customer}.${env}`),
    secrets: secretNames(customer, env),
  };
}

/** @param secret Default name of the Kubernetes Secret. Its dots keep names unique: no slug has one. */
function placesOf(
  { store, services }: z.output<typeof installSchema>,
  file: string,
  secret: string,
): Pick<Install, 'store' | 'services'> {
  const none = { type: 'none' } as const;
  if (store.type === 'directory') {
    return { store: { ...store, path: resolve(dirname(file), store.path) }, services: none };
  }
  if (store.type === 'aws') {
    const { region, endpoint } = store;
    const place = { ...(region && { region }), ...(endpoint && { endpoint }) };
    return { store, services: services.type === 'ecs' ? { ...place, ...services } : none };
  }
  const { cluster, namespace } = store;
  return {
    store: { ...store, secret: store.secret ?? secret },
    services: services.type === 'kubernetes' ? { ...services, cluster, namespace } : none,
  };
}

function secretNames(customer: string, env: string): SecretNames {
  const prefix = `service/customer/${customer}/${env}/license`;
  return { public_key: `${prefix}/public_key`, lease: `${prefix}/lease` };
}

function readCloudFile(file: string): z.output<typeof fileSchema> {
  const found = readYamlFile(file, {
    schema: fileSchema,
    refuse: (problems) => invalid(file, problems),
    secretsHint: 'provide credentials through the environment or the AWS profile',
  });
  if (found !== undefined) return found;
  throw new ServiceError('file_not_found', `the file ${file} does not exist`, {
    remedy: `Create it with ${FORM}, or specify another file with --config.`,
  });
}

const FORM =
  '`customers: {SLUG: {ENV: {license_deployment_id: ID, store: {type: directory}, services: {type: none}}}}`';

function invalid(file: string, problems: ServiceError['problems']): ServiceError {
  return new ServiceError('invalid_setting', `cloud_file ${file} is invalid`, {
    problems,
    remedy: `Correct the file. It has the form ${FORM} and contains no credentials.`,
  });
}

/** @throws ServiceError `not_found` */
export function pickNamed<T>(
  all: Readonly<Record<string, T>>,
  wanted: string,
  what: string,
  file: string,
): T {
  if (Object.hasOwn(all, wanted)) return all[wanted]!;
  const known = Object.keys(all);
  const suggestion = closest(wanted, known);
  throw new ServiceError('not_found', `${file} has no ${what} ${JSON.stringify(wanted)}`, {
    remedy: suggestion ? `Did you mean ${suggestion}?` : `It has ${known.join(', ') || 'none'}.`,
  });
}
