/**
 * Transitions of a task: queued → running → success, failed or canceled. Each transition is one write
 * that includes the deployment and the events of the bot. It does nothing if the task has changed
 * since the caller read it, so a worker that was wrongly considered dead can change nothing, and an
 * ended task stays as it ended.
 */
import type { ErrorData } from '../../base/error-data.ts';
import type { ChainHead } from '../../base/hash-chain.ts';
import { ENGINE_VERSION } from '../../engine/version.ts';
import { appendEvents } from '../../events/append.ts';
import type { NewEvent } from '../../events/event.ts';
import type { BotDeploymentsTable, Db, TasksTable } from '../../storage/tables.ts';
import { isHeld, isSession, type Claim } from './claim.ts';
import { findHaltInForce } from './halt-in-force.ts';
import { selectQueued, type RunningTask } from './open-tasks.ts';
import { ownTaskLevel } from './task-levels.ts';
import { taskNotices } from './task-notices.ts';
import { recordTrial, type ExecutedTaskTrial } from './trial-entries.ts';
import { closeRecorded, countFailure, readSession } from './session-record.ts';

/** Attempts at a task before it fails because its workers died. */
const MOST_ATTEMPTS = 3;
/** The same for a paper session, counting consecutive failures without a recorded batch. */
const MOST_FAILURES = 10;

export type TaskOutcome =
  | {
      readonly status: 'success';
      /** JSON object. */
      readonly result: string;
      /** Short form of the result, for the deployment and events. */
      readonly summary: Readonly<Record<string, unknown>>;
      readonly trial?: ExecutedTaskTrial | undefined;
    }
  | {
      readonly status: 'failed';
      readonly error: ErrorData;
      /** Names of the stored files to keep, such as the log of the strategy. */
      readonly files?: readonly string[] | undefined;
      readonly trial?: ExecutedTaskTrial | undefined;
    }
  | { readonly status: 'canceled' };

type Row = Pick<TasksTable, 'task_id' | 'bot_id' | 'version' | 'deployment_id'>;

/**
 * Claims the tasks up to a level that have waited longest, at most `most`. A trading task of a halted bot is canceled
 * instead, except for a production deployment that has begun, whose controller must end it.
 */
export async function claimTasks(
  tx: Db,
  now: number,
  worker_id: string,
  kind: Claim['kind'],
  most: number,
  level = ownTaskLevel(),
): Promise<Claim[]> {
  const found = await selectQueued(tx, kind, level)
    .select(['task_id', 'kind', 'bot_id', 'version', 'deployment_id', 'attempts', 'input'])
    .select('traceparent')
    .orderBy('task_id')
    .limit(most)
    .execute();
  const claims: Claim[] = [];
  for (const task of found) {
    const isHalted = isSession(kind) && (await findHaltInForce(tx, task.bot_id)) !== undefined;
    if (isHalted && (await isUnbegun(tx, task))) {
      await endUnattended(tx, task, now, { status: 'canceled' });
    } else {
      claims.push(await claim(tx, now, worker_id, task));
    }
  }
  return claims;
}

/**
 * Whether a queued or released task can end without a worker: nothing of it exists outside the
 * database, and no replacement waits for its end.
 */
export async function isUnbegun(
  tx: Db,
  { kind, deployment_id }: Pick<Claim, 'kind' | 'deployment_id'>,
): Promise<boolean> {
  if (kind !== 'production') return true;
  const row = await tx
    .selectFrom('production_deployments as own')
    .leftJoin('production_deployments as next', (join) =>
      join.onRef('next.replaces', '=', 'own.deployment_id').on('next.waits', '=', 1),
    )
    .select(['own.begun_at', 'next.deployment_id as awaited_by'])
    .where('own.deployment_id', '=', deployment_id)
    .executeTakeFirstOrThrow();
  return row.begun_at === null && row.awaited_by === null;
}

async function claim(
  tx: Db,
  now: number,
  worker_id: string,
  task: Omit<Claim, 'worker_id'>,
): Promise<Claim> {
  const attempts = task.attempts + 1;
  const begun = { status: 'running', attempts, worker_id, started_at: now } as const;
  await tx
    .updateTable('tasks')
    .set({ ...begun, heartbeat_at: now, ...(await progressOf(tx, task)) })
    .where('task_id', '=', task.task_id)
    .where('status', '=', 'queued')
    .execute();
  await dropFiles(tx, task.task_id);
  await setDeployment(tx, task.deployment_id, { status: 'running' });
  const made = { ...task, attempts, worker_id };
  await appendRunEvent(tx, made, now, 'run.started', { attempt: attempts, engine: ENGINE_VERSION });
  return made;
}

/** A session resumes from its recorded step; all other tasks restart. */
async function progressOf(tx: Db, { task_id, kind }: Pick<Claim, 'task_id' | 'kind'>) {
  const done = isSession(kind) ? (await readSession(tx, task_id)).steps : 0;
  return { progress_done: done, progress_total: null };
}

export interface Progress {
  readonly done: number;
  readonly total: number;
}

export function progressColumns(progress: Progress | undefined) {
  return progress && { progress_done: progress.done, progress_total: progress.total };
}

/** Ends a task that a worker holds. */
export async function finishTask(
  tx: Db,
  held: Claim,
  now: number,
  outcome: TaskOutcome,
  progress: Progress | undefined,
): Promise<void> {
  if (!(await isHeld(tx, held))) return;
  if (outcome.status !== 'success' && held.kind === 'paper') await closeRecorded(tx, held, now);
  if (outcome.status !== 'canceled' && outcome.trial !== undefined) {
    await recordTrial(tx, held.task_id, now, outcome.trial);
  }
  await endTask(tx, held, now, outcome, progress);
}

