/** Replays recorded paper sessions, and compares them with backtests. */
import { type ChainHead, GENESIS } from '../../base/hash-chain.ts';
import { getBotId } from '../registry/bots.ts';
import { getRunnableVersion } from '../registry/versions.ts';
import { readChangedSpec, type SpecChanges } from '../../bots/hosted.ts';
import { ServiceError } from '../../base/errors.ts';
import type { EventFault } from '../../events/event.ts';
import { readLink, readRows } from '../../events/read-events.ts';
import type { Db, TradingSessionsTable } from '../../storage/tables.ts';
import type { Opening } from '../../trading/opening.ts';
import { parseOpening, type ProductionPlan } from '../deployments/production-plan.ts';
import { isLiveSession, type PaperInput } from '../tasks/paper.ts';
import { getTask, type Task, type TaskService } from '../tasks/tasks.ts';
import type { ParamValue, RunFork } from './fork-work.ts';
import { runReplayThread } from './replay-thread.ts';
import type { LogPart, RunParity, RunReplay, Subject } from './replay-work.ts';

interface Named {
  readonly run_id: string;
  readonly bot_id: string;
  /** Bot version of the session. */
  readonly version: number;
}

/**
 * Runs the strategy of a session again over its recorded bars, compares the events with the recorded
 * ones, and verifies the log.
 *
 * @throws ServiceError `not_found` for the bot or the run; `conflict` for another kind of run;
 * `overloaded`.
 */
export async function replayRun(
  service: TaskService,
  ref: string,
  run_id: string,
): Promise<RunReplay & Named> {
  const { read } = service.storage;
  const found = await findSession(read, ref, run_id);
  const work = await workOf(service, found);
  const done = await runReplayThread(work, partsOf(read, found));
  return { ...named(found), ...(done as RunReplay) };
}

export interface ParityRequest {
  /** Default: the newest paper session. */
  readonly run_id?: string | undefined;
  /** Version of the backtest; default: the version of the session. */
  readonly version?: number | undefined;
  /** Replaces parameters of the session in the backtest. */
  readonly params?: SpecChanges['params'];
}

export interface Parity extends RunParity, Named {
  /** Whether the session is active, so that only its events so far are compared. */
  readonly running: boolean;
  /** Source of the backtest's bars. */
  readonly against: 'catalogue' | 'recorded_bars';
  readonly equal: boolean;
}

/**
 * Compares a paper session with a backtest of the same window, and explains the first difference.
 *
 * @throws ServiceError `not_found` for the bot, the run or the version; `conflict` for another kind of
 * run; `invalid_spec` for invalid parameters or missing data; `overloaded`.
 */
export async function compareWithBacktest(
  service: TaskService,
  ref: string,
  { run_id, version, params = {} }: ParityRequest,
): Promise<Parity> {
  const { read } = service.storage;
  const found = await findSession(read, ref, run_id ?? (await newestSession(read, ref)));
  const work = await workOf(service, found);
  const { session } = work;
  const backtest = await subjectOf(service, found.task, version ?? session.version, {
    ...session.changes,
    params: { ...session.changes.params, ...params },
  });
  // Checked here, because the thread does not know which of the two specs an error belongs to.
  readChangedSpec(backtest.document, backtest.changes, backtest.files);
  const isLive = isLiveSession(found.task);
  const parity = { backtest, catalogueDir: isLive ? null : service.catalogueDir };
  const done = (await runReplayThread({ ...work, parity }, partsOf(read, found))) as RunParity;
  return {
    ...named(found),
    running: found.task.ended_at === null,
    against: isLive ? 'recorded_bars' : 'catalogue',
    equal: done.first_difference === null && done.fault === null,
    ...done,
  };
}

export interface ForkRequest {
  /** Default: the newest paper session. */
  readonly run_id?: string | undefined;
  /** Sequence number of an event; the parameters change after the bars up to it. */
  readonly at_seq: number;
  readonly params: Readonly<Record<string, ParamValue>>;
}

/** A fork. Without comparison if the log is faulty. */
export interface Fork extends Named {
  readonly schema: 'service-local/fork/v1';
  readonly at_seq: number;
  /** Whether the session is active, so that only its bars so far are used. */
  readonly running: boolean;
  readonly comparison: RunFork | null;
  readonly fault: EventFault | null;
}

/**
 * Runs a session again over its recorded inputs, and again with other parameters after the bars up to an
 * event. At an exchange, the fills of the second run are simulated from there on. Neither run is recorded.
 *
 * @throws ServiceError `not_found` for the bot or the run; `conflict` for another kind of run, an event
 * without bars before and after it, or a session that cannot be reproduced; `invalid_spec` for invalid
 * parameters; `overloaded`.
 */
export async function forkRun(
  service: TaskService,
  ref: string,
  { run_id, at_seq, params }: ForkRequest,
): Promise<Fork> {
  const { read } = service.storage;
  const found = await findSession(read, ref, run_id ?? (await newestSession(read, ref)));
  const work = await workOf(service, found);
  const { session } = work;
  const changes = { ...session.changes, params: { ...session.changes.params, ...params } };
  const changed = { ...session, changes };
  // Checked here, because the thread does not know which of the two specs an error belongs to.
  readChangedSpec(changed.document, changed.changes, changed.files);
  const fork = { bot_ref: ref, at_seq, changed };
  const done = await runReplayThread({ ...work, fork }, partsOf(read, found));
  return {
    schema: 'service-local/fork/v1',
    ...named(found),
    at_seq,
    running: found.task.ended_at === null,
    ...('curves' in done
      ? { comparison: done, fault: null }
      : { comparison: null, fault: done.fault }),
  };
}

