/** Shards of searches: queued → running → success or failed. A failed one can be queued again. */
import type { ErrorData } from '../../base/error-data.ts';
import { ServiceError } from '../../base/errors.ts';
import { packageVersion } from '../../base/package-version.ts';
import type { Shard } from '../../backtest/shards/shard.ts';
import type { Db, SearchShardsTable } from '../../storage/tables.ts';
import { taskNotices } from '../tasks/task-notices.ts';
import { requireFewShards } from './search-quotas.ts';
import { hasInput, SEARCH_WRITE, touch, type SearchService } from './searches.ts';

/** Attempts at a shard before it fails because its workers died. */
const MOST_ATTEMPTS = 3;

export interface NewShards {
  readonly shards: readonly Shard[];
  /** The last ended shard whose results the client has; 0 if it has none. */
  readonly received: number;
}

/**
 * Queues shards, and deletes those that the client has received. Shards that have succeeded, wait or run
 * stay as they are; failed ones run again.
 *
 * @throws ServiceError as `touch`; `conflict` without the input of a shard, or for too many shards
 */
export async function queueShards(
  { storage, clock }: SearchService,
  by: string,
  search_id: string,
  { shards, received }: NewShards,
): Promise<void> {
  const now = clock();
  await storage.write(async (tx) => {
    await touch(tx, search_id, by, now);
    await tx
      .deleteFrom('search_shards')
      .where('search_id', '=', search_id)
      .where('ended_no', '<=', received)
      .execute();
    for (const input of new Set(shards.map((shard) => shard.input))) {
      if (await hasInput(tx, search_id, input)) continue;
      throw new ServiceError('conflict', `the input ${input} is not complete`, {
        reason: 'no_input',
        remedy: 'Store all parts of the input first.',
      });
    }
    for (const { id, input, trials } of shards) {
      const waiting = { status: 'queued', attempts: 0, created_at: now } as const;
      const blank = { worker_id: null, heartbeat_at: null, ended_no: null } as const;
      const empty = { ...waiting, ...blank, result: null, error: null };
      await tx
        .insertInto('search_shards')
        .values({
          ...empty,
          search_id,
          shard_id: id,
          input_digest: input,
          trials: JSON.stringify(trials),
          trial_count: trials.length,
        })
        .onConflict((conflict) =>
          conflict
            .columns(['search_id', 'shard_id'])
            .doUpdateSet(empty)
            .where('search_shards.status', '=', 'failed'),
        )
        .execute();
    }
    await requireFewShards(tx, search_id);
  }, SEARCH_WRITE);
}

export interface EndedShardRow extends Readonly<
  Pick<SearchShardsTable, 'shard_id' | 'result' | 'error'>
> {
  readonly ended_no: number;
}

/** Shards that ended after `ended_no`, in the order of their ends. */
export function listEnded(
  db: Db,
  search_id: string,
  after: number,
  limit: number,
): Promise<EndedShardRow[]> {
  return db
    .selectFrom('search_shards')
    .select(['shard_id', 'ended_no', 'result', 'error'])
    .where('search_id', '=', search_id)
    .where('ended_no', '>', after)
    .orderBy('ended_no')
    .limit(limit)
    .$narrowType<{ ended_no: number }>()
    .execute();
}

/** A shard that a worker has claimed. */
export interface ShardClaim extends Readonly<
  Pick<SearchShardsTable, 'search_id' | 'shard_id' | 'input_digest' | 'trials' | 'attempts'>
> {
  readonly worker_id: string;
  /** Trace of the request that created the search. */
  readonly traceparent: string | null;
}

/** The shards that workers of this version can run. */
function selectQueued(db: Db) {
  return db
    .selectFrom('search_shards')
    .innerJoin('searches', 'searches.search_id', 'search_shards.search_id')
    .where('search_shards.status', '=', 'queued')
    .where('searches.package', '=', packageVersion());
}

export async function hasQueuedShard(db: Db): Promise<boolean> {
  const found = await selectQueued(db).select('shard_id').limit(1).execute();
  return found.length > 0;
}

/** Claims the shards that have waited longest, at most `most`. */
export async function claimShards(
  tx: Db,
  now: number,
  worker_id: string,
  most: number,
): Promise<ShardClaim[]> {
  const found = await selectQueued(tx)
    .select(['search_shards.search_id', 'shard_id', 'input_digest', 'trials', 'attempts'])
    .select('searches.traceparent')
    .orderBy('search_shards.created_at')
    .orderBy('shard_id')
    .limit(most)
    .execute();
  const claims: ShardClaim[] = [];
  for (const shard of found) {
    const attempts = shard.attempts + 1;
    await shardRow(tx, shard)
      .set({ status: 'running', attempts, worker_id, heartbeat_at: now })
      .execute();
    claims.push({ ...shard, attempts, worker_id });
  }
  return claims;
}

