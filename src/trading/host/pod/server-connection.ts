/** The server that looks after a deployment: who may trade is for it to say, and when to end. */
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import {
  connectAsRunner,
  type RunnerAnswer,
  type RunnerClient,
  type RunnerReport,
} from '../../../client/runner.ts';
import { msSince, thisMoment, type Moment } from '../../../base/elapsed.ts';
import { isSystemError, ServiceError } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type { RunConfig } from './run-config.ts';
import type { LogBatch } from './runner-journal.ts';

/** What a report says beside who it is from. */
export type RunnerState = Pick<RunnerReport, 'status' | 'denying' | 'venue' | 'database_epoch'>;
export type Ended = NonNullable<RunnerReport['ended']>;

export type ServerNews =
  | { readonly answer: RunnerAnswer }
  /** Another instance has the claim. */
  | { readonly fenced: ServiceError }
  /** The deployment has ended, or there is none. */
  | { readonly gone: ServiceError }
  /** What keeps this runner from going on at all. */
  | { readonly fault: ServiceError };

export interface ServerConnection {
  /** Whether the claim is held, and was renewed lately enough to trade by it. */
  mayTrade(): boolean;
  /** Time at which the last answered report was sent; undefined before the first. */
  readonly answeredAt: Moment | undefined;
  readonly hasClaim: boolean;
  /** Has it report now. */
  report(): void;
  /**
   * Tells all that is left of the log, and how it ended; reports nothing any more.
   * @returns the answer; undefined when the server cannot be reached, or knows of no such deployment.
   */
  end(ended: Ended, withinMs: number): Promise<RunnerAnswer | undefined>;
}

export interface ServerConnectionOptions {
  readonly control: NonNullable<RunConfig['control']>;
  readonly deploymentId: string;
  readonly instanceId: string;
  readonly describeRunner: () => RunnerState;
  readonly nextBatch: (recorded: number) => Promise<LogBatch | undefined>;
  readonly onNews: (news: ServerNews) => void;
  readonly log: Log;
  readonly signal: AbortSignal;
  /** Carries the reports; a connection to `control.url` by default. */
  readonly client?: RunnerClient | undefined;
}

/** Before the server has said. */
const REPORT_SECONDS = 5;
/** Where a report has so many, more may wait. */
const MANY_EVENTS = 256;
/** Of a claim, after so much of it without an answer no orders are placed: what is under way may end. */
const SHARE_OF_CLAIM = 2 / 3;
const LATE_BY_MS = 500;
/** Interval of attempts to read a log that cannot be read, before the end is reported without it. */
const RETRY_BLOCKED_MS = 500;

interface Sent {
  readonly answer: RunnerAnswer;
  /** Whether it has told the end. */
  readonly isLast: boolean;
  /** How many it has told. */
  readonly events: number;
}