/**
 * Puts a task back into the queue without counting an attempt or a failure, or cancels it if that was
 * requested.
 * @param reason for the event `run.requeued`.
 */
export async function returnToQueue(
  tx: Db,
  held: Claim,
  now: number,
  reason: 'server_stopped' | 'storage_unavailable' | 'claim_lost' | 'database_not_adopted',
): Promise<void> {
  if (!(await isHeld(tx, held))) return;
  if (await canBeCanceled(tx, held)) return endUnattended(tx, held, now, { status: 'canceled' });
  await requeue(tx, { ...held, attempts: held.attempts - 1 }, now, reason);
}

/** Requeues a task whose worker is dead, or fails it after too many attempts. */
export async function recoverTask(tx: Db, task: RunningTask, now: number): Promise<void> {
  if (await isHeld(tx, task, task.heartbeat_at)) await retry(tx, task, now);
}

/** Requeues a task whose thread died, or fails it after too many attempts. */
export async function retryTask(tx: Db, held: Claim, now: number): Promise<void> {
  if (await isHeld(tx, held)) await retry(tx, held, now);
}

async function retry(tx: Db, task: Claim, now: number): Promise<void> {
  if (await canBeCanceled(tx, task)) return endUnattended(tx, task, now, { status: 'canceled' });
  // Its pod keeps running, so attempts are not limited.
  if (task.kind === 'production') return requeue(tx, task, now, 'worker_died');
  const isPaper = task.kind === 'paper';
  const times = isPaper ? await countFailure(tx, task) : task.attempts;
  if (times < (isPaper ? MOST_FAILURES : MOST_ATTEMPTS)) {
    return requeue(tx, task, now, 'worker_died');
  }
  const error: ErrorData = {
    code: 'failure',
    reason: 'worker_died',
    message: `the worker died in each of ${times} attempts`,
    remedy: 'Check the log of the server, and whether the machine has enough memory.',
  };
  await endUnattended(tx, task, now, { status: 'failed', error });
}

/** Whether cancellation was requested and needs no worker. */
async function canBeCanceled(tx: Db, task: Claim): Promise<boolean> {
  const { cancel_requested_at } = await tx
    .selectFrom('tasks')
    .select('cancel_requested_at')
    .where('task_id', '=', task.task_id)
    .executeTakeFirstOrThrow();
  return cancel_requested_at !== null && (await isUnbegun(tx, task));
}

async function requeue(tx: Db, task: Claim, now: number, reason: string): Promise<void> {
  const { task_id, attempts, deployment_id } = task;
  const waiting = { status: 'queued', attempts, worker_id: null, heartbeat_at: null } as const;
  await tx
    .updateTable('tasks')
    .set({ ...waiting, started_at: null, ...(await progressOf(tx, task)) })
    .where('task_id', '=', task_id)
    .where('status', '=', 'running')
    .execute();
  taskNotices.requeued(task.kind, reason);
  await dropFiles(tx, task_id);
  await setDeployment(tx, deployment_id, { status: 'pending' });
  await appendRunEvent(tx, task, now, 'run.requeued', { reason });
}

/**
 * Ends a task that no worker runs, after canceling the working orders of a session. Not for a
 * production deployment that has begun.
 */
export async function endUnattended(
  tx: Db,
  task: Row & Pick<Claim, 'kind'>,
  now: number,
  outcome: TaskOutcome,
): Promise<void> {
  if (isSession(task.kind)) await closeRecorded(tx, task, now);
  await endTask(tx, task, now, outcome);
}

const DEPLOYMENT_STATUS = { success: 'success', failed: 'failed', canceled: 'halted' } as const;

/** Ends a task; does nothing if it has ended. */
export async function endTask(
  tx: Db,
  task: Row & Pick<Claim, 'kind'>,
  now: number,
  outcome: TaskOutcome,
  progress?: Progress,
): Promise<void> {
  const { task_id, deployment_id } = task;
  const { status } = outcome;
  const ended = { status, worker_id: null, ended_at: now } as const;
  const result = status === 'success' ? outcome.result : null;
  const error = status === 'failed' ? JSON.stringify(outcome.error) : null;
  const { numUpdatedRows } = await tx
    .updateTable('tasks')
    .set({ ...ended, ...progressColumns(progress), result, error })
    .where('task_id', '=', task_id)
    .where('status', 'in', ['queued', 'running'])
    .executeTakeFirst();
  if (numUpdatedRows > 0n) {
    taskNotices.ended(task.kind, status);
    if (status === 'failed') taskNotices.failed(task, outcome.error);
  }
  if (status !== 'success') {
    await dropFiles(tx, task_id, status === 'failed' ? outcome.files : undefined);
  }
  const summary = status === 'success' ? outcome.summary : undefined;
  await setDeployment(tx, deployment_id, {
    status: DEPLOYMENT_STATUS[status],
    ended_at: now,
    result_summary: summary ? JSON.stringify(summary) : null,
  });
  const why = status === 'failed' && { error: outcome.error };
  await appendRunEvent(tx, task, now, 'run.ended', { status, ...summary, ...why });
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

async function dropFiles(tx: Db, task_id: string, kept: readonly string[] = []): Promise<void> {
  await tx
    .deleteFrom('task_files')
    .where('task_id', '=', task_id)
    .$if(kept.length > 0, (query) => query.where('name', 'not in', kept))
    .execute();
}

export async function appendRunEvent(
  tx: Db,
  { task_id, bot_id, version, deployment_id }: Row,
  now: number,
  kind: `${'run' | 'deploy'}.${string}`,
  payload: NewEvent['payload'],
): Promise<ChainHead> {
  return appendEvents(tx, bot_id, now, [
    { kind, version, occurred_at: now, run_id: task_id, payload: { deployment_id, ...payload } },
  ]);
}
