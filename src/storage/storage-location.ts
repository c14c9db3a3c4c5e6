import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ServiceError } from '../base/errors.ts';
import { openStorage, type Storage, type StorageLocation } from './storage.ts';

/**
 * The PostgreSQL that `DATABASE_URL` names; without it, a SQLite file in `home`.
 * @throws ServiceError `invalid_setting`, which does not tell the URL: there may be a password in it
 */
export function storageLocation(home: string, env: NodeJS.ProcessEnv): StorageLocation {
  const { DATABASE_URL: url } = env;
  if (!url) return { file: join(home, 'server.sqlite') };
  if (/^postgres(ql)?:$/.test(URL.parse(url)?.protocol ?? '')) return { url };
  throw new ServiceError('invalid_setting', 'DATABASE_URL is no URL of a PostgreSQL', {
    remedy: 'Write it as postgres://user:password@host:5432/database, or leave it out for SQLite.',
  });
}

/**
 * Which database it is, for an operator: the file, or host and name without the password.
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
 * Opens it for an operator, who may know what callers may not: why it cannot be opened.
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
    const isTold = 'file' in location || !(error instanceof ServiceError && error.cause);
    if (isTold) throw error;
    const { message } = innermost(error);
    throw new ServiceError('storage_unavailable', `cannot open DATABASE_URL: ${message}`, {
      remedy: 'See that the PostgreSQL runs, and that DATABASE_URL has its address and password.',
      cause: error,
    });
  }
}

/** Of several addresses that were tried, the first tells why. */
function innermost(error: Error): Error {
  if (error instanceof AggregateError) return innermost(error.errors[0] as Error);
  return error.cause instanceof Error ? innermost(error.cause) : error;
}
