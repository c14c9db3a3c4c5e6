/**
 * Reports of runners, the pods of production deployments. Of all processes with the token of a
 * deployment, one at a time holds its claim, so that two never trade even if the cluster is slow to end
 * a pod.
 */
import { timingSafeEqual } from 'node:crypto';
import { sql } from 'kysely';
import { ERROR_CODES, ServiceError, type ErrorCode } from '../../base/errors.ts';
import { packageVersion } from '../../base/package-version.ts';
import { RUNNER_PROTOCOL } from '../../base/runner-protocol.ts';
import { hashSecret } from '../../identity/secrets.ts';
import { readSupervision, readInForce } from '../thresholds/read-supervision.ts';
import {
  databaseIdentity,
  notAdopted,
  supersede,
  tradingHold,
  type TradingHold,
} from '../../storage/database-identity.ts';
import type { Storage, StorageService } from '../../storage/storage.ts';
import type { Db, RunnersTable } from '../../storage/tables.ts';
import { findHaltInForce, type KnownHalt } from '../tasks/halt-in-force.ts';
import type { ErrorData } from '../../base/error-data.ts';
import { readSession, writeBatch, botWrite } from '../tasks/session-record.ts';
import type { SessionBatch } from '../../trading/session-events.ts';
import type { SessionSupervision } from '../../trading/session-supervision.ts';

/** Duration of a claim after a report. */
const CLAIM_SECONDS = 30;
const REPORT_SECONDS = 5;

export interface RunnerEnd {
  readonly outcome: 'stopped' | 'halted' | 'failed';
  /** Whether the runner read back from the venue that it has no open orders. */
  readonly verified: boolean;
  /** Orders that were working when the end began. */
  readonly orders: readonly EndedOrder[];
  readonly error: ErrorData | null;
}

export interface EndedOrder {
  readonly order: number;
  readonly symbol: string;
  readonly verified: boolean;
}

/** Stored part of the last report. */
export interface KnownReport {
  readonly status: 'starting' | 'trading' | 'denying' | 'halting' | 'stopping' | 'ended';
  readonly denying: string | null;
  readonly venue: {
    readonly connected: boolean;
    readonly open_orders: number | null;
    readonly checked_at: string | null;
  };
}

export interface Report extends KnownReport {
  readonly instance_id: string;
  /** Highest epoch of the server's database that the runner knows; default 1. */
  readonly database_epoch?: number | undefined;
  /** Null requests the claim. */
  readonly epoch: number | null;
  readonly batch: SessionBatch | null;
  readonly ended: (Omit<RunnerEnd, 'error'> & { readonly error: ReportedError | null }) | null;
}

interface ReportedError extends Omit<ErrorData, 'code'> {
  readonly code: string;
}

/** The program that reports, as it announces itself. */
export interface RunnerProgram {
  /** Version of service-local; undefined for versions that do not announce theirs. */
  readonly version: string | undefined;
  /** See `RUNNER_PROTOCOL`. */
  readonly protocol: number;
}

interface Service extends StorageService {
  /** Seconds between two reports of a runner; default 5. */
  readonly reportSeconds?: number | undefined;
}

/** Answer to a report. */
export interface RunnerInstructions {
  readonly epoch: number;
  readonly claim_seconds: number;
  readonly report_seconds: number;
  readonly command: 'trade' | 'halt' | 'stop';
  readonly halt: KnownHalt | null;
  /** Number of the last recorded batch. */
  readonly recorded: number;
  readonly controls: SessionSupervision;
  /** Trace of the request that deployed the bot. */
  readonly traceparent?: string;
}

/** @throws ServiceError `not_authenticated`; `not_found` for an unknown or ended deployment */
export async function requireRunner(db: Db, deployment_id: string, token: string): Promise<Runner> {
  const runner = await find(db, deployment_id);
  admit(runner, token);
  return runner;
}

/**
 * Takes a report: renews or grants the claim, records the batch, and answers with instructions.
 *
 * @throws ServiceError `not_authenticated`; `not_found` for an unknown or ended deployment;
 *   `conflict` with the reason `fenced` while another instance holds the claim;
 *   `database_not_adopted` or `incompatible_version` if the runner would trade.
 */
