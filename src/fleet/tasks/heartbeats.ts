import { prepareBatchQuery } from '../../storage/prepare-batch-query.ts';
import type { Db, TasksTable } from '../../storage/tables.ts';
import { isHeld, type Claim } from './claim.ts';
import { appendRunEvent, progressColumns, type Progress } from './lifecycle.ts';

/**
 * Records the heartbeat of a task.
 * @param isEvent whether the progress is also recorded as an event.
 * @returns false when the task no longer belongs to the worker.
 */
export async function recordHeartbeat(
  tx: Db,
  held: Claim,
  now: number,
  progress: Progress | undefined,
  isEvent: boolean,
): Promise<boolean> {
  if (!(await isHeld(tx, held))) return false;
  await tx
    .updateTable('tasks')
    .set({ heartbeat_at: now, ...progressColumns(progress) })
    .where('task_id', '=', held.task_id)
    .execute();
  if (isEvent) await appendRunEvent(tx, held, now, 'run.progress', { ...progress });
  return true;
}

/**
 * Records the heartbeats of paper sessions and production deployments.
 *
 * @param sessions `isProven` resets the count of consecutive failures of a session.
 * @returns the ids of the tasks that still belong to the worker.
 */
export async function recordSessionHeartbeats(
  tx: Db,
  now: number,
  worker_id: string,
  sessions: readonly { readonly claim: Claim; readonly isProven: boolean }[],
): Promise<ReadonlySet<string>> {
  const rows = await tx
    .selectFrom('tasks')
    .select(['task_id', 'attempts'])
    .where('status', '=', 'running')
    .where('kind', 'in', ['paper', 'production'])
    .where('worker_id', '=', worker_id)
    .execute();
  const attempts = new Map(rows.map((row) => [row.task_id, row.attempts]));
  const held = sessions.filter(({ claim: one }) => attempts.get(one.task_id) === one.attempts);
  await setHeartbeats(
    tx,
    held.map(({ claim: { task_id } }) => ({ task_id, heartbeat_at: now })),
  );
  const proven = held.filter(({ isProven }) => isProven);
  await resetFailures(
    tx,
    proven.map(({ claim }) => claim),
  );
  return new Set(held.map(({ claim: { task_id } }) => task_id));
}

const setHeartbeats = prepareBatchQuery(
  ['task_id', 'heartbeat_at'],
  (db, tasks: readonly Pick<TasksTable, 'task_id' | 'heartbeat_at'>[]) =>
    db
      .updateTable('tasks')
      .set({ heartbeat_at: tasks[0]!.heartbeat_at })
      .where(
        'task_id',
        'in',
        tasks.map(({ task_id }) => task_id),
      ),
);

const resetFailures = prepareBatchQuery(
  ['task_id'],
  (db, tasks: readonly Pick<Claim, 'task_id'>[]) =>
    db
      .updateTable('trading_sessions')
      .set({ failures: 0 })
      .where(
        'task_id',
        'in',
        tasks.map(({ task_id }) => task_id),
      ),
);
