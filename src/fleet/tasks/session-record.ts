/** How what a session does gets into the log of its bot, from where it can be had again. */
import type { ChainHead } from '../../base/hash-chain.ts';
import { sql } from 'kysely';
import { appendEvents } from '../../events/append.ts';
import { prepareQuery } from '../../storage/prepare-query.ts';
import type { Db, TradingSessionsTable, TasksTable } from '../../storage/tables.ts';
import { closeSession, type SessionState, type WorkingOrder } from '../../events/session-state.ts';
import { markUsed } from '../thresholds/overrides.ts';
import type { UsedPermit } from '../../engine/risk/supervision.ts';
import { alertEvent, alertsOf } from '../../trading/alerts.ts';
import { isHeld, type Claim } from './claim.ts';
import { findHaltInForce } from './halt-in-force.ts';
import { orderEvent, OVERRIDE_USED, type SessionEvent } from '../../trading/session-events.ts';

/** What a session has done since the batch before. */
export interface Batch {
  /** From 1 for each session: one of which nobody knows whether it was written is sent again. */
  readonly number: number;
  readonly events: readonly SessionEvent[];
  /** When the oldest of them was made, by the clock of who made it, ms since the Unix epoch. */
  readonly made_at?: number | undefined;
  /** After it. */
  readonly state: SessionState;
  /** Steps of bars that have been taken in all, and of how many, where that is known. */
  readonly steps: number;
  readonly total: number | null;
}

/** Whose events they are. */
export type SessionTask = Readonly<
  Pick<TasksTable, 'task_id' | 'bot_id' | 'version' | 'deployment_id'>
>;

/**
 * Records a session that has not begun, with its state and further events.
 * @param subjects result of `serializeSubjects`.
 */
export async function startSession(
  tx: Db,
  task: SessionTask & Pick<ChainHead, 'seq'>,
  now: number,
  { cash, subjects }: { readonly cash: number; readonly subjects: string },
  events: readonly SessionEvent[] = [],
): Promise<void> {
  const { task_id, bot_id, seq: first_seq } = task;
  const account = { cash, equity: cash, positions: {}, working: [] };
  const state: SessionState = { status: 'running', time: null, seq: 0, ...account };
  const counts = { batches: 0, steps: 0, failures: 0, latches_lifted: 0 };
  const recorded = { state: JSON.stringify(state), recorded_at: now, stop_requested_at: null };
  await tx
    .insertInto('trading_sessions')
    .values({ task_id, bot_id, first_seq, ...counts, ...recorded, subjects })
    .execute();
  await appendSession(tx, task, now, [stateEvent(task, state, now), ...events]);
}

/**
 * Adds a batch to the log of the bot, and the state after it where that is another.
 *
 * @param now milliseconds since the Unix epoch.
 * @returns false when the task is the worker's no more, or the bot is halted: nothing is written then.
 */
export async function recordBatch(
  tx: Db,
  claim: Claim,
  now: number,
  batch: Batch,
): Promise<boolean> {
  const { task_id, bot_id } = claim;
  if (!(await isHeld(tx, claim))) return false;
  if ((await findHaltInForce(tx, bot_id)) !== undefined) return false;
  const { number, steps, total } = batch;
  const before = await readSession(tx, task_id);
  if (number <= before.batches) return true;
  if (number > before.batches + 1) throw new RangeError(`batch ${number} of ${task_id} is early`);
  await writeBatch(tx, claim, now, before, batch);
  await updateTask(tx, { task_id, steps, total, now });
  return true;
}

/**
 * Adds the batch that comes next, whoever is at the task: what was recorded stays as it is.
 * @param before what was recorded of the session until then.
 */
