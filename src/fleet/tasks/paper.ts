/** Requests to start and stop paper sessions. */
import { activateDraft, getBot } from '../registry/bots.ts';
import { getRunnableVersion } from '../registry/versions.ts';
import { tradingProblems } from '../../bots/trading-problems.ts';
import { invalidSpec, readChangedSpec, type SpecChanges } from '../../bots/hosted.ts';
import { engineConfig, type BotSpec } from '../../bots/spec.ts';
import { ServiceError } from '../../base/errors.ts';
import type { Manifest } from '../../market/catalogue.ts';
import { parseWindow } from '../../market/bar-time.ts';
import { parseTimeframe } from '../../market/timeframe.ts';
import { serializeSubjects } from '../thresholds/subjects.ts';
import { refuseUnattributed } from '../thresholds/thresholds.ts';
import { requireAdopted } from '../../storage/database-identity.ts';
import type { Db } from '../../storage/tables.ts';
import type { SessionChoices } from '../../trading/host/threads/session-work.ts';
import { NO_LIVE_MARKETS } from '../../trading/live-markets.ts';
import { refuseHalted } from './halt-in-force.ts';
import { endUnattended, appendRunEvent } from './lifecycle.ts';
import { openAfterSession, readSession, startSession } from './session-record.ts';
import { refuseLatched } from './latches.ts';
import { getTask, queueTask, refuseWithoutData, type Task, type TaskService } from './tasks.ts';

export interface PaperRequest extends SpecChanges {
  /** Default: the current version. */
  readonly version?: number | undefined;
  /** Multiple of the market's pace, above 0; default 1. `max` does not wait between bars. */
  readonly speed?: number | 'max' | undefined;
  /** Trades on live bars of an exchange instead of bars of the catalogue. */
  readonly live?: LiveRequest | undefined;
  /** Reason for counting the loss limits of a live session from its own cash. */
  readonly reset_losses?: string | undefined;
}

export interface LiveRequest {
  /** Name in the server's exchanges file; may be omitted if there is only one. */
  readonly exchange?: string | undefined;
}

/** Input of the task of a paper session. */
export interface PaperInput extends SessionChoices {
  readonly reset_losses?: string;
}

export interface StartedPaper extends Pick<Task, 'task_id' | 'status'> {
  /** Number of other paper sessions of the bot that have not ended. */
  readonly other_sessions: number;
  /** Time between bars and approximate total time; null for live bars and the speed `max`. */
  readonly pace: { readonly bar_seconds: number; readonly total_seconds: number } | null;
}

/**
 * Queues a paper session of a bot version. A draft becomes active.
 *
 * @param by caller as in the audit log: `administrator:…`.
 * @throws ServiceError `database_not_adopted`; `not_found` for the bot or the version; `conflict` for a
 * bot that is archived, halted or latched, or lacks an attribution that thresholds require;
 * `invalid_spec` for invalid changes, missing data, a missing limit in `risk`, or a bot that does not
 * trade; errors of `LiveMarkets.choose`.
 */
