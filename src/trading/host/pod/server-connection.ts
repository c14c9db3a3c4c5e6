import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import {
  connectAsRunner,
  type RunnerAnswer,
  type RunnerClient,
  type RunnerReport,
} from '../../../client/runner.ts';
import { msSince, thisMoment, type Moment } from '../../../base/elapsed.ts';
import { ServiceError } from '../../../base/errors.ts';
import { inSpan } from '../../../base/tracing.ts';
import { isSystemError } from '../../../base/system-errors.ts';
import type { Log } from '../../../base/log.ts';
import type { LifeEvent } from '../../session-lifecycle.ts';
import type { SessionSupervision } from '../../session-supervision.ts';
import type { RunConfig } from './run-config.ts';
import type { OrderSpans } from '../../order-spans.ts';
import type { SessionBatch } from '../../session-events.ts';

/** Fields of a report that describe the runner. */
export type RunnerState = Pick<RunnerReport, 'status' | 'denying' | 'venue' | 'database_epoch'>;
export type Ended = NonNullable<RunnerReport['ended']>;

export interface ServerConnectionOptions {
  readonly control: NonNullable<RunConfig['control']>;
  readonly deploymentId: string;
  readonly instanceId: string;
  readonly describeRunner: () => RunnerState;
  readonly nextBatch: (recorded: number) => Promise<SessionBatch | undefined>;
  readonly onEvent: (event: LifeEvent) => void;
  readonly log: Log;
  readonly signal: AbortSignal;
  /** Begins with the first answer. Reports with events belong to its trace. */
  readonly spans?: OrderSpans | undefined;
  /** Carries the reports; a connection to `control.url` by default. */
  readonly client?: RunnerClient | undefined;
}

/** Interval before the first answer. */
const REPORT_SECONDS = 5;
/** After a report with this many events, the next one is sent at once. */
const MANY_EVENTS = 256;
/** Without an answer for this share of the claim, no orders are placed, so that requests can end. */
const SHARE_OF_CLAIM = 2 / 3;
const LATE_BY_MS = 500;
/** Interval of attempts to read a log that cannot be read, before the end is reported without it. */
const RETRY_BLOCKED_MS = 500;

interface Sent {
  readonly answer: RunnerAnswer;
  /** Whether the report contained the end. */
  readonly isLast: boolean;
  /** Count of reported events. */
  readonly events: number;
}

/** Connects a runner to the server that supervises it, and reports until the end. */
export function connectToServer(options: ServerConnectionOptions): ServerConnection {
  return new Reports(options);
}

export type ServerConnection = Readonly<Pick<Reports, keyof Reports>>;

class Reports {
  /** Time at which the last answered report was sent; undefined before the first. */
  answeredAt: Moment | undefined;
  readonly #options: ServerConnectionOptions;
  readonly #client: RunnerClient;
  readonly #running: Promise<void>;
  #epoch: number | null = null;
  /** Count of batches that the server has recorded. */
  #recorded = 0;
  #claimMs = 0;
  #reportMs = REPORT_SECONDS * 1000;
  /** The log can never be reported again; reports then carry no batch. */
  #isLogBroken = false;
  /** The next batch could not be read, for example because the disk is full. */
  #isLogBlocked = false;
  #isEnding = false;
  #wasFenced = false;
  #isDown = false;
  #wake = Promise.withResolvers<void>();