export function connectToServer(options: ServerConnectionOptions): ServerConnection {
  const { control, deploymentId, instanceId, describeRunner, nextBatch, onNews, log, signal } =
    options;
  const client: RunnerClient =
    options.client ??
    connectAsRunner({
      url: control.url,
      token: () => readToken(control.token_file),
      warn: (text) => log.warn(text),
      signal,
    });
  let epoch: number | null = null;
  let recorded = 0;
  let claimMs = 0;
  let reportMs = REPORT_SECONDS * 1000;
  /** When the last report was sent that was answered. */
  let answeredAt: Moment | undefined;
  /** The log can never be reported again; reports then carry no batch. */
  let isLogBroken = false;
  /** The next batch could not be read, for example because the disk is full. */
  let isLogBlocked = false;
  let isEnding = false;
  let wake = Promise.withResolvers<void>();
  let wasFenced = false;
  let isDown = false;

  /** A halt arrives even if the log is broken; reports then carry no batch. */
  const breakLog = (fault: unknown): void => {
    isLogBroken = true;
    if (!(fault instanceof ServiceError)) throw fault;
    onNews({ fault });
  };
  const read = async (): Promise<LogBatch | undefined> => {
    if (isLogBroken) return undefined;
    try {
      const batch = await nextBatch(recorded);
      isLogBlocked = false;
      return batch;
    } catch (error) {
      const isPassing = error instanceof ServiceError && error.retryable;
      if (!isPassing) breakLog(error);
      else if (!isLogBlocked) {
        isLogBlocked = true;
        onNews({ fault: error });
      }
      return undefined;
    }
  };
  /** @param skipsBlocked whether to report the end without a part of the log that cannot be read. */
  const send = async (ended: Ended | null, skipsBlocked = false): Promise<Sent> => {
    // Before the claim nobody knows what the server has of the log.
    const batch = epoch === null ? undefined : await read();
    const isWhole = batch === undefined && (!isLogBlocked || skipsBlocked);
    const isLast = ended !== null && isWhole;
    // Counted from before it is sent: the server counts from when it comes.
    const sent = thisMoment();
    const state = describeRunner();
    let answer: RunnerAnswer;
    try {
      answer = await client.report(deploymentId, {
        instance_id: instanceId,
        epoch,
        ...state,
        ...(isLast && { status: 'ended' as const }),
        batch: batch ?? null,
        ended: isLast ? ended : null,
      });
    } catch (error) {
      const isRefused = error instanceof ServiceError && error.code === 'invalid_request';
      if (isRefused && batch !== undefined) breakLog(error);
      throw error;
    }
    refuseSuperseded(answer, state);
    answeredAt = sent;
    const isFirst = epoch === null;
    ({ epoch, recorded } = answer);
    claimMs = answer.claim_seconds * 1000;
    reportMs = answer.report_seconds * 1000;
    if (isDown) log.info('the server answers again');
    isDown = false;
    // Before anybody trades by a log that is not whole.
    if (isFirst) await read();
    return { answer, isLast, events: batch?.events.length ?? 0 };
  };
  const trouble = (error: unknown): void => {
    if (!isDown) log.warn(`the server cannot be told: ${messageOf(error)}`);
    isDown = true;
  };
  const pause = async (ms: number): Promise<void> => {
    await Promise.race([delay(ms, undefined, { signal }).catch(() => {}), wake.promise]);
    wake = Promise.withResolvers();
  };

  /** @returns how long to wait until the next one. */
  const once = async (): Promise<number | undefined> => {
    try {
      const { answer, events } = await send(null);
      onNews({ answer });
      return events < MANY_EVENTS ? reportMs : 0;
    } catch (error) {
      if (signal.aborted) return undefined;
      if (!(error instanceof ServiceError)) {
        throw error;
      }
      if (error.code === 'conflict' && error.reason === 'fenced') {
        const wait = 1000 * (error.retryAfterSeconds ?? 1) + LATE_BY_MS;
        // The one before may have been killed, and its claim ends; one that renews it is alive.
        const isFirst = epoch === null && !wasFenced;
        if (isFirst) {
          wasFenced = true;
          log.info(`another instance has the claim; it is asked for again in ${wait / 1000} s`);
          return wait;
        }
        onNews({ fenced: error });
        return undefined;
      }
      if (error.code === 'not_found') {
        onNews({ gone: error });
        return undefined;
      }
      trouble(error);
      return reportMs;
    }
  };
  const run = async (): Promise<void> => {
    for (;;) {
      if (isEnding || signal.aborted) return;
      const wait = await once();
      if (wait === undefined) return;
      if (wait > 0) await pause(wait);
    }
  };
  const running = run().catch((error: unknown) => {
    log.error({ err: error, msg: 'the reports to the server ended' });
    onNews({ fault: new ServiceError('failure', `the reports ended: ${messageOf(error)}`) });
  });

  return {
    mayTrade: () => answeredAt !== undefined && msSince(answeredAt) < claimMs * SHARE_OF_CLAIM,
    get answeredAt() {
      return answeredAt;
    },
    get hasClaim() {
      return epoch !== null;
    },
    report: () => wake.resolve(),
    async end(ended, withinMs) {
      const until = performance.now() + withinMs;
      isEnding = true;
      wake.resolve();
      // One that is under way may never be answered.
      await Promise.race([running, delay(withinMs / 2, undefined, { ref: false })]);
      for (;;) {
        if (signal.aborted || epoch === null || performance.now() >= until) return undefined;
        try {
          const left = until - performance.now();
          const { answer, isLast } = await within(send(ended, left < withinMs / 2), left);
          if (isLast) return answer;
          if (isLogBlocked) await delay(RETRY_BLOCKED_MS, undefined, { signal }).catch(() => {});
        } catch (error) {
          if (!(error instanceof ServiceError)) throw error;
          if (error.code === 'not_found' || error.code === 'conflict') return undefined;
          trouble(error);
          await delay(Math.min(1000, reportMs), undefined, { signal }).catch(() => {});
        }
      }
    },
  };
}

/** A halt is accepted from any server. @throws ServiceError `server_unreachable` */
function refuseSuperseded(
  { command, controls: { database_epoch = 1 } }: RunnerAnswer,
  { database_epoch: known = 1 }: RunnerState,
): void {
  if (database_epoch >= known || command === 'halt') return;
  throw new ServiceError(
    'server_unreachable',
    `the server's database has epoch ${database_epoch}, but a copy of it with epoch ${known} was adopted`,
    {
      remedy:
        'Decide which of the two servers should continue, and run `service-local server adopt` there.',
    },
  );
}

async function within<T>(work: Promise<T>, ms: number): Promise<T> {
  const late = new AbortController();
  const never = delay(Math.max(0, ms), undefined, { signal: late.signal }).then(() => {
    throw new ServiceError('server_unreachable', 'the server has not answered in time');
  });
  never.catch(() => {});
  work.catch(() => {});
  try {
    return await Promise.race([work, never]);
  } finally {
    late.abort();
  }
}

/** Anew at each report: the file may have been replaced. */
function readToken(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    if (!isSystemError(error)) throw error;
    throw new ServiceError('server_unreachable', `${file} cannot be read (${error.code})`, {
      remedy: 'See that the token of the runner is there.',
      cause: error,
    });
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
