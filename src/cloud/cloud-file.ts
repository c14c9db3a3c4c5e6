import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { closest } from '../closest.ts';
import { isSystemError, ServiceError } from '../errors.ts';
import { GIVEN_ID, GIVEN_ID_RULE } from '../given-id.ts';

/** It stands in names of secrets, of files, and of objects of Kubernetes. */
const SLUG = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
const SLUG_RULE = 'must be lower-case letters, digits and dashes, at most 63';
const SECRETS = /token|password|secret|access_key|credential|auth/i;

const slug = z.string().regex(SLUG, SLUG_RULE);
const id = z.string().regex(GIVEN_ID, GIVEN_ID_RULE);
const name = z.string().min(1).max(255);

/** Credentials come from where the SDK finds them: environment, profile, role of the machine. */
const aws = {
  /** As the environment or the profile says when none is named. */
  region: z
    .string()
    .regex(/^[a-z0-9-]{1,64}$/, 'must be a region such as eu-west-1')
    .optional(),
  /** Another service that speaks the same; without it that of the region, or AWS_ENDPOINT_URL. */
  endpoint: z
    .url({ protocol: /^https?$/ })
    .refine((url) => !withSecrets(url), { message: 'must have no user, password or query' })
    .optional(),
};

const kubernetes = {
  /** Name in `clusters_file`. */
  cluster: name,
  /** That of the cluster's definition when none is named. */
  namespace: slug.optional(),
};

const storeSchema = z.discriminatedUnion('type', [
  /** Files, in a directory relative to the file. */
  z.strictObject({ type: z.literal('directory'), path: name.default('secrets') }),
  /** AWS Secrets Manager. */
  z.strictObject({ type: z.literal('aws'), ...aws, kms_key: name.optional() }),
  /** One Secret with `lease` and `public_key`. */
  z.strictObject({ type: z.literal('kubernetes'), ...kubernetes, secret: slug.optional() }),
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
  /** Deployments. */
  z.strictObject({
    type: z.literal('kubernetes'),
    ...kubernetes,
    api: slug,
    worker: slug,
    scheduler: slug,
  }),
]);

const installSchema = z.strictObject({
  license_deployment_id: id,
  /** Of the registry, which refuses when the deployment is another's; the slug when none is named. */
  customer_id: id.optional(),
  store: storeSchema.default({ type: 'directory', path: 'secrets' }),
  services: servicesSchema.default({ type: 'none' }),
});

const fileSchema = z.strictObject({ customers: z.record(slug, z.record(slug, installSchema)) });

export type StoreDefinition = z.output<typeof storeSchema>;
export type ServicesDefinition = z.output<typeof servicesSchema>;
export type EcsDefinition = Extract<ServicesDefinition, { readonly type: 'ecs' }>;

/** An environment of a customer, to which leases are delivered as secrets. */
export interface Install {
  readonly customer: string;
  readonly env: string;
  readonly customer_id: string;
  readonly license_deployment_id: string;
  readonly store: StoreDefinition;
  readonly services: ServicesDefinition;
  readonly secrets: SecretNames;
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
  const { store, services } = install;
  return {
    customer,
    env,
    customer_id: install.customer_id ?? customer,
    license_deployment_id: install.license_deployment_id,
    store:
      store.type === 'directory' ? { ...store, path: resolve(dirname(file), store.path) } : store,
    services:
      services.type === 'ecs' && store.type === 'aws' ? likeStore(services, store) : services,
    secrets: secretNames(customer, env),
  };
}

function likeStore(
  services: EcsDefinition,
  { region, endpoint }: Extract<StoreDefinition, { readonly type: 'aws' }>,
): EcsDefinition {
  return { ...(region && { region }), ...(endpoint && { endpoint }), ...services };
}

function secretNames(customer: string, env: string): SecretNames {
  const prefix = `service/customer/${customer}/${env}/license`;
  return { public_key: `${prefix}/public_key`, lease: `${prefix}/lease` };
}

function readCloudFile(file: string): z.output<typeof fileSchema> {
  let value: unknown;
  try {
    value = parse(readFileSync(file, 'utf8'));
  } catch (error) {
    if (isSystemError(error)) {
      throw new ServiceError('file_not_found', `cannot read ${file} (${error.code})`, {
        remedy: `Write there ${FORM}; or name another file with --config.`,
      });
    }
    // What cannot be parsed may hold anything, so the parser's excerpt is left out.
    const [message = ''] = (error as Error).message.split(':\n');
    throw invalid(file, [{ code: 'invalid_setting', file, message }]);
  }
  const { success, data, error } = fileSchema.safeParse(value);
  if (success) return data;
  throw invalid(
    file,
    error.issues.map((issue) => {
      const isSecret =
        issue.code === 'unrecognized_keys' && issue.keys.some((key) => SECRETS.test(key));
      const hint = isSecret ? '; credentials come from the environment or the profile' : '';
      return {
        code: 'invalid_setting',
        file,
        message: `${issue.path.join('.') || 'the file'}: ${issue.message}${hint}`,
        pointer: issue.path.map((part) => `/${String(part)}`).join(''),
      };
    }),
  );
}

const FORM =
  '`customers: {SLUG: {ENV: {license_deployment_id: ID, store: {type: directory}, services: {type: none}}}}`';

function invalid(file: string, problems: ServiceError['problems']): ServiceError {
  return new ServiceError('invalid_setting', `cloud_file ${file} cannot be used`, {
    problems,
    remedy: `Correct it: ${FORM}, without any credentials.`,
  });
}

function chosen<T>(
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

function withSecrets(text: string): boolean {
  const url = URL.parse(text);
  return url === null || Boolean(url.username || url.password || url.search || url.hash);
}
