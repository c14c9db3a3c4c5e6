/** Background tasks and their deployments. Times are milliseconds since the Unix epoch. */
import { v7 as uuidv7 } from 'uuid';
import { activateDraft, getBotId, getBot, type BotRegistry } from '../registry/bots.ts';
import { admitChanges } from '../registry/new-version.ts';
import { keepUnsaved } from '../registry/unsaved-bundles.ts';
import { getRunnableVersion } from '../registry/versions.ts';
import { bundleHash, type Bundle } from '../../bots/bundle.ts';
import {
  invalidSpec,
  readChangedSpec,
  type HostedSpec,
  type SpecChanges,
} from '../../bots/hosted.ts';
import { closest } from '../../base/closest.ts';
import { ServiceError, type Problem } from '../../base/errors.ts';
import { datasetNames, resolveDataset, type Manifest } from '../../market/catalogue.ts';
import { currentTraceparent } from '../../base/tracing.ts';
import { parseWindow } from '../../market/bar-time.ts';
import { readRowsPage, type Page, type PageRequest } from '../../storage/paging.ts';
import type { LiveMarkets } from '../../trading/live-markets.ts';
import type { BotDeploymentsTable, Db, TasksTable } from '../../storage/tables.ts';
import { findEndingHalt, type KnownHalt } from './halt-in-force.ts';
import { endUnattended, isUnbegun, appendRunEvent } from './lifecycle.ts';
import { neededTaskLevel } from './task-levels.ts';
import { findFirstLock, refuseUnlocked } from './verify-lock.ts';

export interface TaskService extends BotRegistry {
  readonly catalogueDir: string;
  /** Directory of archived events, from which sessions resume. */
  readonly archiveDir?: string;
  /** Undefined if the server knows no exchange. */
  readonly live?: LiveMarkets;
}

/** A task without its result, which is large. */
export type Task = Readonly<
  Omit<TasksTable, 'result' | 'worker_id' | 'heartbeat_at' | 'needs_level' | 'traceparent'>
>;

export type BotDeployment = Readonly<BotDeploymentsTable>;

export interface BacktestRequest extends SpecChanges {
  /** Default: the current version. */
  readonly version?: number | undefined;
  /** Fails the task if anything differs from the lock of the first such backtest. */
  readonly verify_lock?: boolean | undefined;
  /** Includes the holdout of the spec in the run, and records the opening. */
  readonly open_holdout?: boolean | undefined;
  /** All files of the run; by default, the files of the version. */
  readonly files?: Bundle | undefined;
}

/** Input of the task of a backtest. */
export type BacktestInput = Omit<BacktestRequest, 'version' | 'files'> & {
  /** Hash of unsaved files; null for no files. Absent for a run with the files of the version. */
  readonly bundle_hash?: string | null | undefined;
};

/**
 * Queues a backtest of a bot version. A draft becomes active.
 *
 * @param by caller as in the audit log: `administrator:…`.
 * @throws ServiceError `not_found` for the bot or the version; `conflict` for an archived bot, or
 * without a lock to verify; `invalid_spec` for invalid changes or files, or missing data.
 */
export async function startBacktest(
  service: TaskService,
  by: string,
  ref: string,
  { version: asked, verify_lock, open_holdout, files: sent, ...changes }: BacktestRequest,
): Promise<Pick<Task, 'task_id' | 'status'>> {
  const { storage, clock, catalogueDir } = service;
  const { bot_id, current_version } = await getBot(storage.read, ref);
  const version = asked ?? current_version;
  const { document, files } = await getRunnableVersion(service, bot_id, version);
  const unsaved = sent && differs(sent, files) ? sent : undefined;
  const spec =
    unsaved === undefined
      ? readChangedSpec(document, changes, files)
      : await admitChanges(document, changes, unsaved, service.customCode);
  await refuseWithoutData(catalogueDir, spec);
  if (open_holdout) refuseWithoutHoldout(spec);
  const run = {
    ...changes,
    ...(open_holdout && { open_holdout }),
    ...(unsaved && { bundle_hash: spec.files === undefined ? null : bundleHash(spec.files) }),
  };
  const input: BacktestInput = verify_lock ? { ...run, verify_lock } : run;
  if (verify_lock) refuseUnlocked(await findFirstLock(storage.read, { bot_id, version }, run));
  return storage.write(async (tx) => {
    const now = clock();
    await activateDraft(tx, await getBot(tx, bot_id), by, now);
    const { task_id } = await queueTask(tx, now, by, { kind: 'backtest', bot_id, version, input });
    if (unsaved && spec.files !== undefined) await keepUnsaved(tx, task_id, spec.files, now);
    return { task_id, status: 'queued' as const };
  });
}

