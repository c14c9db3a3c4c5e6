import type { ChainHead } from '../../base/hash-chain.ts';
import { sql } from 'kysely';
import { appendSessionEvents } from '../../events/append.ts';
import { sharedBars } from '../../events/packed-bar-rows.ts';
import { prepareRowsQuery } from '../../storage/prepare-rows-query.ts';
import { prepareSharedRead, shareQuery } from '../../storage/share-query.ts';
import type { Db, TradingSessionsTable, TasksTable } from '../../storage/tables.ts';
import type { WriteOptions } from '../../storage/write-queue.ts';
import { closeSession, type SessionState, type WorkingOrder } from '../../events/session-state.ts';
import { markUsed } from '../thresholds/overrides.ts';
import type { UsedPermit } from '../../engine/risk/permits.ts';
import { openingAfterLosses, type Opening } from '../../trading/opening.ts';
import { alertEvent, alertsOf } from '../../trading/alerts.ts';
import type { TaskBatch } from '../../trading/host/threads/session-work.ts';
import { isHeld, type Claim } from './claim.ts';
import { taskNotices } from './task-notices.ts';
import { findHaltInForce } from './halt-in-force.ts';
import {
  LOGGED,
  orderEvent,
  OVERRIDE_USED,
  type SessionBatch,
  type SessionEvent,
} from '../../trading/session-events.ts';

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
 * Options of a write that changes only the record of a bot's task: its row, its session, its events.
 * @param events with bars, if any, which sessions of other bots may record, too.
 */
export function botWrite(
  { bot_id }: Pick<SessionTask, 'bot_id'>,
  events: readonly SessionEvent[] = [],
): WriteOptions {
  return { scope: `bot:${bot_id}`, shared: sharedBars(events) };
}

/**
 * Adds a batch and, if it has changed, the state of the session to the log of the bot. Needs no more
 * than the options of `botWrite`.
 *
 * @param now milliseconds since the Unix epoch.
 * @returns false, without writing, when the claim is no longer valid or the bot is halted.
 */
export async function recordBatch(
  tx: Db,
  claim: Claim,
  now: number,
  batch: TaskBatch,
): Promise<boolean> {
  const { task_id, bot_id } = claim;
  const [isOurs, halt, before] = await Promise.all([
    isHeld(tx, claim),
    findHaltInForce(tx, bot_id),
    readSession(tx, task_id),
  ]);
  if (!isOurs || halt !== undefined) return false;
  const { number, steps, total } = batch;
  if (number <= before.batches) return true;
  if (number > before.batches + 1) throw new RangeError(`batch ${number} of ${task_id} is early`);
  await Promise.all([
    updateTask(tx, { task_id, progress_done: steps, progress_total: total, heartbeat_at: now }),
    writeBatch(tx, claim, now, before, batch),
  ]);
  if (batch.made_at !== undefined) taskNotices.recorded(Math.max(0, now - batch.made_at));
  return true;
}