export async function startPaper(
  service: TaskService,
  by: string,
  ref: string,
  { version: asked, speed = 1, live, reset_losses, ...changes }: PaperRequest,
): Promise<StartedPaper> {
  const { storage, clock, catalogueDir } = service;
  await requireAdopted(storage.read);
  const { bot_id, current_version } = await getBot(storage.read, ref);
  const version = asked ?? current_version;
  const { document, files } = await getRunnableVersion(service, bot_id, version);
  const hosted = readChangedSpec(document, changes, files);
  const problems = tradingProblems(hosted.spec);
  if (problems.length > 0) throw invalidSpec(problems, false);
  const data = live === undefined ? await refuseWithoutData(catalogueDir, hosted) : [];
  const pace = live || speed === 'max' ? null : paceOf(hosted.spec, data, speed);
  const other_sessions = await countSessions(storage.read, bot_id);
  const input: PaperInput = {
    ...changes,
    speed,
    ...(live && { live: await chooseLive(service, hosted.spec, live) }),
    ...(reset_losses !== undefined && { reset_losses }),
  };
  const { cash } = engineConfig(hosted.spec);
  return storage.write(async (tx) => {
    const now = clock();
    const bot = await getBot(tx, bot_id);
    await refuseHalted(tx, bot);
    await refuseLatched(tx, bot);
    const subjects = serializeSubjects(hosted.spec);
    await refuseUnattributed(tx, subjects);
    await activateDraft(tx, bot, by, now);
    const isContinued = live !== undefined && reset_losses === undefined;
    const opening = isContinued
      ? await openAfterSession(tx, { bot_id, kind: 'paper' }, cash, isLiveSession)
      : null;
    const task = await queueTask(tx, now, by, {
      kind: 'paper',
      bot_id,
      version,
      input: { ...input, ...(opening && { opening }) },
    });
    await startSession(tx, task, now, { cash, subjects });
    const { task_id } = task;
    return { task_id, status: 'queued' as const, other_sessions, pace };
  });
}

/** Whether a session follows an exchange; only such sessions carry losses over. */
export function isLiveSession({ input }: { readonly input: string }): boolean {
  return (JSON.parse(input) as PaperInput).live !== undefined;
}

function paceOf(
  { spec: { data } }: BotSpec,
  manifests: readonly Manifest[],
  speed: number,
): StartedPaper['pace'] {
  const window = parseWindow(data.from, data.to);
  const first = Math.min(...manifests.map(({ from }) => Date.parse(from)));
  const last = Math.max(...manifests.map(({ to }) => Date.parse(to)));
  const ms = Math.max(0, Math.min(last, window.to) - Math.max(first, window.from));
  const second = 1000 * speed;
  return {
    bar_seconds: parseTimeframe(data.timeframe).ms / second,
    total_seconds: ms / second,
  };
}

async function countSessions(db: Db, bot_id: string): Promise<number> {
  const { count } = await db
    .selectFrom('bot_deployments')
    .select(({ fn }) => fn.countAll().as('count'))
    .where('bot_id', '=', bot_id)
    .where('target', '=', 'paper')
    .where('ended_at', 'is', null)
    .executeTakeFirstOrThrow();
  return Number(count);
}

async function chooseLive(
  { live = NO_LIVE_MARKETS }: TaskService,
  { spec: { universe, data } }: BotSpec,
  { exchange: asked }: LiveRequest,
): Promise<NonNullable<PaperInput['live']>> {
  const { exchange } = await live.choose(asked, universe.symbols, data.timeframe);
  return { exchange };
}

/**
 * Requests the end of a paper session: its worker cancels the working orders and writes the result. A
 * session without bars is canceled; an ended one does not change.
 *
 * @throws ServiceError `not_found`; `conflict` for another kind of task.
 */
export async function stopPaper(
  { storage, clock }: Pick<TaskService, 'storage' | 'clock'>,
  by: string,
  task_id: string,
): Promise<Task> {
  return storage.write(async (tx) => {
    const task = await getTask(tx, task_id);
    if (task.kind !== 'paper') throw notPaper(task_id);
    const { steps, stop_requested_at } = await readSession(tx, task_id);
    if (task.ended_at !== null || stop_requested_at !== null) return task;
    const now = clock();
    await tx
      .updateTable('trading_sessions')
      .set({ stop_requested_at: now })
      .where('task_id', '=', task_id)
      .execute();
    await appendRunEvent(tx, task, now, 'run.stop_requested', { by });
    const isUnseen = task.status === 'queued' && steps === 0;
    if (isUnseen) await endUnattended(tx, task, now, { status: 'canceled' });
    return getTask(tx, task_id);
  });
}

function notPaper(task_id: string): ServiceError {
  return new ServiceError('conflict', `task ${task_id} is not a paper session`, {
    reason: 'not_paper',
    remedy: `Cancel it with \`service-local tasks cancel ${task_id}\`.`,
  });
}
