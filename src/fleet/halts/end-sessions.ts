import { sql } from 'kysely';
import { appendToMany } from '../../events/append.ts';
import { prepareBatchQuery } from '../../storage/prepare-batch-query.ts';
import type { Db, HaltedDeploymentsTable, TradingSessionsTable } from '../../storage/tables.ts';
import { stateEvent } from '../tasks/session-record.ts';
import { orderEvent } from '../../trading/session-events.ts';
import { closeSession, type SessionState } from '../../events/session-state.ts';
import { selectSessions, type Place } from './active-sessions.ts';
import type { Halt } from './halts.ts';

export interface HaltedOrder {
  readonly order: number;
  readonly symbol: string;
}

/** The sessions that one write of a halt ended. */
export interface Ended {
  readonly task_ids: readonly string[];
  /** Position of the last session; undefined when none was left. */
  readonly last: Place | undefined;
}

/**
 * Ends paper sessions that a halt covers, in the order of their positions: cancels their working orders,
 * ends their tasks and deployments, and records the evidence. This needs no worker, because the orders
 * exist only in the record of the session, to which a worker without the task can add nothing.
 */
export async function endPaperSessions(
  tx: Db,
  now: number,
  halt: Halt,
  after: Place,
  limit: number,
): Promise<Ended> {
  const { halt_id } = halt;
  if (!(await isInForce(tx, halt_id))) return { task_ids: [], last: undefined };
  const deployments = await selectSessions(tx, halt, after)
    .innerJoin('tasks', 'tasks.task_id', 'deployment.task_id')
    .leftJoin('trading_sessions as session', 'session.task_id', 'deployment.task_id')
    .select(['deployment.bot_id', 'deployment.deployment_id', 'deployment.version'])
    .select(['deployment.task_id', 'session.state'])
    .orderBy('deployment.bot_id')
    .orderBy('deployment.deployment_id')
    .limit(limit)
    .execute();
  const last = deployments.at(-1);
  if (last === undefined) return { task_ids: [], last };

  const { scope, reason, requested_by: by } = halt;
  const why = { halt_id, scope, reason, by };
  const closed = deployments.map((deployment) => ({ deployment, ...close(deployment.state) }));
  const logs = closed.map(({ deployment, events: canceled, state }) => {
    const { bot_id, deployment_id, task_id: run_id, version } = deployment;
    const ended = { deployment_id, status: 'canceled', halt: why };
    const events = [
      ...canceled.map(orderEvent),
      ...(state ? [stateEvent(deployment, state, now)] : []),
      { kind: 'run.ended', occurred_at: now, payload: ended },
    ];
    return { bot_id, events: events.map((event) => ({ ...event, version, run_id })) };
  });
  const ends = await appendToMany(tx, now, logs);
  await Promise.all([
    endTasks(
      tx,
      now,
      deployments.map(({ task_id, deployment_id }) => [task_id, deployment_id]),
    ),
    insertEvidence(
      tx,
      closed.map(({ deployment: { deployment_id }, orders }, i) => {
        const { seq } = ends[i]!;
        const first = seq - logs[i]!.events.length + 1;
        return [halt_id, deployment_id, orders && JSON.stringify(orders), first, seq];
      }),
    ),
    updateStates(
      tx,
      closed.flatMap(({ deployment: { task_id }, state }) =>
        state ? [[task_id, JSON.stringify(state), now]] : [],
      ),
    ),
  ]);
  return { task_ids: deployments.map(({ task_id }) => task_id), last };
}

async function isInForce(tx: Db, halt_id: string): Promise<boolean> {
  const halt = await tx
    .selectFrom('halts')
    .select('lifted_at')
    .where('halt_id', '=', halt_id)
    .executeTakeFirst();
  return halt?.lifted_at === null;
}