  constructor(options: ServerConnectionOptions) {
    this.#options = options;
    const { control, signal, log, onEvent } = options;
    this.#client =
      options.client ??
      connectAsRunner({
        url: control.url,
        token: () => readToken(control.token_file),
        warn: (text) => log.warn(text),
        signal,
      });
    this.#running = this.#run().catch((error: unknown) => {
      log.error({ err: error, msg: 'the reports to the server ended' });
      const message = `the reports ended: ${messageOf(error)}`;
      onEvent({ kind: 'server_failed', error: new ServiceError('failure', message) });
    });
  }

  /** Whether the claim is held, and was renewed recently enough to trade by it. */
  mayTrade(): boolean {
    const { answeredAt } = this;
    return answeredAt !== undefined && msSince(answeredAt) < this.#claimMs * SHARE_OF_CLAIM;
  }

  get hasClaim(): boolean {
    return this.#epoch !== null;
  }

  /** Reports without waiting for the next interval. */
  report(): void {
    this.#wake.resolve();
  }

  /**
   * Reports the rest of the log and the end, and then nothing further.
   * @returns undefined without a claim, or if the server cannot be reached, does not know the
   *   deployment, or lacks a part of the log, which another process may report.
   */
  async end(ended: Ended, withinMs: number): Promise<RunnerAnswer | undefined> {
    const { signal } = this.#options;
    const until = performance.now() + withinMs;
    this.#isEnding = true;
    this.#wake.resolve();
    // A report that is under way may bring the claim, or may never be answered.
    await Promise.race([this.#running, delay(withinMs / 2, undefined, { ref: false })]);
    for (;;) {
      const left = until - performance.now();
      if (signal.aborted || this.#epoch === null || left <= 0) return undefined;
      try {
        const { answer, isLast } = await within(this.#send(ended, left < withinMs / 2), left);
        if (isLast) return this.#isLogBlocked ? undefined : answer;
        if (this.#isLogBlocked) {
          await delay(RETRY_BLOCKED_MS, undefined, { signal }).catch(() => {});
        }
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error;
        const isFinal = error.code === 'not_found' || error.code === 'conflict';
        if (isFinal || error.reason === SUPERSEDED) return undefined;
        this.#noteTrouble(error);
        await delay(Math.min(1000, this.#reportMs), undefined, { signal }).catch(() => {});
      }
    }
  }

  async #run(): Promise<void> {
    const { signal } = this.#options;
    while (!this.#isEnding && !signal.aborted) {
      const wait = await this.#reportOnce();
      if (wait === undefined) return;
      if (wait === 0) continue;
      await Promise.race([delay(wait, undefined, { signal }).catch(() => {}), this.#wake.promise]);
      this.#wake = Promise.withResolvers();
    }
  }

  /** @returns the wait until the next report, ms; undefined after the last. */
  async #reportOnce(): Promise<number | undefined> {
    const { onEvent, signal } = this.#options;
    try {
      const { answer, events } = await this.#send(null);
      onEvent(eventOfAnswer(answer));
      return events < MANY_EVENTS ? this.#reportMs : 0;
    } catch (error) {
      if (signal.aborted) return undefined;
      if (!(error instanceof ServiceError)) throw error;
      if (error.code === 'conflict' && error.reason === 'fenced') return this.#fence(error);
      if (error.code === 'not_found') {
        onEvent({ kind: 'disowned' });
        return undefined;
      }
      this.#noteTrouble(error);
      return this.#reportMs;
    }
  }

  /**
   * An earlier process may have been killed, and then its claim expires: waits once for that. A claim
   * that is renewed belongs to a running instance.
   */
  #fence(error: ServiceError): number | undefined {
    const { log, onEvent } = this.#options;
    const wait = 1000 * (error.retryAfterSeconds ?? 1) + LATE_BY_MS;
    if (this.#epoch !== null || this.#wasFenced) {
      // An end that is being reported must not send a report of a claim that is lost.
      this.#epoch = null;
      onEvent({ kind: 'fenced' });
      return undefined;
    }
    this.#wasFenced = true;
    log.info(`another instance has the claim; the next attempt is in ${wait / 1000} s`);
    return wait;
  }

  /** @param skipsBlocked whether to report the end without a part of the log that cannot be read. */
  async #send(ended: Ended | null, skipsBlocked = false): Promise<Sent> {
    // Before the claim, the count of recorded batches is unknown.
    const batch = this.#epoch === null ? undefined : await this.#readBatch();
    const isWhole = batch === undefined && (!this.#isLogBlocked || skipsBlocked);
    const isLast = ended !== null && isWhole;
    // The claim counts from when the report arrives, so this is early enough.
    const sent = thisMoment();
    const state = this.#options.describeRunner();
    let answer: RunnerAnswer;
    try {
      answer = await this.#report({
        instance_id: this.#options.instanceId,
        epoch: this.#epoch,
        ...state,
        ...(isLast && { status: 'ended' as const }),
        batch: batch ?? null,
        ended: isLast ? { ...ended, verified: ended.verified && !this.#isLogBlocked } : null,
      });
    } catch (error) {
      const isRefused = error instanceof ServiceError && error.code === 'invalid_request';
      if (isRefused && batch !== undefined) this.#breakLog(error);
      throw error;
    }
    refuseSuperseded(answer, state);
    await this.#takeAnswer(answer, sent);
    return { answer, isLast, events: batch?.events.length ?? 0 };
  }

  #report(report: RunnerReport): Promise<RunnerAnswer> {
    const { deploymentId, spans } = this.#options;
    const send = (): Promise<RunnerAnswer> => this.#client.report(deploymentId, report);
    const isTraced = spans?.parent && (report.batch !== null || report.ended !== null);
    return isTraced ? inSpan('report', { kind: 'client', parent: spans.parent }, send) : send();
  }

  async #takeAnswer(answer: RunnerAnswer, sent: Moment): Promise<void> {
    const isFirst = !this.hasClaim;
    if (isFirst) this.#options.spans?.begin(answer.traceparent, this.#options.deploymentId);
    this.answeredAt = sent;
    this.#epoch = answer.epoch;
    this.#recorded = answer.recorded;
    this.#claimMs = answer.claim_seconds * 1000;
    this.#reportMs = answer.report_seconds * 1000;
    if (this.#isDown) this.#options.log.info('the server answers again');
    this.#isDown = false;
    // Finds a lost log before the session trades by it.
    if (isFirst) await this.#readBatch();
  }

  async #readBatch(): Promise<SessionBatch | undefined> {
    if (this.#isLogBroken) return undefined;
    try {
      const batch = await this.#options.nextBatch(this.#recorded);
      this.#isLogBlocked = false;
      return batch;
    } catch (error) {
      const isPassing = error instanceof ServiceError && error.retryable;
      if (!isPassing) this.#breakLog(error);
      else if (!this.#isLogBlocked) {
        this.#isLogBlocked = true;
        this.#options.onEvent({ kind: 'server_failed', error });
      }
      return undefined;
    }
  }

  /** Continues without the log, because commands such as a halt must still arrive. */
  #breakLog(fault: unknown): void {
    this.#isLogBroken = true;
    if (!(fault instanceof ServiceError)) throw fault;
    this.#options.onEvent({ kind: 'server_failed', error: fault });
  }

  #noteTrouble(error: ServiceError): void {
    if (!this.#isDown) {
      const { message, remedy } = error;
      const advice = error.code === 'incompatible_version' ? `. ${remedy}` : '';
      this.#options.log.warn(`cannot report to the server: ${message}${advice}`);
    }
    this.#isDown = true;
  }
}

export function eventOfAnswer({ command, halt, controls }: RunnerAnswer): LifeEvent {
  const { halt_id, reason, by } = halt ?? { halt_id: '', reason: '', by: '' };
  const supervision = controls as SessionSupervision;
  return { kind: 'answered', command, halt: { halt_id, reason, by }, supervision };
}

const SUPERSEDED = 'superseded';

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
      reason: SUPERSEDED,
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

/** Read before each report, because the file may have been replaced. */
function readToken(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    if (!isSystemError(error)) throw error;
    throw new ServiceError('server_unreachable', `${file} cannot be read (${error.code})`, {
      remedy: 'Check that the file with the token of the runner exists.',
      cause: error,
    });
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
