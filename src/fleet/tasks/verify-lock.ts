import canonicalize from 'canonicalize';
import type { Lock, Summary } from '../../backtest/summary.ts';
import type { SpecChanges } from '../../bots/hosted.ts';
import { driftOf } from '../../backtest/lock-drift.ts';
import { ServiceError } from '../../base/errors.ts';
import type { Db, TasksTable } from '../../storage/tables.ts';

/** Lock of a past backtest, and its task. */
export interface KeptLock {
  readonly task_id: string;
  readonly lock: Lock;
}

/** The inputs of a backtest that decide its lock. */
interface LockedChanges extends SpecChanges {
  readonly open_holdout?: boolean | undefined;
  readonly bundle_hash?: string | null | undefined;
}

/** Number of tasks read in one query. */
const PAGE = 1000;

/**
 * Finds the lock of the first successful backtest of a version with these changes, so that no later
 * backtest changes the reference. Only backtests of the saved files count, also for unsaved ones.
 */
export async function findFirstLock(
  db: Db,
  { bot_id, version }: Pick<TasksTable, 'bot_id' | 'version'>,
  changes: LockedChanges,
): Promise<KeptLock | undefined> {
  const same = sameChanges(changes);
  let after = { ended_at: -1, task_id: '' };
  for (;;) {
    const rows = await db
      .selectFrom('tasks')
      .select(['task_id', 'ended_at', 'input'])
      .where('bot_id', '=', bot_id)
      .where('status', '=', 'success')
      .where('kind', '=', 'backtest')
      .where('version', '=', version)
      .where((is) =>
        is(is.refTuple('ended_at', 'task_id'), '>', is.tuple(after.ended_at, after.task_id)),
      )
      .orderBy('ended_at')
      .orderBy('task_id')
      .limit(PAGE)
      .$narrowType<{ ended_at: number }>()
      .execute();
    const found = rows.find(({ input }) => same(JSON.parse(input) as LockedChanges));
    if (found !== undefined) return { task_id: found.task_id, lock: await lockOf(db, found) };
    if (rows.length < PAGE) return undefined;
    after = rows.at(-1)!;
  }
}

async function lockOf(db: Db, { task_id }: Pick<TasksTable, 'task_id'>): Promise<Lock> {
  const { result } = await db
    .selectFrom('tasks')
    .select('result')
    .where('task_id', '=', task_id)
    .executeTakeFirstOrThrow();
  return (JSON.parse(result!) as Summary).lock;
}

/** Compares changes regardless of the order of the parameters. */
function sameChanges(changes: LockedChanges): (other: LockedChanges) => boolean {
  const textOf = ({
    from,
    to,
    params = {},
    patch = {},
    open_holdout = false,
    ...files
  }: LockedChanges) =>
    canonicalize([from ?? null, to ?? null, params, patch, open_holdout, files.bundle_hash ?? ''])!;
  const text = textOf({ ...changes, bundle_hash: undefined });
  return (other) => textOf(other) === text;
}

export function refuseUnlocked(kept: KeptLock | undefined): asserts kept is KeptLock {
  if (kept !== undefined) return;
  throw new ServiceError(
    'conflict',
    'no backtest of this version with these values and its saved files has succeeded, so there is no lock to verify',
    {
      reason: 'not_locked',
      remedy:
        'Run the backtest once without --verify-lock (`verify_lock` in the request) and without unsaved files, which records its lock.',
    },
  );
}

/** @throws ServiceError `lock_drift` that names all differences. */
export function refuseDrift({ task_id, lock }: KeptLock, now: Lock): void {
  const drift = driftOf(lock, now);
  if (drift.length === 0) return;
  throw new ServiceError(
    'lock_drift',
    `the backtest differs from the lock of task ${task_id}: ${drift.join('; ')}`,
    {
      remedy:
        'Undo the change, or run the backtest without --verify-lock (`verify_lock` in the request) and compare the results.',
    },
  );
}
