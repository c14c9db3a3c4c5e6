import { dirname, resolve } from 'node:path';
import { z } from 'zod';
import { closest } from '../../base/closest.ts';
import { ServiceError } from '../../base/errors.ts';
import { ID_FORMAT, ID_FORMAT_RULE } from '../../base/id-format.ts';
import { plainUrl, readYamlFile } from '../../base/yaml-file.ts';

/** It stands in names of secrets, of files, and of objects of Kubernetes. */
const SLUG = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
const SLUG_RULE = 'must be lower-case letters, digits and dashes, at most 63';

const slug = z.string().regex(SLUG, SLUG_RULE);
const id = z.string().regex(ID_FORMAT, ID_FORMAT_RULE);
const name = z.string().min(1).max(255);

/** Credentials come from where the SDK finds them: environment, profile, role of the machine. */
const aws = {
  /** As the environment or the profile says when none is named. */
  region: z
    .string()
    .regex(/^[a-z0-9-]{1,64}$/, 'must be a region such as eu-west-1')
    .optional(),
  /** Another service that speaks the same; without it that of the region, or AWS_ENDPOINT_URL. */
  endpoint: plainUrl.optional(),
};

const secretObject = z
  .string()
  .regex(/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/, 'must be a name of Kubernetes');

const storeSchema = z.discriminatedUnion('type', [
  /** Files, in a directory relative to the file. */
  z.strictObject({ type: z.literal('directory'), path: name.default('secrets') }),
  /** AWS Secrets Manager. */
  z.strictObject({
    type: z.literal('aws'),
    ...aws,
    // It stands in policies, where a wildcard would allow more.
    kms_key: z
      .string()
      .regex(/^[\w:/-]{1,2048}$/, 'must be the id, alias or ARN of a key')
      .optional(),
  }),
  /** One Secret with `lease` and `public_key`. */
  z.strictObject({
    type: z.literal('kubernetes'),
    /** Name in `clusters_file`. */
    cluster: name,
    /** That of the cluster's definition when none is named. */
    namespace: slug.optional(),
    secret: secretObject.optional(),
  }),
]);

const ecsName = z.string().regex(/^[\w-]{1,255}$/, 'must be a name, not an ARN');

const servicesSchema = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('none') }),
  /** Services of AWS ECS; region and endpoint are those of the store when none are named. */
  z.strictObject({
    type: z.literal('ecs'),
    ...aws,
    cluster: ecsName,
    api: ecsName,
    worker: ecsName,
    scheduler: ecsName,
  }),
  /** Deployments, in the namespace of the Secret: nobody else can read it. */
  z.strictObject({
    type: z.literal('kubernetes'),
    api: slug,
    worker: slug,
    scheduler: slug,
  }),
]);

/** Services that read from each store: what others run with does not follow from what is in it. */
const READERS = { directory: 'none', aws: 'ecs', kubernetes: 'kubernetes' } as const;

const installSchema = z
  .strictObject({
    license_deployment_id: id,
    /** Of the registry, which refuses when the deployment is another's; by default the slug. */
    customer_id: id.optional(),
    store: storeSchema.default({ type: 'directory', path: 'secrets' }),
    services: servicesSchema.default({ type: 'none' }),
  })
  .refine(({ store, services }) => ['none', READERS[store.type]].includes(services.type), {
    path: ['services', 'type'],
    message: 'must be ecs with a store of type aws, kubernetes with kubernetes, and else none',
  });

const fileSchema = z.strictObject({ customers: z.record(slug, z.record(slug, installSchema)) });

type Store = z.output<typeof storeSchema>;
type Services = z.output<typeof servicesSchema>;

/** In which namespace of which cluster. */
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

/** An environment of a customer, to which leases are delivered as secrets. */
export interface Install {
  readonly customer: string;
  readonly env: string;
  readonly customer_id: string;
  readonly license_deployment_id: string;
  readonly store: DirectoryDefinition | AwsDefinition | SecretDefinition;
  readonly services: { readonly type: 'none' } | EcsDefinition | DeploymentsDefinition;
  readonly secrets: SecretNames;
  /** Fingerprint of the root that the keys must descend from. */
  readonly pin?: string | undefined;
}

/** What the two secrets are called, in every store. */
export interface SecretNames {
  readonly public_key: string;
  readonly lease: string;
}

/**
 * @param file YAML or JSON: `customers: {SLUG: {ENV: {license_deployment_id, store, services}}}`.
 * Paths in the result are absolute.
 * @throws ServiceError `file_not_found`; `invalid_setting` with every problem; `not_found` for a
 * customer or an environment that the file does not have.
 */
export function readInstall(file: string, customer: string, env: string): Install {
  const { customers } = readCloudFile(file);
  const envs = chosen(customers, customer, 'customer', file);
  const install = chosen(envs, env, `environment of ${customer}`, file);
  return {
    customer,
    env,
    customer_id: install.customer_id ?? customer,
    license_deployment_id: install.license_deployment_id,
    ...placesOf(install, file, `license.${customer}.${env}`),
    secrets: secretNames(customer, env),
  };
}

/** @param secret what an object of Kubernetes is called; no slug has a dot in it. */
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
    secretsHint: 'credentials come from the environment or the profile',
  });
  if (found !== undefined) return found;
  throw new ServiceError('file_not_found', `there is no file ${file}`, {
    remedy: `Write there ${FORM}; or name another file with --config.`,
  });
}

const FORM =
  '`customers: {SLUG: {ENV: {license_deployment_id: ID, store: {type: directory}, services: {type: none}}}}`';

function invalid(file: string, problems: ServiceError['problems']): ServiceError {
  return new ServiceError('invalid_setting', `cloud_file ${file} cannot be used`, {
    problems,
    remedy: `Correct it: ${FORM}, without any credentials.`,
  });
}

/** @throws ServiceError `not_found` */
export function chosen<T>(
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