function differs(sent: Bundle, saved: Bundle = {}): boolean {
  return bundleHash(sent) !== bundleHash(saved);
}

function refuseWithoutHoldout({ spec }: HostedSpec): void {
  if (spec.spec.data.holdout !== undefined) return;
  throw new ServiceError('conflict', 'this version declares no holdout', {
    reason: 'no_holdout',
    remedy: 'Set data.holdout in a new version, for example to 1y.',
  });
}

interface NewTask extends Pick<Task, 'kind' | 'bot_id' | 'version'> {
  /** Default: a new id. */
  readonly deployment_id?: string;
  readonly input: Readonly<Record<string, unknown>>;
}

const TARGETS = {
  backtest: 'backtest',
  paper: 'paper',
  production: 'k8s',
  conformance: 'test',
  stress: 'test',
  sweep: 'test',
  walk_forward: 'test',
  robustness: 'test',
} as const satisfies Readonly<Record<Task['kind'], BotDeployment['target']>>;

/**
 * Queues a task for a bot version, and creates its deployment.
 * @returns the task, and the sequence number of its first event.
 */
export async function queueTask(
  tx: Db,
  now: number,
  by: string,
  { kind, bot_id, version, input, deployment_id = uuidv7({ msecs: now }) }: NewTask,
): Promise<
  Pick<Task, 'task_id' | 'deployment_id' | 'bot_id' | 'version'> & { readonly seq: number }
> {
  const task_id = uuidv7({ msecs: now });
  const place = { task_id, deployment_id, bot_id, version };
  const open = { ...place, created_at: now, ended_at: null };
  const target = TARGETS[kind];
  await tx
    .insertInto('bot_deployments')
    .values({ ...open, target, status: 'pending', result_summary: null })
    .execute();
  const task = {
    ...open,
    kind,
    status: 'queued',
    input: JSON.stringify(input),
    progress_done: 0,
    progress_total: null,
    error: null,
    attempts: 0,
    cancel_requested_at: null,
    created_by: by,
    started_at: null,
  } as const;
  const unheld = { result: null, worker_id: null, heartbeat_at: null };
  const origin = { needs_level: neededTaskLevel(kind, input), traceparent: currentTraceparent() };
  await tx
    .insertInto('tasks')
    .values({ ...task, ...unheld, ...origin })
    .execute();
  const test = target === 'test' && { test: kind };
  const { seq } = await appendRunEvent(tx, task, now, 'run.queued', { target, ...test, input, by });
  return { ...place, seq };
}

/**
 * Checks that the catalogue has data in the window of the spec.
 * @returns the manifests of the datasets. @throws ServiceError `invalid_spec`
 */
export async function refuseWithoutData(
  catalogueDir: string,
  { spec }: HostedSpec,
): Promise<readonly Manifest[]> {
  const { source, sources = {} } = spec.spec.data;
  const used: readonly (readonly [pointer: string, address: string])[] =
    source === undefined
      ? Object.entries(sources).map(([symbol, one]) => [`/spec/data/sources/${symbol}`, one])
      : [['/spec/data/source', source]];
  const window = parseWindow(spec.spec.data.from, spec.spec.data.to);
  const problems: Problem[] = [];
  const manifests: Manifest[] = [];
  for (const [pointer, address] of used) {
    try {
      const found = await resolveDataset(catalogueDir, address);
      if (found === undefined) continue;
      manifests.push(found.manifest);
      const { from, to } = found.manifest;
      if (Date.parse(to) >= window.from && Date.parse(from) < window.to) continue;
      const message = `${address} has no bars in the window; its data range from ${from} to ${to}`;
      problems.push({ code: 'data_not_found', pointer, message });
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      const exists = error.code !== 'file_not_found';
      const near = exists ? undefined : closest(nameOf(address), await datasetNames(catalogueDir));
      problems.push({
        code: 'data_not_found',
        pointer,
        message: exists
          ? `${address} is damaged; import it again on the server with \`service-local data import --replace\``
          : `the catalogue of the server has no ${address}; import it on the server with \`service-local data import\``,
        ...(near !== undefined && { suggestion: `catalog://${near}` }),
      });
    }
  }
  if (problems.length > 0) throw invalidSpec(problems, false);
  return manifests;
}

