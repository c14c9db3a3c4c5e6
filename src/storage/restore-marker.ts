import { sql } from 'kysely';
import { ServiceError } from '../base/errors.ts';
import type { Db } from './tables.ts';

/** A table that a restore into PostgreSQL creates first and drops last. */
export const RESTORE_MARKER = 'restore_in_progress';

/** @throws ServiceError `storage_unavailable` for a database into which a restore is not complete. */
export async function refuseRestoring(db: Db): Promise<void> {
  const { rows } = await sql<{
    readonly marker: string | null;
  }>`select to_regclass(${RESTORE_MARKER})::text as marker`.execute(db);
  if ((rows[0]?.marker ?? null) === null) return;
  throw new ServiceError(
    'storage_unavailable',
    'a restore into the database was interrupted or is running',
    {
      reason: 'restore_interrupted',
      remedy: 'If no restore is running, drop and create the database, and restore again.',
    },
  );
}