export async function writeBatch(
  tx: Db,
  task: SessionTask,
  now: number,
  before: Pick<RecordedSession, 'state'>,
  { number, events, made_at, state, steps }: Omit<Batch, 'total'>,
): Promise<void> {
  const text = JSON.stringify(state);
  const change = text === before.state ? [] : [stateEvent(task, state, now)];
  const alerts = alertsOf(events);
  if (alerts.length === 0) await appendSession(tx, task, now, [...events, ...change]);
  else {
    const { seq: last } = await appendSession(tx, task, now, events);
    const seqOf = (place: number): number => last - events.length + 1 + place;
    const raised = alerts.map((one) => alertEvent(one, seqOf(one.first), made_at, now));
    await appendSession(tx, task, now, [...raised, ...change]);
  }
  for (const { kind, payload } of events) {
    if (kind === OVERRIDE_USED)
      await markUsed(tx, task.task_id, payload as unknown as UsedPermit, now);
  }
  const recorded = { batches: number, steps, state: text, recorded_at: now };
  await updateSession(tx, { task_id: task.task_id, ...recorded });
}

/**
 * Cancels the orders that were working when the session was recorded last, as whoever ends its task
 * does before.
 * @returns the orders.
 */
export async function closeRecorded(
  tx: Db,
  task: SessionTask,
  now: number,
): Promise<readonly WorkingOrder[]> {
  const { task_id } = task;
  const { state: text, batches, steps } = await readSession(tx, task_id);
  const before = JSON.parse(text) as SessionState;
  const { events, state } = closeSession(before, 'halted');
  if (JSON.stringify(state) === text) return [];
  await appendSession(tx, task, now, [...events.map(orderEvent), stateEvent(task, state, now)]);
  const after = { batches: batches + 1, steps, state: JSON.stringify(state), recorded_at: now };
  await updateSession(tx, { task_id, ...after });
  return before.working;
}

/** Adds what a session has to tell to the log of its bot. */
export async function appendSession(
  tx: Db,
  { task_id: run_id, bot_id, version }: SessionTask,
  now: number,
  events: readonly SessionEvent[],
): Promise<ChainHead> {
  const whole = events.map((event) => ({ ...event, version, run_id }));
  return appendEvents(tx, bot_id, now, whole);
}

/** @param now for a session that has seen no bars. */
export function stateEvent(
  { deployment_id }: SessionTask,
  state: SessionState,
  now: number,
): SessionEvent {
  const occurred_at = state.time === null ? now : Date.parse(state.time);
  return { kind: 'session.state', occurred_at, payload: { deployment_id, ...state } };
}

export type RecordedSession = Readonly<
  Pick<TradingSessionsTable, 'first_seq' | 'batches' | 'steps' | 'state' | 'stop_requested_at'>
>;

/** Where a session is, as of its last batch. */
export async function readSession(db: Db, task_id: string): Promise<RecordedSession> {
  const [session] = await selectSession(db, { task_id });
  if (session === undefined) throw new RangeError(`${task_id} is no session`);
  return session;
}

const selectSession = prepareQuery((db, { task_id }: { readonly task_id: string }) =>
  db
    .selectFrom('trading_sessions')
    .select(['first_seq', 'batches', 'steps', 'state', 'stop_requested_at'])
    .where('task_id', '=', task_id),
);

/** @returns how often in a row it came to nothing by now. */
export async function countFailure(tx: Db, { task_id }: SessionTask): Promise<number> {
  const { failures } = await tx
    .updateTable('trading_sessions')
    .set((of) => ({ failures: sql<number>`${of.ref('failures')} + 1` }))
    .where('task_id', '=', task_id)
    .returning('failures')
    .executeTakeFirstOrThrow();
  return failures;
}

type Recorded = Pick<
  TradingSessionsTable,
  'task_id' | 'batches' | 'steps' | 'state' | 'recorded_at'
>;

const updateSession = prepareQuery((db, { task_id, ...columns }: Recorded) =>
  db
    .updateTable('trading_sessions')
    .set({ ...columns, failures: 0 })
    .where('task_id', '=', task_id),
);

interface TaskProgress {
  readonly task_id: string;
  readonly steps: number;
  readonly total: number | null;
  readonly now: number;
}

const updateTask = prepareQuery((db, { task_id, steps, total, now }: TaskProgress) =>
  db
    .updateTable('tasks')
    .set({ progress_done: steps, progress_total: total, heartbeat_at: now })
    .where('task_id', '=', task_id),
);
