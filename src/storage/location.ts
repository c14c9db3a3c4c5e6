import { join } from 'node:path';
import { ServiceError } from '../errors.ts';
import type { StorageLocation } from './storage.ts';

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