export async function takeReport(
  { storage, clock, reportSeconds = REPORT_SECONDS }: Service,
  deployment_id: string,
  token: string,
  report: Report,
  program: RunnerProgram,
): Promise<RunnerInstructions> {
  // Checked before the write as well, so that unauthenticated requests never wait for it.
  const known = await requireRunner(storage.read, deployment_id, token);
  const database_epoch = await epochOf(storage, report);
  const hold = await tradingHold(storage.read);
  const take = async (tx: Db): Promise<RunnerInstructions> => {
    const now = storage.kind === 'postgres' ? await readClock(tx) : clock();
    const runner = await requireRunner(tx, deployment_id, token);
    const { task_id, bot_id } = runner;
    const halt = await findHaltInForce(tx, bot_id);
    const before = await readSession(tx, task_id);
    const last = runner.ended === null ? null : (JSON.parse(runner.ended) as RunnerEnd);
    const isToStop =
      before.stop_requested_at !== null ||
      runner.cancel_requested_at !== null ||
      last?.outcome === 'failed';
    const command = halt ? 'halt' : isToStop ? 'stop' : 'trade';
    // The end of an instance is always accepted, since an ended instance does not trade.
    const isToTrade = command === 'trade' && report.ended === null;
    if (isToTrade) refuseToTrade(hold, program);
    const epoch = renewClaim(runner, last, report, now, command);

    const { batch } = report;
    const isSame = epoch === runner.epoch;
    const ended = endAfter(last, isSame, report.ended);
    // The end of an earlier instance may have failed the deployment; the claim of this one still runs.
    const hasEnded = isSame && last !== null && runner.claimed_until <= now;
    const isOver = report.ended !== null || hasEnded;
    const isNext = batch?.number === before.batches + 1;
    if (isNext) {
      await writeBatch(tx, runner, now, before, batch);
      await setProgress(tx, task_id, batch.steps);
    }
    await tx
      .updateTable('runners')
      .set({
        ...columnsOf(report, program),
        epoch,
        claimed_until: isOver ? Math.min(now, runner.claimed_until) : now + CLAIM_SECONDS * 1000,
        reported_at: now,
        ended: ended && JSON.stringify(ended),
      })
      .where('deployment_id', '=', deployment_id)
      .execute();
    return {
      epoch,
      claim_seconds: CLAIM_SECONDS,
      report_seconds: reportSeconds,
      command,
      halt: halt ?? null,
      recorded: isNext ? batch.number : before.batches,
      controls: {
        ...(await readSupervision(tx, task_id, await readInForce(tx, now))),
        ...(database_epoch > 1 && { database_epoch }),
      },
      ...(runner.traceparent !== null && { traceparent: runner.traceparent }),
    };
  };
  return storage.write(take, botWrite(known, report.batch?.events));
}

async function setProgress(tx: Db, task_id: string, progress_done: number): Promise<void> {
  await tx.updateTable('tasks').set({ progress_done }).where('task_id', '=', task_id).execute();
}

/**
 * Returns the epoch of the database. If a runner knows a newer one, a copy was adopted: this is
 * recorded, and nothing trades with this database until it is adopted itself.
 */
async function epochOf(storage: Storage, { database_epoch = 1 }: Report): Promise<number> {
  const { epoch } = await databaseIdentity(storage.read);
  if (database_epoch > epoch) await storage.write((tx) => supersede(tx, database_epoch));
  return epoch;
}

type Runner = NonNullable<Awaited<ReturnType<typeof find>>>;

function find(db: Db, deployment_id: string) {
  return db
    .selectFrom('runners')
    .innerJoin('bot_deployments as deployment', 'deployment.deployment_id', 'runners.deployment_id')
    .innerJoin('tasks', 'tasks.task_id', 'deployment.task_id')
    .select(['token_hash', 'epoch', 'instance_id', 'claimed_until', 'ended'])
    .select(['tasks.task_id', 'tasks.bot_id', 'tasks.version', 'tasks.deployment_id'])
    .select(['tasks.cancel_requested_at', 'tasks.traceparent', 'deployment.ended_at'])
    .where('runners.deployment_id', '=', deployment_id)
    .executeTakeFirst();
}

function admit(runner: Runner | undefined, token: string): asserts runner is Runner {
  if (runner === undefined) throw unknownDeployment('there is no such deployment');
  const [sent, known] = [hashSecret(token), runner.token_hash].map((text) => Buffer.from(text));
  if (!timingSafeEqual(sent!, known!)) {
    throw new ServiceError('not_authenticated', 'the token does not belong to this deployment', {
      reason: 'unknown_token',
      remedy: 'Read the token again from the Secret of the deployment.',
    });
  }
  if (runner.ended_at !== null) throw unknownDeployment('the deployment has ended');
}