/** Sends heartbeats for the shards of a worker. @returns the claims that are still valid */
export async function recordShardHeartbeats(
  tx: Db,
  now: number,
  claims: readonly ShardClaim[],
): Promise<ReadonlySet<ShardClaim>> {
  const held = new Set<ShardClaim>();
  for (const claim of claims) {
    const { numUpdatedRows } = await heldRow(tx, claim)
      .set({ heartbeat_at: now })
      .executeTakeFirst();
    if (numUpdatedRows > 0n) held.add(claim);
  }
  return held;
}

export type ShardOutcome =
  | { readonly result: string; readonly error: null }
  | { readonly result: null; readonly error: ErrorData };

/** Ends a claimed shard; does nothing if the claim is no longer valid. */
export async function finishShard(
  tx: Db,
  claim: Held,
  { result, error }: ShardOutcome,
): Promise<void> {
  const isHeld = await heldRow(tx, claim).set({ worker_id: claim.worker_id }).executeTakeFirst();
  if (isHeld.numUpdatedRows === 0n) return;
  const status = error === null ? 'success' : 'failed';
  taskNotices.ended('shard', status);
  await heldRow(tx, claim)
    .set({
      status,
      worker_id: null,
      heartbeat_at: null,
      ended_no: await nextNumber(tx, claim.search_id),
      result,
      error: error && JSON.stringify(error),
    })
    .execute();
}

/** Puts a claimed shard back into the queue without counting the attempt. */
export async function returnShard(tx: Db, claim: ShardClaim): Promise<void> {
  const { numUpdatedRows } = await heldRow(tx, claim)
    .set(queuedAgain(claim.attempts - 1))
    .executeTakeFirst();
  if (numUpdatedRows > 0n) taskNotices.requeued('shard', 'server_stopped');
}

/** A running shard of a worker, without its trials, which are large. */
export interface RunningShard extends Omit<ShardClaim, 'input_digest' | 'trials' | 'traceparent'> {
  readonly heartbeat_at: number;
}

export function listRunningShards(db: Db): Promise<RunningShard[]> {
  return db
    .selectFrom('search_shards')
    .select(['search_id', 'shard_id', 'attempts', 'worker_id', 'heartbeat_at'])
    .where('status', '=', 'running')
    .$narrowType<{ worker_id: string; heartbeat_at: number }>()
    .execute();
}

/** Queues a shard again whose worker is dead, or fails it after too many attempts. */
export async function recoverShard(tx: Db, shard: RunningShard): Promise<void> {
  const unchanged = await heldRow(tx, shard)
    .set({ heartbeat_at: shard.heartbeat_at })
    .where('heartbeat_at', '=', shard.heartbeat_at)
    .executeTakeFirst();
  if (unchanged.numUpdatedRows === 0n) return;
  if (shard.attempts < MOST_ATTEMPTS) {
    taskNotices.requeued('shard', 'worker_died');
    await heldRow(tx, shard).set(queuedAgain(shard.attempts)).execute();
    return;
  }
  const error: ErrorData = {
    code: 'failure',
    reason: 'worker_died',
    message: `the worker died in each of ${shard.attempts} attempts`,
    remedy: 'Check the logs of the workers, and whether their machines have enough memory.',
  };
  await finishShard(tx, shard, { result: null, error });
}

function queuedAgain(attempts: number) {
  return { status: 'queued', attempts, worker_id: null, heartbeat_at: null } as const;
}

async function nextNumber(tx: Db, search_id: string): Promise<number> {
  const { ended_count } = await tx
    .updateTable('searches')
    .set(({ eb }) => ({ ended_count: eb('ended_count', '+', 1) }))
    .where('search_id', '=', search_id)
    .returning('ended_count')
    .executeTakeFirstOrThrow();
  return ended_count;
}

function shardRow(tx: Db, { search_id, shard_id }: Pick<ShardClaim, 'search_id' | 'shard_id'>) {
  return tx
    .updateTable('search_shards')
    .where('search_id', '=', search_id)
    .where('shard_id', '=', shard_id);
}

/** Fields that identify an attempt at a shard. */
type Held = Pick<ShardClaim, 'search_id' | 'shard_id' | 'worker_id' | 'attempts'>;

function heldRow(tx: Db, claim: Held) {
  return shardRow(tx, claim)
    .where('status', '=', 'running')
    .where('worker_id', '=', claim.worker_id)
    .where('attempts', '=', claim.attempts);
}