function nameOf(address: string): string {
  return address.slice(address.lastIndexOf('/') + 1);
}

export const TASK_FIELDS = [
  'task_id',
  'kind',
  'bot_id',
  'version',
  'deployment_id',
  'status',
  'input',
  'progress_done',
  'progress_total',
  'error',
  'attempts',
  'cancel_requested_at',
  'created_by',
  'created_at',
  'started_at',
  'ended_at',
] as const satisfies readonly (keyof Task)[];

/** @throws ServiceError `not_found` */
export async function getTask(db: Db, task_id: string): Promise<Task> {
  const task = await db
    .selectFrom('tasks')
    .select(TASK_FIELDS)
    .where('task_id', '=', task_id)
    .executeTakeFirst();
  if (task !== undefined) return task;
  throw new ServiceError('not_found', `there is no task ${JSON.stringify(task_id)}`, {
    remedy: 'See `service-local tasks list`.',
  });
}

/**
 * Cancels a task: at once if it is queued, else through its worker. Does nothing to an ended task.
 * @throws ServiceError `not_found`
 */
export async function cancelTask(
  { storage, clock }: BotRegistry,
  by: string,
  task_id: string,
): Promise<Task> {
  return storage.write(async (tx) => {
    const task = await getTask(tx, task_id);
    const isOpen = task.status === 'queued' || task.status === 'running';
    if (!isOpen || task.cancel_requested_at !== null) return task;
    const now = clock();
    await tx
      .updateTable('tasks')
      .set({ cancel_requested_at: now })
      .where('task_id', '=', task_id)
      .execute();
    await appendRunEvent(tx, task, now, 'run.cancel_requested', { by });
    if (task.status === 'queued' && (await isUnbegun(tx, task))) {
      await endUnattended(tx, task, now, { status: 'canceled' });
    }
    return getTask(tx, task_id);
  });
}

/**
 * Reads the result of a task, as JSON.
 * @throws ServiceError `not_found`; `conflict` when the task has no result or has not ended.
 */
export async function getResult(db: Db, task_id: string): Promise<string> {
  const row = await db
    .selectFrom('tasks')
    .select('result')
    .where('task_id', '=', task_id)
    .executeTakeFirst();
  if (typeof row?.result === 'string') return row.result;
  const task = await getTask(db, task_id);
  const { status } = task;
  const halt = status === 'canceled' ? await findEndingHalt(db, task) : undefined;
  if (halt !== undefined) throw endedByHalt(task_id, halt);
  const isOpen = status === 'queued' || status === 'running';
  throw new ServiceError('conflict', `task ${task_id} has no result: its status is ${status}`, {
    reason: isOpen ? 'not_ended' : 'no_result',
    remedy: isOpen
      ? `Wait for the result with \`service-local tasks result ${task_id} --wait\`.`
      : `See \`service-local tasks get ${task_id}\` for the reason.`,
  });
}

function endedByHalt(
  task_id: string,
  { halt_id, scope, requested_at, requested_by, reason }: KnownHalt,
): ServiceError {
  const who = scope === 'all' ? 'all bots' : 'the bot';
  const when = new Date(requested_at).toISOString();
  return new ServiceError(
    'conflict',
    `task ${task_id} has no result: ${requested_by} halted ${who} at ${when}: ${reason}`,
    {
      reason: 'no_result',
      remedy: `See halt ${halt_id} in \`service-local bots halts\`.`,
    },
  );
}

/**
 * Lists the deployments of a bot, newest first.
 * @throws ServiceError `not_found`
 */
export async function listDeployments(
  db: Db,
  ref: string,
  request: PageRequest,
): Promise<Page<BotDeployment>> {
  const bot_id = await getBotId(db, ref);
  const query = db.selectFrom('bot_deployments').selectAll().where('bot_id', '=', bot_id);
  return readRowsPage(['bot-deployments', bot_id], request, query, 'deployment_id', 'desc');
}