function unknownDeployment(message: string): ServiceError {
  return new ServiceError('not_found', message, {
    remedy: 'Cancel all open orders, and exit.',
  });
}

function columnsOf(
  { instance_id, status, denying, venue }: Report,
  { version = null }: { readonly version?: string | null | undefined },
): Pick<RunnersTable, 'instance_id' | 'report' | 'version'> {
  const report = JSON.stringify({ status, denying, venue } satisfies KnownReport);
  return { instance_id, report, version };
}

function refuseToTrade(
  hold: TradingHold | undefined,
  { version = 'unknown', protocol }: RunnerProgram,
): void {
  if (hold !== undefined) throw notAdopted(hold);
  const { oldest, newest } = RUNNER_PROTOCOL;
  if (protocol >= oldest && protocol <= newest) return;
  const isRunnerOld = protocol < oldest;
  const accepted = oldest === newest ? `protocol ${newest}` : `protocols ${oldest} to ${newest}`;
  throw new ServiceError(
    'incompatible_version',
    `the runner has version ${version} with protocol ${protocol}, but this server has version ${packageVersion()} and accepts ${accepted}`,
    {
      reason: isRunnerOld ? 'runner_too_old' : 'server_too_old',
      remedy: isRunnerOld
        ? 'Set the image of the cluster to the version of the servers, and run `service-local bots deploy BOT --replace`.'
        : 'Upgrade all servers to the version of the runner.',
    },
  );
}

/** @returns the epoch of the instance that sent the report. */
function renewClaim(
  { epoch, instance_id, claimed_until }: Runner,
  ended: RunnerEnd | null,
  report: Report,
  now: number,
  command: RunnerInstructions['command'],
): number {
  // A repeated request, for example after a lost answer, keeps the same claim.
  const isOwn = instance_id === report.instance_id && (report.epoch ?? epoch) === epoch;
  if (isOwn) return epoch;
  if (report.epoch !== null || claimed_until > now) throw fenced(claimed_until - now);
  // An instance that the cluster restarts must not trade after its predecessor has ended properly.
  const isDone = command !== 'trade' && ended?.verified === true;
  if (isDone) throw unknownDeployment('the deployment is ending, and has nothing left to do');
  return epoch + 1;
}

/** Time by the clock of the database, as the clocks of servers may differ by more than a claim. */
async function readClock(tx: Db): Promise<number> {
  const { rows } = await sql<{
    readonly now: number;
  }>`select cast(extract(epoch from clock_timestamp()) * 1000 as bigint) as now`.execute(tx);
  return rows[0]!.now;
}

/**
 * Returns the end of the current instance. Late reports of an ended instance do not change it; a new
 * instance clears it, unless the previous one failed, which ends the deployment.
 */
function endAfter(
  last: RunnerEnd | null,
  isSame: boolean,
  reported: Report['ended'],
): RunnerEnd | null {
  const failed = last?.outcome === 'failed' ? last : null;
  if (reported === null) return isSame ? last : failed;
  const { outcome, error } = failed ?? endOf(reported);
  return { ...endOf(reported), outcome, error };
}

function fenced(ms: number): ServiceError {
  return new ServiceError('conflict', 'another instance of this deployment holds the claim', {
    reason: 'fenced',
    remedy: 'Leave trading to that instance, or end it and wait until its claim has expired.',
    retryAfterSeconds: Math.max(1, Math.ceil(ms / 1000)),
  });
}

function endOf({ error, ...ended }: NonNullable<Report['ended']>): RunnerEnd {
  if (error === null) return { ...ended, error };
  const isKnown = ERROR_CODES.includes(error.code as ErrorCode);
  return { ...ended, error: { ...error, code: isKnown ? (error.code as ErrorCode) : 'failure' } };
}

/** Whether a runner has sent no report for the duration of a claim since it was requested to end. */
export function isSilent(
  { reported_at }: Pick<RunnersTable, 'reported_at'>,
  since: number,
  now: number,
): boolean {
  return now - Math.max(since, reported_at ?? 0) >= CLAIM_SECONDS * 1000;
}
