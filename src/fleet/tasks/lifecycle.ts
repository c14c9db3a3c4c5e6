import type { ChainHead } from '../../base/hash-chain.ts';
import type { ErrorData } from '../../base/error-data.ts';
/**
 * How a task goes from queued to running and to its end. Each step is one write, with the deployment
 * and the events of the bot in it, and happens only where the task still is as it is thought to be:
 * who was taken for dead and is not can change nothing any more, and what has ended stays as it
 * ended.
 */
import { ENGINE_VERSION } from '../../engine/version.ts';
import { appendEvents } from '../../events/append.ts';
import type { NewEvent } from '../../events/event.ts';
import { tradingHold } from '../../storage/database-identity.ts';
import { prepareBatchQuery } from '../../storage/prepare-batch-query.ts';
import type { BotDeploymentsTable, Db, TasksTable } from '../../storage/tables.ts';
import { isHeld, isSession, type Claim } from './claim.ts';
import { findHaltInForce } from './halt-in-force.ts';
import { closeRecorded, countFailure, readSession } from './session-record.ts';

/** So often a task is begun whose workers die of it, or with it. */
const MOST_ATTEMPTS = 3;
/**
 * So often in a row that for a paper session, without a batch recorded in between: one that goes on
 * outlives any number of servers.
 */
const MOST_FAILURES = 10;

/** How a task ends. */
export type TaskOutcome =
  | {
      readonly status: 'success';
      /** JSON object. */
      readonly result: string;
      /** What the deployment and the events tell of it. */
      readonly summary: Readonly<Record<string, unknown>>;
    }
  | { readonly status: 'failed'; readonly error: ErrorData }
  | { readonly status: 'canceled' };

type Row = Pick<TasksTable, 'task_id' | 'bot_id' | 'version' | 'deployment_id'>;

/**
 * Begins the tasks that have waited longest, at most so many. One that would trade and whose bot is
 * halted ends instead; of a production deployment that has begun, the halt has to be seen to its end.
 */