/** Adds the next batch of a session without checking the claim of its task. */
export async function writeBatch(
  tx: Db,
  task: SessionTask,
  now: number,
  before: Pick<RecordedSession, 'state'>,
  { number, events, made_at, state, steps }: SessionBatch,
): Promise<void> {
  const text = JSON.stringify(state);
  const change = text === before.state ? [] : [stateEvent(task, state, now)];
  const alerts = alertsOf(events);
  if (alerts.length === 0) await appendSession(tx, task, now, withState(events, change));
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

/** Puts the state before logged lines, because a state is packed only if it directly follows its bars. */
function withState(
  events: readonly SessionEvent[],
  change: readonly SessionEvent[],
): readonly SessionEvent[] {
  const lines = events.at(-1)?.kind === LOGGED ? events.slice(-1) : [];
  return [...events.slice(0, events.length - lines.length), ...change, ...lines];
}

/**
 * Cancels the working orders of a session as last recorded, before its task ends.
 * @returns the canceled orders.
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
  // A session without a batch has not begun, so that the losses before it are still the newest.
  const count = batches === 0 ? 0 : batches + 1;
  const after = { batches: count, steps, state: JSON.stringify(state), recorded_at: now };
  await updateSession(tx, { task_id, ...after });
  return before.working;
}

export async function appendSession(
  tx: Db,
  { task_id: run_id, bot_id, version }: SessionTask,
  now: number,
  events: readonly SessionEvent[],
): Promise<ChainHead> {
  const whole = events.map((event) => ({ ...event, version, run_id }));
  return appendSessionEvents(tx, bot_id, now, whole);
}

/** @param now time of the event if the session has seen no bars. */
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

/** Reads a session as of its last batch. */
export async function readSession(db: Db, task_id: string): Promise<RecordedSession> {
  const session = await selectSession(db, task_id);
  if (session === undefined) throw new RangeError(`${task_id} is no session`);
  return session;
}

const selectSession = prepareSharedRead('trading_sessions.task_id', (db) =>
  db
    .selectFrom('trading_sessions')
    .select(['task_id', 'first_seq', 'batches', 'steps', 'state', 'stop_requested_at']),
);

/** @returns number of consecutive failures of the session. */
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

const updateSession = shareQuery(
  prepareRowsQuery<Recorded>(
    { task_id: 'text', batches: 'bigint', steps: 'bigint', state: 'text', recorded_at: 'bigint' },
    (db, sessions) =>
      db
        .updateTable('trading_sessions')
        .from(sessions.as('recorded'))
        .set((of) => ({
          batches: of.ref('recorded.batches'),
          steps: of.ref('recorded.steps'),
          state: of.ref('recorded.state'),
          recorded_at: of.ref('recorded.recorded_at'),
          failures: 0,
        }))
        .whereRef('trading_sessions.task_id', '=', 'recorded.task_id'),
  ),
);

type TaskProgress = Pick<
  TasksTable,
  'task_id' | 'progress_done' | 'progress_total' | 'heartbeat_at'
>;

const updateTask = shareQuery(
  prepareRowsQuery<TaskProgress>(
    { task_id: 'text', progress_done: 'bigint', progress_total: 'bigint', heartbeat_at: 'bigint' },
    (db, tasks) =>
      db
        .updateTable('tasks')
        .from(tasks.as('recorded'))
        .set((of) => ({
          progress_done: of.ref('recorded.progress_done'),
          progress_total: of.ref('recorded.progress_total'),
          heartbeat_at: of.ref('recorded.heartbeat_at'),
        }))
        .whereRef('tasks.task_id', '=', 'recorded.task_id'),
  ),
);

/**
 * Opening of an account of `cash` that carries over, in proportion, the losses of the bot's newest
 * ended session that `matches`; null without such a session.
 */
export async function openAfterSession(
  tx: Db,
  { bot_id, kind }: Pick<Claim, 'bot_id' | 'kind'>,
  cash: number,
  matches: (session: { readonly input: string; readonly plan: string | null }) => boolean,
): Promise<Opening | null> {
  const rows = await tx
    .selectFrom('bot_deployments as deployment')
    .innerJoin('tasks', 'tasks.task_id', 'deployment.task_id')
    .innerJoin('trading_sessions as session', 'session.task_id', 'deployment.task_id')
    .leftJoin('production_deployments as own', 'own.deployment_id', 'deployment.deployment_id')
    .select(['tasks.input', 'own.plan', 'session.state'])
    .where('deployment.bot_id', '=', bot_id)
    .where('tasks.kind', '=', kind)
    .where('deployment.ended_at', 'is not', null)
    .where('session.batches', '>', 0)
    .orderBy('deployment.ended_at', 'desc')
    .limit(MOST_SEARCHED)
    .execute();
  const last = rows.find(matches);
  return last ? openingAfterLosses(JSON.parse(last.state) as SessionState, cash) : null;
}

const MOST_SEARCHED = 100;
