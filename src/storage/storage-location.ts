import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ServiceError } from '../base/errors.ts';
import { openStorage, type Storage, type StorageLocation } from './storage.ts';

/**
 * Returns the PostgreSQL database in `DATABASE_URL`; without it, a SQLite file in `home`.
 * @throws ServiceError `invalid_setting`, without the URL, which may contain a password.
 */
export function storageLocation(home: string, env: NodeJS.ProcessEnv): StorageLocation {
  const { DATABASE_URL: url } = env;
  if (!url) return { file: join(home, 'server.sqlite') };
  if (/^postgres(ql)?:$/.test(URL.parse(url)?.protocol ?? '')) return { url };
  throw new ServiceError(
    'invalid_setting',
    'DATABASE_URL is not the URL of a PostgreSQL database',
    {
      remedy: 'Set it to postgres://user:password@host:5432/database, or unset it to use SQLite.',
    },
  );
}

/**
 * Returns the name of the database for messages: the file, or host and database without the
 * password.
 * @throws ServiceError `invalid_setting`
 */
export function describeStorage(
  home: string,
  env: NodeJS.ProcessEnv,
): { readonly name: string; readonly isNew: boolean } {
  const location = storageLocation(home, env);
  if ('file' in location) return { name: location.file, isNew: !existsSync(location.file) };
  const { host, pathname } = new URL(location.url);
  return { name: `PostgreSQL ${host}${pathname}`, isNew: false };
}

/**
 * Opens the configured database. Its errors are for the operator: unlike those of `openStorage`, they
 * contain the reason that the driver reported.
 * @throws ServiceError `invalid_setting` or `storage_unavailable`
 */
export async function openConfiguredStorage(
  home: string,
  env: NodeJS.ProcessEnv,
  onIdleError?: (error: Error) => void,
): Promise<Storage> {
  const location = storageLocation(home, env);
  try {
    return await openStorage(location, onIdleError);
  } catch (error) {
    const isExplained = 'file' in location || !(error instanceof ServiceError && error.cause);
    if (isExplained) throw error;
    const { message } = innermost(error);
    throw new ServiceError('storage_unavailable', `cannot open DATABASE_URL: ${message}`, {
      remedy: 'Check that PostgreSQL is running, and the address and password in DATABASE_URL.',
      cause: error,
    });
  }
}

/** The original cause; if several addresses were tried, that of the first. */
function innermost(error: Error): Error {
  if (error instanceof AggregateError) return innermost(error.errors[0] as Error);
  return error.cause instanceof Error ? innermost(error.cause) : error;
}
