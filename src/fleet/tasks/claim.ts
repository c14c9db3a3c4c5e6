import { prepareSharedRead } from '../../storage/share-query.ts';
import type { Db, TasksTable } from '../../storage/tables.ts';

/** A task that a worker has claimed. */
export interface Claim extends Readonly<
  Pick<
    TasksTable,
    | 'task_id'
    | 'kind'
    | 'bot_id'
    | 'version'
    | 'deployment_id'
    | 'attempts'
    | 'input'
    | 'traceparent'
  >
> {
  readonly worker_id: string;
}

/** Kinds of tasks that trade: they log each step as it happens, and halts apply to them. */
export type SessionKind = 'paper' | 'production';

export function isSession(kind: Claim['kind']): kind is SessionKind {
  return kind === 'paper' || kind === 'production';
}

/**
 * Whether the claim is still valid.
 * @param heartbeat_at if given, the heartbeat that must not have changed.
 */
export async function isHeld(
  tx: Db,
  { task_id, worker_id, attempts }: Pick<Claim, 'task_id' | 'worker_id' | 'attempts'>,
  heartbeat_at?: number,
): Promise<boolean> {
  const row = await selectHolder(tx, task_id);
  return (
    row?.worker_id === worker_id &&
    row.attempts === attempts &&
    (heartbeat_at === undefined || row.heartbeat_at === heartbeat_at)
  );
}

const selectHolder = prepareSharedRead('tasks.task_id', (db) =>
  db.selectFrom('tasks').select(['task_id', 'worker_id', 'attempts', 'heartbeat_at']),
);
