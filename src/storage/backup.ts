import { existsSync } from 'node:fs';
import { lstat, stat } from 'node:fs/promises';
import { ServiceError } from '../base/errors.ts';
import { storageLocation } from './storage-location.ts';
import { backupPostgres } from './postgres-backup.ts';
import {
  backupSqlite,
  isSameFile,
  type BackupContent,
  type BackupOptions,
} from './sqlite-backup.ts';

export interface Backup {
  readonly kind: 'sqlite' | 'postgres';
  readonly bytes: number;
  /** Null for PostgreSQL, whose dump does not show it. */
  readonly content: BackupContent | null;
}

/**
 * Writes the database that `home` and `DATABASE_URL` name to one file.
 * @throws ServiceError `not_found` without a database; `conflict` for an existing file without
 *   `force`, and always for the database itself; `storage_unavailable`; `backup_tool_missing`;
 *   `invalid_setting`; the system's error if the file cannot be written.
 */
export async function backupDatabase(
  home: string,
  env: NodeJS.ProcessEnv,
  out: string,
  options: BackupOptions,
): Promise<Backup> {
  const location = storageLocation(home, env);
  await refuseExisting(out, options.force);
  if ('url' in location) {
    await backupPostgres(location.url, env, out, options);
    return { kind: 'postgres', bytes: (await stat(out)).size, content: null };
  }
  const { file } = location;
  if (!existsSync(file)) {
    throw new ServiceError('not_found', `the database ${file} does not exist`, {
      remedy: 'Set SERVICE_LOCAL_HOME or DATABASE_URL to the value that the server uses.',
    });
  }
  for (const own of [file, `${file}-wal`, `${file}-shm`]) {
    if (own !== out && !(await isSameFile(own, out))) continue;
    throw new ServiceError('conflict', `${out} belongs to the database itself`, {
      reason: 'file_exists',
      remedy: 'Choose another file.',
    });
  }
  const content = await backupSqlite(file, out, options);
  return { kind: 'sqlite', bytes: (await stat(out)).size, content };
}

async function refuseExisting(out: string, force: boolean): Promise<void> {
  const existing = await lstat(out).catch(() => undefined);
  if (existing === undefined || (force && existing.isFile())) return;
  throw new ServiceError(
    'conflict',
    force ? `${out} is not a regular file` : `${out} already exists`,
    {
      reason: 'file_exists',
      remedy: force ? 'Choose a regular file.' : 'Choose another file, or replace it with --force.',
    },
  );
}
