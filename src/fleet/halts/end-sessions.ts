import { appendToMany } from '../../events/append.ts';
import { prepareInsert, prepareRowsQuery } from '../../storage/prepare-rows-query.ts';
import type { BotDeploymentsTable, Db, TradingSessionsTable } from '../../storage/tables.ts';
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
  readonly deployment_ids: readonly string[];
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
  if (!(await isInForce(tx, halt_id))) return NONE;
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
  if (last === undefined) return NONE;

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
  const states = closed.flatMap(({ deployment: { task_id }, state }) =>
    state ? [{ task_id, state: JSON.stringify(state), recorded_at: now }] : [],
  );
  // PostgreSQL runs these updates while this process builds the events.
  const [ends] = await Promise.all([
    appendToMany(tx, now, logs),
    endTasks(tx, now, deployments),
    updateStates(tx, states),
  ]);
  await insertEvidence(
    tx,
    closed.map(({ deployment: { deployment_id }, orders }, i) => {
      const { seq } = ends[i]!;
      const first = seq - logs[i]!.events.length + 1;
      const text = orders && JSON.stringify(orders);
      return { halt_id, deployment_id, orders: text, first_seq: first, last_seq: seq };
    }),
  );
  return {
    task_ids: deployments.map(({ task_id }) => task_id),
    deployment_ids: deployments.map(({ deployment_id }) => deployment_id),
    last,
  };
}

const NONE: Ended = { task_ids: [], deployment_ids: [], last: undefined };

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

/** Ends the tasks and deployments of sessions. */
async function endTasks(tx: Db, now: number, ended: readonly Ids[]): Promise<void> {
  const rows = ended.map((ids) => ({ ...ids, ended_at: now }));
  await Promise.all([
    cancelTasks(tx, rows),
    // A session that was about to end may have stored files.
    deleteFiles(tx, ended),
    haltDeployments(tx, rows),
  ]);
}

type Ids = Pick<BotDeploymentsTable, 'task_id' | 'deployment_id'>;
type Timed<Id extends keyof Ids> = Pick<Ids, Id> & { readonly ended_at: number };

const cancelTasks = prepareRowsQuery<Timed<'task_id'>>(
  { task_id: 'text', ended_at: 'bigint' },
  (db, ended) =>
    db
      .updateTable('tasks')
      .from(ended.as('ended'))
      .set((of) => ({ status: 'canceled', worker_id: null, ended_at: of.ref('ended.ended_at') }))
      .where('tasks.status', 'in', ['queued', 'running'])
      .whereRef('tasks.task_id', '=', 'ended.task_id'),
);

const deleteFiles = prepareRowsQuery<Pick<Ids, 'task_id'>>({ task_id: 'text' }, (db, ended) =>
  db
    .deleteFrom('task_files')
    .where('task_id', 'in', db.selectFrom(ended.as('ended')).select('ended.task_id')),
);

const haltDeployments = prepareRowsQuery<Timed<'deployment_id'>>(
  { deployment_id: 'text', ended_at: 'bigint' },
  (db, ended) =>
    db
      .updateTable('bot_deployments')
      .from(ended.as('ended'))
      .set((of) => ({ status: 'halted', ended_at: of.ref('ended.ended_at') }))
      .whereRef('bot_deployments.deployment_id', '=', 'ended.deployment_id'),
);

/** A deployment that an earlier attempt recorded but did not end keeps its evidence. */
const insertEvidence = prepareInsert(
  'halted_deployments',
  {
    halt_id: 'text',
    deployment_id: 'text',
    orders: 'text',
    first_seq: 'bigint',
    last_seq: 'bigint',
  },
  (insert) =>
    insert.onConflict((of) =>
      of
        .columns(['halt_id', 'deployment_id'])
        .doUpdateSet((row) => ({ last_seq: row.ref('excluded.last_seq') })),
    ),
);

type ClosedSession = Pick<TradingSessionsTable, 'task_id' | 'state' | 'recorded_at'>;

const updateStates = prepareRowsQuery<ClosedSession>(
  { task_id: 'text', state: 'text', recorded_at: 'bigint' },
  (db, sessions) =>
    db
      .updateTable('trading_sessions')
      .from(sessions.as('closed'))
      .set((of) => ({ state: of.ref('closed.state'), recorded_at: of.ref('closed.recorded_at') }))
      .whereRef('trading_sessions.task_id', '=', 'closed.task_id'),
);