/** @param text recorded state, as JSON. */
function close(text: string | null): Partial<ReturnType<typeof closeSession>> & {
  readonly events: ReturnType<typeof closeSession>['events'];
  readonly orders: readonly HaltedOrder[] | null;
} {
  const before = parseState(text);
  if (before === undefined) return { orders: null, events: [] };
  const orders = before.working.map(({ order, symbol }) => ({ order, symbol }));
  return { orders, ...closeSession(before, 'halted') };
}

/** Returns undefined for an invalid state, as a tampered row must not prevent the halt of other bots. */
export function parseState(text: string | null): SessionState | undefined {
  try {
    const state = JSON.parse(text ?? '') as SessionState;
    const isUsable =
      Array.isArray(state.working) &&
      Number.isInteger(state.seq) &&
      (state.time === null ? state.working.length === 0 : Number.isFinite(Date.parse(state.time)));
    return isUsable ? state : undefined;
  } catch {
    return undefined;
  }
}

/** @param ended task id and deployment id of each session. */
async function endTasks(
  tx: Db,
  now: number,
  ended: readonly (readonly [task_id: string, deployment_id: string])[],
): Promise<void> {
  await Promise.all([
    cancelTasks(
      tx,
      ended.map(([task_id]) => [task_id, now]),
    ),
    // A session that was about to end may have stored files.
    deleteFiles(
      tx,
      ended.map(([task_id]) => [task_id]),
    ),
    haltDeployments(
      tx,
      ended.map(([, deployment_id]) => [deployment_id, now]),
    ),
  ]);
}

/** Rows: task id, time of the end. */
const cancelTasks = prepareBatchQuery(2, (db, tasks) =>
  db
    .updateTable('tasks')
    .set({ status: 'canceled', worker_id: null, ended_at: tasks[0]![1] as number })
    .where('status', 'in', ['queued', 'running'])
    .where(
      'task_id',
      'in',
      tasks.map(([task_id]) => task_id as string),
    ),
);

const deleteFiles = prepareBatchQuery(1, (db, tasks) =>
  db.deleteFrom('task_files').where(
    'task_id',
    'in',
    tasks.map(([task_id]) => task_id as string),
  ),
);

/** Rows: deployment id, time of the end. */
const haltDeployments = prepareBatchQuery(2, (db, deployments) =>
  db
    .updateTable('bot_deployments')
    .set({ status: 'halted', ended_at: deployments[0]![1] as number })
    .where(
      'deployment_id',
      'in',
      deployments.map(([deployment_id]) => deployment_id as string),
    ),
);

const EVIDENCE = [
  'halt_id',
  'deployment_id',
  'orders',
  'first_seq',
  'last_seq',
] as const satisfies readonly (keyof HaltedDeploymentsTable)[];

/** A deployment that an earlier attempt recorded but did not end keeps its evidence. */
const insertEvidence = prepareBatchQuery(EVIDENCE.length, (db, rows) =>
  db
    .insertInto('halted_deployments')
    .values(
      rows.map(
        (row) =>
          Object.fromEntries(
            EVIDENCE.map((name, i) => [name, row[i]]),
          ) as unknown as HaltedDeploymentsTable,
      ),
    )
    .onConflict((of) =>
      of
        .columns(['halt_id', 'deployment_id'])
        .doUpdateSet((row) => ({ last_seq: row.ref('excluded.last_seq') })),
    ),
);

/** Rows: task id, state as JSON, time of the record. */
const updateStates = prepareBatchQuery(3, (db, sessions) => {
  const rows = sessions.map(
    ([task_id, state, recorded_at]) =>
      sql`select ${task_id} as task_id, ${state} as state, cast(${recorded_at} as bigint) as recorded_at`,
  );
  const all = sql<
    Pick<TradingSessionsTable, 'task_id' | 'state' | 'recorded_at'>
  >`(${sql.join(rows, sql` union all `)})`;
  return db
    .updateTable('trading_sessions')
    .from(all.as('closed'))
    .set((of) => ({ state: of.ref('closed.state'), recorded_at: of.ref('closed.recorded_at') }))
    .whereRef('trading_sessions.task_id', '=', 'closed.task_id');
});
