/**
 * How a task goes from queued to running and to its end. Each step is one write, with the deployment
 * and the events of the bot in it, and happens only where the task still is as it is thought to be:
 * who was taken for dead and is not can change nothing any more, and what has ended stays as it
 * ended.
 */
import { ENGINE_VERSION } from '../engine/version.ts';
import type { Problem, ServiceError } from '../errors.ts';
import { appendEvents } from '../events/append.ts';
import type { NewEvent } from '../events/event.ts';
import type { BotDeploymentsTable, Db, TasksTable } from '../storage/tables.ts';

/** So often a task is begun whose workers die of it, or with it. */
const MOST_ATTEMPTS = 3;

/** Why a task failed, as it is kept: what a `ServiceError` tells. */
export interface TaskError extends Pick<ServiceError, 'code' | 'message'> {
  readonly reason?: string;
  readonly remedy?: string;
  readonly problems?: readonly Problem[];
}

/** How a task ends. */
export type TaskOutcome =
  | {
      readonly status: 'success';
      /** JSON object. */
      readonly result: string;
      /** What the deployment and the events tell of it. */
      readonly summary: Readonly<Record<string, unknown>>;
    }
  | { readonly status: 'failed'; readonly error: TaskError }
  | { readonly status: 'canceled' };

type Row = Pick<TasksTable, 'task_id' | 'bot_id' | 'version' | 'deployment_id' | 'attempts'>;

/** A task that a worker has begun. */
export interface Claim extends Readonly<Row> {
  readonly worker_id: string;
  readonly input: string;
}

/** Begins the task that has waited longest, if one waits. */
export async function claimTask(
  tx: Db,
  now: number,
  worker_id: string,
): Promise<Claim | undefined> {
  const task = await tx
    .selectFrom('tasks')
    .select(['task_id', 'bot_id', 'version', 'deployment_id', 'attempts', 'input'])
    .where('status', '=', 'queued')
    .orderBy('task_id')
    .limit(1)
    .executeTakeFirst();
  if (task === undefined) return undefined;
  const attempts = task.attempts + 1;
  const begun = { status: 'running', attempts, worker_id, started_at: now } as const;
  await tx
    .updateTable('tasks')
    .set({ ...begun, heartbeat_at: now, progress_done: 0, progress_total: null })
    .where('task_id', '=', task.task_id)
    .where('status', '=', 'queued')
    .execute();
  await dropFiles(tx, task.task_id);
  await setDeployment(tx, task.deployment_id, { status: 'running' });
  const claim = { ...task, attempts, worker_id };
  await tell(tx, claim, now, 'run.started', { attempt: attempts, engine: ENGINE_VERSION });
  return claim;
}

/**
 * Whether the task still is the worker's.
 * @param heartbeat_at when he was heard of last, if that is to be so still.
 */
export async function isHeld(
  tx: Db,
  { task_id, worker_id, attempts }: Claim,
  heartbeat_at?: number,
): Promise<boolean> {
  const row = await tx
    .selectFrom('tasks')
    .select(['worker_id', 'attempts', 'heartbeat_at'])
    .where('task_id', '=', task_id)
    .executeTakeFirst();
  return (
    row?.worker_id === worker_id &&
    row.attempts === attempts &&
    (heartbeat_at === undefined || row.heartbeat_at === heartbeat_at)
  );
}

export interface Progress {
  readonly done: number;
  readonly total: number;
}

/**
 * Says that the worker is at it.
 * @param told whether the progress is worth an event.
 * @returns false when the task is the worker's no more.
 */
export async function beat(
  tx: Db,
  claim: Claim,
  now: number,
  progress: Progress | undefined,
  told: boolean,
): Promise<boolean> {
  if (!(await isHeld(tx, claim))) return false;
  await tx
    .updateTable('tasks')
    .set({ heartbeat_at: now, ...columnsOf(progress) })
    .where('task_id', '=', claim.task_id)
    .execute();
  if (told) await tell(tx, claim, now, 'run.progress', { ...progress });
  return true;
}

function columnsOf(progress: Progress | undefined) {
  return progress && { progress_done: progress.done, progress_total: progress.total };
}

/** Ends a task that a worker holds; does nothing when it is the worker's no more. */
export async function finishTask(
  tx: Db,
  claim: Claim,
  now: number,
  outcome: TaskOutcome,
  progress: Progress | undefined,
): Promise<void> {
  if (await isHeld(tx, claim)) await endTask(tx, claim, now, outcome, progress);
}

/**
 * Puts a task back into the queue, as a worker does that is told to stop, and counts no attempt. One
 * that is to be canceled ends.
 */
export async function giveBack(tx: Db, claim: Claim, now: number): Promise<void> {
  if (!(await isHeld(tx, claim))) return;
  const { cancel_requested_at } = await tx
    .selectFrom('tasks')
    .select('cancel_requested_at')
    .where('task_id', '=', claim.task_id)
    .executeTakeFirstOrThrow();
  if (cancel_requested_at !== null) return endTask(tx, claim, now, { status: 'canceled' });
  await requeue(tx, { ...claim, attempts: claim.attempts - 1 }, now, 'server_stopped');
}