export async function claimTasks(
  tx: Db,
  now: number,
  worker_id: string,
  kind: Claim['kind'],
  most: number,
): Promise<Claim[]> {
  const found = await queuedTasks(tx, kind)
    .select(['task_id', 'kind', 'bot_id', 'version', 'deployment_id', 'attempts', 'input'])
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

/** One that is to replace another waits for more than a worker. */
function queuedTasks(db: Db, kind: Claim['kind']) {
  const queued = db.selectFrom('tasks').where('status', '=', 'queued').where('kind', '=', kind);
  if (kind !== 'production') return queued;
  return queued.where((is) =>
    is.not(
      is.exists(
        is
          .selectFrom('production_deployments as own')
          .select('own.waits')
          .whereRef('own.deployment_id', '=', 'tasks.deployment_id')
          .where('own.waits', '=', 1),
      ),
    ),
  );
}

/**
 * Whether nothing of it can be anywhere but in the database, and nothing waits for its end: it can end
 * without anybody's doing.
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

/** From where a task goes on: a session from what was recorded of it. */
async function progressOf(tx: Db, { task_id, kind }: Pick<Claim, 'task_id' | 'kind'>) {
  const done = isSession(kind) ? (await readSession(tx, task_id)).steps : 0;
  return { progress_done: done, progress_total: null };
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
export async function recordHeartbeat(
  tx: Db,
  held: Claim,
  now: number,
  progress: Progress | undefined,
  told: boolean,
): Promise<boolean> {
  if (!(await isHeld(tx, held))) return false;
  await tx
    .updateTable('tasks')
    .set({ heartbeat_at: now, ...columnsOf(progress) })
    .where('task_id', '=', held.task_id)
    .execute();
  if (told) await appendRunEvent(tx, held, now, 'run.progress', { ...progress });
  return true;
}

function columnsOf(progress: Progress | undefined) {
  return progress && { progress_done: progress.done, progress_total: progress.total };
}

/**
 * Says that a worker is at sessions, on paper and in production.
 *
 * @param sessions and whether each has been at it for long enough to have come to something.
 * @returns which of them are the worker's still.
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
    held.map(({ claim: { task_id } }) => [task_id, now]),
  );
  const proven = held.filter(({ isProven }) => isProven);
  await forgetFailures(
    tx,
    proven.map(({ claim: { task_id } }) => [task_id]),
  );
  return new Set(held.map(({ claim: { task_id } }) => task_id));
}

const setHeartbeats = prepareBatchQuery(2, (db, tasks) =>
  db
    .updateTable('tasks')
    .set({ heartbeat_at: tasks[0]![1] as number })
    .where(
      'task_id',
      'in',
      tasks.map(([task_id]) => task_id as string),
    ),
);

const forgetFailures = prepareBatchQuery(1, (db, tasks) =>
  db
    .updateTable('trading_sessions')
    .set({ failures: 0 })
    .where(
      'task_id',
      'in',
      tasks.map(([task_id]) => task_id as string),
    ),
);

/** Ends a task that a worker holds; does nothing when it is the worker's no more. */
export async function finishTask(
  tx: Db,
  held: Claim,
  now: number,
  outcome: TaskOutcome,
  progress: Progress | undefined,
): Promise<void> {
  if (!(await isHeld(tx, held))) return;
  if (outcome.status !== 'success' && held.kind === 'paper') await closeRecorded(tx, held, now);
  await endTask(tx, held, now, outcome, progress);
}

/**
 * Returns a task to the queue that its worker cannot continue, although the task did not fail.
 * Counts neither an attempt nor a failure. A task with a requested cancellation ends.
 * @param reason for the event `run.requeued`.
 */
export async function returnToQueue(
  tx: Db,
  held: Claim,
  now: number,
  reason: 'server_stopped' | 'storage_unavailable' | 'claim_lost' | 'database_not_adopted',
): Promise<void> {
  if (!(await isHeld(tx, held))) return;
  if (await isToEnd(tx, held)) return endUnattended(tx, held, now, { status: 'canceled' });
  await requeue(tx, { ...held, attempts: held.attempts - 1 }, now, reason);
}

/** Whether a task of a kind waits for a worker, and this database may start it. */
export async function hasQueuedTask(db: Db, kind: Claim['kind']): Promise<boolean> {
  const query = queuedTasks(db, kind).select('task_id').limit(1);
  if ((await query.executeTakeFirst()) === undefined) return false;
  return !isSession(kind) || (await tradingHold(db)) === undefined;
}

/** How many tasks of a kind run or wait for a worker. */
export async function countOpenTasks(db: Db, kind: Claim['kind']): Promise<number> {
  const count = (from: ReturnType<typeof queuedTasks>) =>
    from.select(({ fn }) => fn.countAll().as('count')).executeTakeFirstOrThrow();
  const running = db.selectFrom('tasks').where('status', '=', 'running').where('kind', '=', kind);
  const [one, other] = await Promise.all([count(queuedTasks(db, kind)), count(running)]);
  return Number(one.count) + Number(other.count);
}

/** A running task, its worker, and when the worker last reported it, by the clock of the worker. */
export interface HeldTask {
  readonly task_id: string;
  readonly worker_id: string;
  readonly heartbeat_at: number;
}

/** The running tasks of all workers but one. */
export async function listTasksOfOtherWorkers(db: Db, worker_id: string): Promise<HeldTask[]> {
  return db
    .selectFrom('tasks')
    .select(['task_id', 'worker_id', 'heartbeat_at'])
    .where('status', '=', 'running')
    .where('worker_id', '<>', worker_id)
    .$narrowType<HeldTask>()
    .execute();
}

/** A task with a worker, who may be dead. */
export interface RunningTask extends Claim {
  readonly heartbeat_at: number;
}

/** The tasks of a worker, or of all. */
export async function listRunningTasks(db: Db, worker_id?: string): Promise<RunningTask[]> {
  let query = db
    .selectFrom('tasks')
    .select(['task_id', 'kind', 'bot_id', 'version', 'deployment_id', 'attempts', 'input'])
    .select(['worker_id', 'heartbeat_at'])
    .where('status', '=', 'running');
  if (worker_id !== undefined) query = query.where('worker_id', '=', worker_id);
  return query.$narrowType<{ worker_id: string; heartbeat_at: number }>().execute();
}

/**
 * Those of the tasks of a worker that somebody wants to end, and whether they are to be canceled; but
 * for production deployments.
 */
export async function listTasksToEnd(
  db: Db,
  worker_id: string,
): Promise<{ readonly task_id: string; readonly isCanceled: boolean }[]> {
  const rows = await db
    .selectFrom('tasks')
    .leftJoin('trading_sessions', 'trading_sessions.task_id', 'tasks.task_id')
    .select(['tasks.task_id', 'tasks.cancel_requested_at'])
    .where('tasks.status', '=', 'running')
    .where('tasks.kind', '<>', 'production')
    .where('tasks.worker_id', '=', worker_id)
    .where((is) =>
      is.or([
        is('tasks.cancel_requested_at', 'is not', null),
        is('trading_sessions.stop_requested_at', 'is not', null),
      ]),
    )
    .execute();
  return rows.map(({ task_id, cancel_requested_at }) => ({
    task_id,
    isCanceled: cancel_requested_at !== null,
  }));
}

/**
 * Of the production deployments of a worker, those of which something is to be done: somebody wants
 * them to end, or their runner has ended.
 */
export async function listDeploymentsToEnd(db: Db, worker_id: string): Promise<string[]> {
  const rows = await db
    .selectFrom('tasks')
    .innerJoin('trading_sessions as session', 'session.task_id', 'tasks.task_id')
    .leftJoin('runners', 'runners.deployment_id', 'tasks.deployment_id')
    .select('tasks.task_id')
    .where('tasks.status', '=', 'running')
    .where('tasks.kind', '=', 'production')
    .where('tasks.worker_id', '=', worker_id)
    .where((is) =>
      is.or([
        is('tasks.cancel_requested_at', 'is not', null),
        is('session.stop_requested_at', 'is not', null),
        is('runners.ended', 'is not', null),
        is.exists(
          is
            .selectFrom('halts')
            .select('halt_id')
            .where('lifted_at', 'is', null)
            .where((of) =>
              of.or([
                of('halts.bot_id', 'is', null),
                of('halts.bot_id', '=', of.ref('tasks.bot_id')),
              ]),
            ),
        ),
      ]),
    )
    .execute();
  return rows.map(({ task_id }) => task_id);
}

/** Has a task begun anew whose worker is dead, or ends it when that has been tried often enough. */
export async function recoverTask(tx: Db, task: RunningTask, now: number): Promise<void> {
  if (await isHeld(tx, task, task.heartbeat_at)) await retry(tx, task, now);
}

/** The same for a worker who has lost what was at it. */
export async function retryTask(tx: Db, held: Claim, now: number): Promise<void> {
  if (await isHeld(tx, held)) await retry(tx, held, now);
}

async function retry(tx: Db, task: Claim, now: number): Promise<void> {
  if (await isToEnd(tx, task)) return endUnattended(tx, task, now, { status: 'canceled' });
  // What is in the cluster goes on, whoever looks after it.
  if (task.kind === 'production') return requeue(tx, task, now, 'worker_died');
  const isPaper = task.kind === 'paper';
  const times = isPaper ? await countFailure(tx, task) : task.attempts;
  if (times < (isPaper ? MOST_FAILURES : MOST_ATTEMPTS)) {
    return requeue(tx, task, now, 'worker_died');
  }
  const error: ErrorData = {
    code: 'failure',
    reason: 'worker_died',
    message: `it was begun ${times} times, and each time its worker died`,
    remedy: 'See the log of the server, and whether the machine has memory enough.',
  };
  await endUnattended(tx, task, now, { status: 'failed', error });
}

/** Whether it is to be canceled, and can be by whoever comes. */
async function isToEnd(tx: Db, task: Claim): Promise<boolean> {
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
  await dropFiles(tx, task_id);
  await setDeployment(tx, deployment_id, { status: 'pending' });
  await appendRunEvent(tx, task, now, 'run.requeued', { reason });
}

/**
 * Ends a task at which nobody is: what orders a session has working are canceled before. Not for a
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

async function dropFiles(tx: Db, task_id: string): Promise<void> {
  await tx.deleteFrom('task_files').where('task_id', '=', task_id).execute();
}

/** Adds an event of the run to the log of its bot. */
export async function appendRunEvent(
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
): Promise<ChainHead> {
  return appendEvents(tx, bot_id, now, [
    { kind, version, occurred_at: now, run_id: task_id, payload: { deployment_id, ...payload } },
  ]);
}
