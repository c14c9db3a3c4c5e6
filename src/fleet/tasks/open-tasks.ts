/** Queries of a worker for tasks that have not ended. */
import { tradingHold } from '../../storage/database-identity.ts';
import { prepareQuery } from '../../storage/prepare-query.ts';
import type { Db } from '../../storage/tables.ts';
import { isSession, type Claim } from './claim.ts';
import { ownTaskLevel } from './task-levels.ts';

/**
 * Tasks of a kind that can start now, which a deployment that waits to replace another cannot.
 * @param level see `task-levels.ts`.
 */
export function selectQueued(db: Db, kind: Claim['kind'], level: number) {
  const queued = db
    .selectFrom('tasks')
    .where('status', '=', 'queued')
    .where('kind', '=', kind)
    .where('needs_level', '<=', level);
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

/** Whether a task of a kind waits for a worker of a level, and this database may start it. */
export async function hasQueuedTask(
  db: Db,
  kind: Claim['kind'],
  level = ownTaskLevel(),
): Promise<boolean> {
  if ((await FIRST_QUEUED[kind](db, { level })).length === 0) return false;
  return !isSession(kind) || (await tradingHold(db)) === undefined;
}

const prepareFirstQueued = (kind: Claim['kind']) =>
  prepareQuery((db, { level }: { readonly level: number }) =>
    selectQueued(db, kind, level).select('task_id').limit(1),
  );

const FIRST_QUEUED = {
  backtest: prepareFirstQueued('backtest'),
  paper: prepareFirstQueued('paper'),
  production: prepareFirstQueued('production'),
  conformance: prepareFirstQueued('conformance'),
  stress: prepareFirstQueued('stress'),
  sweep: prepareFirstQueued('sweep'),
  walk_forward: prepareFirstQueued('walk_forward'),
  robustness: prepareFirstQueued('robustness'),
} satisfies Record<Claim['kind'], unknown>;

/** Number of queued tasks that only workers above a level can run. */
export async function countNewerTasks(db: Db, level: number): Promise<number> {
  return Number((await selectNewerCount(db, { level }))[0]!.count);
}

const selectNewerCount = prepareQuery((db, { level }: { readonly level: number }) =>
  db
    .selectFrom('tasks')
    .select(({ fn }) => fn.countAll().as('count'))
    .where('status', '=', 'queued')
    .where('needs_level', '>', level),
);

/** Number of tasks of a kind that run, or wait for a worker of a level. */
export async function countOpenTasks(
  db: Db,
  kind: Claim['kind'],
  level = ownTaskLevel(),
): Promise<number> {
  const count = (from: ReturnType<typeof selectQueued>) =>
    from.select(({ fn }) => fn.countAll().as('count')).executeTakeFirstOrThrow();
  const running = db.selectFrom('tasks').where('status', '=', 'running').where('kind', '=', kind);
  const [one, other] = await Promise.all([count(selectQueued(db, kind, level)), count(running)]);
  return Number(one.count) + Number(other.count);
}

export interface HeldTask {
  readonly task_id: string;
  readonly worker_id: string;
  /** Time of the last heartbeat by the clock of the worker, ms since the Unix epoch. */
  readonly heartbeat_at: number;
}

/** The running tasks of all workers but one. */
export function listTasksOfOtherWorkers(db: Db, worker_id: string): Promise<HeldTask[]> {
  return selectTasksOfOthers(db, { worker_id });
}

const selectTasksOfOthers = prepareQuery((db, { worker_id }: OfWorker) =>
  db
    .selectFrom('tasks')
    .select(['task_id', 'worker_id', 'heartbeat_at'])
    .where('status', '=', 'running')
    .where('worker_id', '<>', worker_id)
    .$narrowType<HeldTask>(),
);

interface OfWorker {
  readonly worker_id: string;
}

/** A running task, whose worker may be dead. */
export interface RunningTask extends Claim {
  readonly heartbeat_at: number;
}

/**
 * The running tasks of a worker, or of all workers.
 * @param silentSince if given, only tasks without a heartbeat since then, ms since the Unix epoch.
 */
export async function listRunningTasks(
  db: Db,
  worker_id?: string,
  silentSince?: number,
): Promise<RunningTask[]> {
  let query = db
    .selectFrom('tasks')
    .select(['task_id', 'kind', 'bot_id', 'version', 'deployment_id', 'attempts', 'input'])
    .select(['worker_id', 'heartbeat_at', 'traceparent'])
    .where('status', '=', 'running');
  if (worker_id !== undefined) query = query.where('worker_id', '=', worker_id);
  if (silentSince !== undefined) query = query.where('heartbeat_at', '<', silentSince);
  return query.$narrowType<{ worker_id: string; heartbeat_at: number }>().execute();
}

/** The running tasks of a worker that must be canceled or end early, without production deployments. */
export async function listTasksToEnd(
  db: Db,
  worker_id: string,
): Promise<{ readonly task_id: string; readonly isCanceled: boolean }[]> {
  const rows = await selectTasksToEnd(db, { worker_id });
  return rows.map(({ task_id, cancel_requested_at }) => ({
    task_id,
    isCanceled: cancel_requested_at !== null,
  }));
}

const selectTasksToEnd = prepareQuery((db, { worker_id }: OfWorker) =>
  db
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
    ),
);

/** The production deployments of a worker that must end, by request or because their runner ended. */
export async function listDeploymentsToEnd(db: Db, worker_id: string): Promise<string[]> {
  return (await selectDeploymentsToEnd(db, { worker_id })).map(({ task_id }) => task_id);
}

const selectDeploymentsToEnd = prepareQuery((db, { worker_id }: OfWorker) =>
  db
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
    ),
);
