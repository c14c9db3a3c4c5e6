import pg from 'pg';
import type { TestDatabase } from './databases.ts';

/** Resolves once a transaction on a PostgreSQL database waits for a lock. */
export async function whenBlocked({ location }: TestDatabase): Promise<void> {
  const client = new pg.Client((location as { url: string }).url);
  await client.connect();
  try {
    for (;;) {
      // Waiting for a row is waiting for its transaction, which belongs to no database.
      const { rows } = await client.query(
        `select 1 from pg_locks join pg_stat_activity using (pid)
          where datname = current_database() and not granted`,
      );
      if (rows.length > 0) return;
    }
  } finally {
    await client.end();
  }
}