/** Whether a task waits for a worker. */
export async function isWaiting(db: Db): Promise<boolean> {
  const query = db.selectFrom('tasks').select('task_id').where('status', '=', 'queued');
  return (await query.limit(1).executeTakeFirst()) !== undefined;
}

/** A task with a worker, who may be dead. */
export interface RunningTask extends Claim {
  readonly heartbeat_at: number;
  readonly cancel_requested_at: number | null;
}

export async function runningTasks(db: Db): Promise<RunningTask[]> {
  return db
    .selectFrom('tasks')
    .select(['task_id', 'bot_id', 'version', 'deployment_id', 'attempts', 'input'])
    .select(['worker_id', 'heartbeat_at', 'cancel_requested_at'])
    .where('status', '=', 'running')
    .$narrowType<{ worker_id: string; heartbeat_at: number }>()
    .execute();
}

/** Has a task begun anew whose worker is dead, or ends it when that has been tried often enough. */
export async function recoverTask(tx: Db, task: RunningTask, now: number): Promise<void> {
  const { attempts, heartbeat_at } = task;
  if (!(await isHeld(tx, task, heartbeat_at))) return;
  if (task.cancel_requested_at !== null) {
    await endTask(tx, task, now, { status: 'canceled' });
  } else if (attempts < MOST_ATTEMPTS) {
    await requeue(tx, task, now, 'worker_died');
  } else {
    const error: TaskError = {
      code: 'failure',
      reason: 'worker_died',
      message: `it was begun ${attempts} times, and each time its worker died`,
      remedy: 'See the log of the server, and whether the machine has memory enough.',
    };
    await endTask(tx, task, now, { status: 'failed', error });
  }
}

async function requeue(tx: Db, task: Row, now: number, reason: string): Promise<void> {
  const { task_id, attempts, deployment_id } = task;
  const waiting = { status: 'queued', attempts, worker_id: null, heartbeat_at: null } as const;
  await tx
    .updateTable('tasks')
    .set({ ...waiting, started_at: null, progress_done: 0, progress_total: null })
    .where('task_id', '=', task_id)
    .where('status', '=', 'running')
    .execute();
  await dropFiles(tx, task_id);
  await setDeployment(tx, deployment_id, { status: 'pending' });
  await tell(tx, task, now, 'run.requeued', { reason });
}

const DEPLOYMENT_STATUS = { success: 'success', failed: 'failed', canceled: 'halted' } as const;

/** Ends a task that has not ended yet. */
export async function endTask(
  tx: Db,
  task: Row,
  now: number,
  outcome: TaskOutcome,
  progress?: Progress,
): Promise<void> {
  const { task_id, deployment_id } = task;
  const { status } = outcome;
  const ended = { status, worker_id: null, ended_at: now } as const;
  const result = status === 'success' ? outcome.result : null;
  const error = status === 'failed' ? JSON.stringify(outcome.error) : null;
  await tx
    .updateTable('tasks')
    .set({ ...ended, ...columnsOf(progress), result, error })
    .where('task_id', '=', task_id)
    .where('status', 'in', ['queued', 'running'])
    .execute();
  if (status !== 'success') await dropFiles(tx, task_id);
  const summary = status === 'success' ? outcome.summary : undefined;
  await setDeployment(tx, deployment_id, {
    status: DEPLOYMENT_STATUS[status],
    ended_at: now,
    result_summary: summary ? JSON.stringify(summary) : null,
  });
  const why = status === 'failed' && { error: outcome.error };
  await tell(tx, task, now, 'run.ended', { status, ...summary, ...why });
}

async function setDeployment(
  tx: Db,
  deployment_id: string,
  changes: Partial<Pick<BotDeploymentsTable, 'status' | 'ended_at' | 'result_summary'>>,
): Promise<void> {
  await tx
    .updateTable('bot_deployments')
    .set(changes)
    .where('deployment_id', '=', deployment_id)
    .where('status', 'in', ['pending', 'running'])
    .execute();
}

async function dropFiles(tx: Db, task_id: string): Promise<void> {
  await tx.deleteFrom('task_files').where('task_id', '=', task_id).execute();
}

/** Adds an event of the run to the log of its bot. */
export async function tell(
  tx: Db,
  {
    task_id,
    bot_id,
    version,
    deployment_id,
  }: Pick<Row, 'task_id' | 'bot_id' | 'version' | 'deployment_id'>,
  now: number,
  kind: `run.${string}`,
  payload: NewEvent['payload'],
): Promise<void> {
  await appendEvents(tx, bot_id, now, [
    { kind, version, occurred_at: now, run_id: task_id, payload: { deployment_id, ...payload } },
  ]);
}
