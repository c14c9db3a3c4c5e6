/** What a backtest that is made again, however much later, must be made of. */
import canonicalize from 'canonicalize';
import type { Lock, Summary } from '../../backtest/summary.ts';
import type { SpecChanges } from '../../bots/hosted.ts';
import { driftOf } from '../../bots/version.ts';
import { ServiceError } from '../../base/errors.ts';
import type { Db, TasksTable } from '../../storage/tables.ts';

/** The lock of a backtest that was made, and which task made it. */
export interface KeptLock {
  readonly task_id: string;
  readonly lock: Lock;
}

/** Tasks that are looked at in one query. */
const PAGE = 1000;

/**
 * The lock of the first backtest of a version with these changes that was a success: the first stays
 * the first, so that no later one can move what all are compared with.
 */
export async function findFirstLock(
  db: Db,
  { bot_id, version }: Pick<TasksTable, 'bot_id' | 'version'>,
  changes: SpecChanges,
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
    const found = rows.find(({ input }) => same(JSON.parse(input) as SpecChanges));
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

/** Whatever the order in which the parameters were named. */
function sameChanges(changes: SpecChanges): (other: SpecChanges) => boolean {
  const textOf = ({ from, to, params = {}, patch = {} }: SpecChanges): string =>
    canonicalize([from ?? null, to ?? null, params, patch])!;
  const text = textOf(changes);
  return (other) => textOf(other) === text;
}

/** @throws ServiceError `conflict` with the reason `not_locked` when there is no such backtest yet. */
export function refuseUnlocked(kept: KeptLock | undefined): asserts kept is KeptLock {
  if (kept !== undefined) return;
  throw new ServiceError(
    'conflict',
    'no backtest of this version with these values was a success yet: there is no lock to verify',
    { reason: 'not_locked', remedy: 'Run it once without --verify-lock: that locks it.' },
  );
}

/** @throws ServiceError `lock_drift` naming all that is not as it was locked. */
export function refuseDrift({ task_id, lock }: KeptLock, now: Lock): void {
  const drift = driftOf(lock, now);
  if (drift.length === 0) return;
  throw new ServiceError('lock_drift', `not what the task ${task_id} locked: ${drift.join('; ')}`, {
    remedy: 'Undo the change, or leave out --verify-lock and compare the results.',
  });
}
