import { hash } from 'node:crypto';
import { sql } from 'kysely';
import { isPostgres } from './prepare-rows-query.ts';
import type { Db } from './tables.ts';

/** Keys of advisory locks on PostgreSQL; arbitrary. */
const PLATFORM = 7_305_811;
const SCOPES = 7_305_812;
const NUMBERS = 7_305_813;

/**
 * Prevents other servers from writing until the end of the transaction. With scopes, they can still write
 * in other scopes. A write in a scope holds the platform lock in shared mode. Writes without a scope,
 * such as all writes of servers of earlier versions, wait for it.
 *
 * Deadlocks are impossible: all transactions first lock the platform, then their scopes in ascending
 * order, then the numbers of bots, and finally the head of the audit log.
 */
export async function lockWrites(tx: Db, scopes?: readonly string[]): Promise<void> {
  if (scopes === undefined) {
    await sql`select pg_advisory_xact_lock(${sql.lit(PLATFORM)})`.execute(tx);
    return;
  }
  // Writes in scopes with the same key wait for each other, which is unnecessary but harmless.
  const keys = [...new Set(scopes.map(keyOf))].sort((a, b) => a - b);
  // The server runs the statements of a connection in the order in which they were sent.
  await Promise.all([
    sql`select pg_advisory_xact_lock_shared(${sql.lit(PLATFORM)})`.execute(tx),
    sql`select pg_advisory_xact_lock(${sql.lit(SCOPES)}, key)
      from unnest(cast(${keys} as integer[])) as key`.execute(tx),
  ]);
}

/** Keeps other writes from giving numbers to bots until the end of the transaction. */
export async function lockNumbers(tx: Db): Promise<void> {
  if (!isPostgres(tx)) return;
  await sql`select pg_advisory_xact_lock(${sql.lit(NUMBERS)})`.execute(tx);
}

function keyOf(scope: string): number {
  return hash('sha256', scope, 'buffer').readInt32BE(0);
}