interface Found {
  readonly task: Task;
  readonly session: Pick<TradingSessionsTable, 'first_seq'>;
}

function named({ task: { task_id, bot_id, version } }: Found): Named {
  return { run_id: task_id, bot_id, version };
}

async function findSession(db: Db, ref: string, run_id: string): Promise<Found> {
  const bot_id = await getBotId(db, ref);
  const task = await getTask(db, run_id);
  if (task.bot_id !== bot_id) {
    throw new ServiceError('not_found', `bot ${ref} has no run ${JSON.stringify(run_id)}`, {
      remedy: `See \`service-local bots deployments ${ref}\`.`,
    });
  }
  const session = await db
    .selectFrom('trading_sessions')
    .select('first_seq')
    .where('task_id', '=', run_id)
    .executeTakeFirst();
  if (session !== undefined) return { task, session };
  throw new ServiceError('conflict', `run ${run_id} is a ${task.kind}, which records no bars`, {
    reason: 'no_session',
    remedy: 'Name a paper session; to repeat a backtest, use --verify-lock.',
  });
}

async function newestSession(db: Db, ref: string): Promise<string> {
  const row = await db
    .selectFrom('tasks')
    .select('task_id')
    .where('bot_id', '=', await getBotId(db, ref))
    .where('kind', '=', 'paper')
    .orderBy('task_id', 'desc')
    .limit(1)
    .executeTakeFirst();
  if (row !== undefined) return row.task_id;
  throw new ServiceError('not_found', `bot ${ref} has no paper session`, {
    remedy: `Start one with \`service-local bots paper start ${ref}\`.`,
  });
}

async function workOf(service: TaskService, { task, session }: Found) {
  const { opening, deployment_id, ...changes } = await startOf(service.storage.read, task);
  return {
    run_id: task.task_id,
    deployment_id,
    session: { ...(await subjectOf(service, task, task.version, changes)), opening },
    before: await headBefore(service.storage.read, task.bot_id, session.first_seq),
    timeoutMs: TIMEOUT_MS,
    customCode: service.customCode,
  };
}

interface SessionStart extends SpecChanges {
  readonly opening?: Opening | undefined;
  /** Undefined unless the session traded at an exchange. */
  readonly deployment_id?: string | undefined;
}

async function startOf(db: Db, task: Task): Promise<SessionStart> {
  if (task.kind !== 'production') {
    const { from, to, params, opening } = JSON.parse(task.input) as PaperInput;
    return { from, to, params, opening };
  }
  const { deployment_id } = task;
  const row = await db
    .selectFrom('production_deployments')
    .select(['plan', 'opening'])
    .where('deployment_id', '=', deployment_id)
    .executeTakeFirstOrThrow();
  const { params, venue } = JSON.parse(row.plan) as ProductionPlan;
  return {
    params,
    opening: row.opening === null ? undefined : parseOpening(row.opening),
    deployment_id: venue === 'exchange' ? deployment_id : undefined,
  };
}

/** Longer than the time after which the thread is ended. */
const TIMEOUT_MS = 60_000;

async function subjectOf(
  service: TaskService,
  { bot_id }: Task,
  version: number,
  changes: SpecChanges,
): Promise<Subject> {
  return { version, ...(await getRunnableVersion(service, bot_id, version)), changes };
}

async function headBefore(db: Db, bot_id: string, first_seq: number): Promise<ChainHead> {
  return (await readLink(db, bot_id, first_seq - 1)) ?? GENESIS;
}

/** Explains why archived events are needed that the request did not name. */
function neededError({ message, remedy }: ServiceError, { task, session }: Found): ServiceError {
  return new ServiceError(
    'archived',
    `run ${task.task_id} must be read from its first event, ${session.first_seq}, but ${message}`,
    { ...(remedy !== undefined && { remedy }) },
  );
}

/** Rows per query, so that other queries are not held up. */
const PAGE = 500;

/**
 * Reads the log from the first event of a session to its last, or to the last event at the start.
 * @throws ServiceError `archived`
 */
async function* partsOf(db: Db, { task, session }: Found): AsyncGenerator<LogPart, void> {
  const { bot_id, task_id, ended_at } = task;
  let after_seq = session.first_seq - 1;
  let until_seq: number | undefined;
  for (;;) {
    const range = { after_seq, until_seq, limit: PAGE };
    const { rows, head } = await readRows(db, bot_id, range).catch((error: unknown) => {
      throw error instanceof ServiceError && error.code === 'archived'
        ? neededError(error, { task, session })
        : error;
    });
    // Without a fixed end, reading might never catch up with an active session.
    if (ended_at === null) until_seq ??= head.seq;
    const last = rows.findIndex((row) => row.run_id === task_id && row.kind === 'run.ended');
    if (last >= 0) {
      yield { rows: rows.slice(0, last + 1) };
      return yield { end: rows[last]!.seq };
    }
    yield { rows };
    after_seq = rows.at(-1)?.seq ?? after_seq;
    // An ended session without `run.ended` lacks at least one event.
    if (rows.length < PAGE) return yield { end: until_seq ?? after_seq + 1 };
  }
}
