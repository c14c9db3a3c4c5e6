import { join } from 'node:path';
import type { CheckedSecret } from '../deploy/cloud/check.ts';
import type { Install } from '../deploy/cloud/cloud-file.ts';
import type { SecretStore } from '../deploy/cloud/secret-store.ts';
import type { Seeding } from '../deploy/cloud/seed.ts';
import { NO_VALUE } from '../base/format.ts';
import { connect } from './connect.ts';
import type { Columns } from './show-items.ts';
import type { Context } from './verb.ts';

/** Identify an install in `cloud_file`. */
export const INSTALL_OPTIONS = {
  customer: { value: 'slug', description: 'slug of the customer', required: true },
  env: { value: 'name', description: 'environment of the customer', required: true },
} as const;

interface Named {
  readonly customer: string;
  readonly env: string;
}

/** @throws ServiceError as `readInstall`; `invalid_setting` if the pin is not a fingerprint. */
export async function findInstall(
  { settings, io }: Context,
  { customer, env }: Named,
): Promise<Install> {
  const { readInstall } = await import('../deploy/cloud/cloud-file.ts');
  const { licenseFiles } = await import('../gate/license-files.ts');
  const { pin } = licenseFiles(settings.home, io.env);
  return { ...readInstall(settings.cloud_file, customer, env), pin };
}

export async function withStore<T>(
  { settings }: Context,
  install: Install,
  work: (store: SecretStore) => Promise<T>,
): Promise<T> {
  const { openSecretStore } = await import('../deploy/cloud/open.ts');
  const store = await openSecretStore(install, settings.clusters_file);
  try {
    return await work(store);
  } finally {
    store.close();
  }
}

/** Runs `work` under a lock, so that no other process of this machine seeds the same install. */
export async function withSeeding<T>(
  context: Context,
  install: Install,
  work: (seeding: Seeding) => Promise<T>,
): Promise<T> {
  const { INTERACTIVE_LOCK_WAIT_MS, withLock } = await import('../base/file-lock.ts');
  const { customer, env } = install;
  const begun = join(context.settings.home, 'cloud', `${customer}.${env}`);
  return withStore(context, install, (store) =>
    withLock(`${begun}.lock`, INTERACTIVE_LOCK_WAIT_MS, async () =>
      work({
        install,
        store,
        server: await connect(context),
        journal: `${begun}.json`,
        message: context.message,
        clock: Date.now,
      }),
    ),
  );
}

export const SECRET_COLUMNS: Columns<CheckedSecret> = {
  secret: ({ name }) => name,
  status: ({ status }) => status,
  version: ({ version_id }) => version_id ?? NO_VALUE,
  problem: ({ message }) => message ?? '',
};
