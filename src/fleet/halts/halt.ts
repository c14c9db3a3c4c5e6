import { setTimeout as wait } from 'node:timers/promises';
import { v7 as uuidv7 } from 'uuid';
import { getBot } from '../registry/bots.ts';
import { retry } from '../../base/backoff.ts';
import { ServiceError } from '../../base/errors.ts';
import { notifyAlert } from '../../events/raised-alerts.ts';
import { appendEvents } from '../../events/append.ts';
import { appendAudit, type Actor } from '../../identity/audit.ts';
import type { Db } from '../../storage/tables.ts';
import { OutcomeUnknown } from '../../storage/storage-errors.ts';
import { alertEvent, alertsOf } from '../../trading/alerts.ts';
import { findFirstSession, START } from './active-sessions.ts';
import { endPaperSessions } from './end-sessions.ts';
import { findInForce, type Halt, type HaltService } from './halts.ts';
import { endUnbegunDeployments, findFirstDeployment } from './halt-production.ts';
import type { VerifiedDeployment } from './verified-deployment.ts';
import { verifyDeployments, verifyHalt, type Verification } from './verify-halt.ts';

export interface HaltReport extends Verification {
  readonly halt: Halt;
  /** Milliseconds until nothing that the halt covers could trade. */
  readonly latched_ms: number;
  /** Milliseconds until the result had been read back. */
  readonly verified_ms: number;
}

/** Number of sessions ended in one write, which then holds up others for about 200 ms. */
const MOST_PER_WRITE = 512;
/** Time for which a halt retries while the database does not answer. */
const RETRY_FOR_MS = 15_000;
const RETRY_EVERY_MS = 250;
/**
 * Times after the request at which the result is read back and answered, before the request times out
 * after 30 seconds. Ending continues in the background.
 */
const READ_BACK_AFTER_MS = 20_000;
const ANSWER_AFTER_MS = 27_000;

/**
 * Ends all trading of a bot, and prevents further trading until it is resumed. Halting a halted bot ends
 * what still trades.
 *
 * @throws ServiceError `not_found`; `storage_unavailable` when not even the halt could be recorded.
 */
export function haltBot(
  service: HaltService,
  by: Actor,
  ref: string,
  reason: string,
): Promise<HaltReport> {
  return halt(service, by, ref, reason);
}

/** Halts all bots, including bots created before `resumeAll`. */
export function haltAll(service: HaltService, by: Actor, reason: string): Promise<HaltReport> {
  return halt(service, by, null, reason);
}

async function halt(
  service: HaltService,
  by: Actor,
  ref: string | null,
  reason: string,
): Promise<HaltReport> {
  const begin = performance.now();
  const sinceBegin = (): number => Math.round(performance.now() - begin);
  const latched = await retryOutage(() => latch(service, by, ref, reason, sinceBegin));
  const latched_ms = sinceBegin();
  // The controllers of production deployments in this process act at once.
  service.wake();
  const ms = READ_BACK_AFTER_MS - latched_ms;
  const early = new EarlyVerification(service, latched);
  const ending = Promise.all([
    endSessions(service, latched, early),
    endDeployments(service, latched, ms),
  ]).catch((error: unknown) => {
    service.log.warn({
      err: error,
      msg: `the halt ${latched.halt_id} could not end everything that it covers`,
    });
  });
  await within(ms, ending);
  const rest = ANSWER_AFTER_MS - sinceBegin();
  const verification = (await within(rest, readBack(service, latched, early))) ?? NOT_READ;
  return { halt: latched, ...verification, latched_ms, verified_ms: sinceBegin() };
}

/**
 * Verifies sessions while others are ended, which PostgreSQL does at the same time. On SQLite, that would
 * delay the end of the others.
 */
class EarlyVerification {
  readonly #service: HaltService;
  readonly #latched: Halt;
  readonly #parts: Promise<readonly VerifiedDeployment[]>[] = [];

  constructor(service: HaltService, latched: Halt) {
    this.#service = service;
    this.#latched = latched;
  }

  begin(deployment_ids: readonly string[]): void {
    const { storage } = this.#service;
    if (storage.kind === 'sqlite') return;
    const part = verifyDeployments(storage.read, this.#latched, deployment_ids);
    // Deployments that cannot be read now are verified at the end.
    this.#parts.push(part.catch(() => []));
  }

  async results(): Promise<readonly VerifiedDeployment[]> {
    return (await Promise.all(this.#parts)).flat();
  }
}

/** Records the halt, after which no session can start or record events. */
function latch(
  { storage, clock }: HaltService,
  by: Actor,
  ref: string | null,
  reason: string,
  sinceBegin: () => number,
): Promise<Halt> {
  return storage.write((tx) => recordHalt(tx, clock(), by, ref, reason, sinceBegin()), {
    urgent: true,
  });
}

/** Records a halt of a bot, or of all bots with null, unless one is in force already. */
export async function recordHalt(
  tx: Db,
  now: number,
  by: Actor,
  ref: string | null,
  reason: string,
  latched_ms = 0,
): Promise<Halt> {
  const bot = ref === null ? null : await getBot(tx, ref);
  const scope = bot === null ? 'all' : 'bot';
  const bot_id = bot?.bot_id ?? null;
  const before = await findInForce(tx, bot_id);
  const halted = before ?? {
    halt_id: uuidv7({ msecs: now }),
    scope,
    bot_id,
    reason,
    requested_by: by,
    requested_at: now,
    lifted_at: null,
    lifted_by: null,
    lift_reason: null,
  };
  const { halt_id } = halted;
  await appendAudit(tx, now, {
    actor: by,
    action: bot === null ? 'bots.halt_all' : 'bots.halt',
    target: bot === null ? 'bots' : `bot:${bot.bot_id}`,
    details: { halt_id, reason, repeated: before !== undefined, latched_ms },
  });
  if (before !== undefined) return before;
  await tx.insertInto('halts').values(halted).execute();
  if (bot === null) await alertOfAll(tx, now, halt_id, reason);
  if (bot !== null) {
    const payload = { halt_id, scope, reason, by };
    const version = bot.current_version;
    const event = { kind: 'control.halted', occurred_at: now, payload };
    const { seq } = await appendEvents(tx, bot.bot_id, now, [{ ...event, version }]);
    const alerts = alertsOf([event]).map((one) => alertEvent(one, seq, now, now));
    await appendEvents(
      tx,
      bot.bot_id,
      now,
      alerts.map((one) => ({ ...one, version })),
    );
  }
  return halted;
}

export async function endAllPaperSessions(tx: Db, now: number, latched: Halt): Promise<number> {
  let ended = 0;
  let after = START;
  for (;;) {
    const { task_ids, last } = await endPaperSessions(tx, now, latched, after, MOST_PER_WRITE);
    ended += task_ids.length;
    if (last === undefined) return ended;
    after = last;
  }
}

/** Audits the alert, because a halt of all bots is in no bot's log. */
async function alertOfAll(tx: Db, now: number, halt_id: string, reason: string): Promise<void> {
  const alert = { control: 'halt_all', severity: 'critical', latency_ms: 0 } as const;
  await appendAudit(tx, now, {
    actor: 'server',
    action: 'alert.raised',
    target: 'bots',
    details: { ...alert, halt_id, reason },
  });
  notifyAlert(alert);
}

/**
 * Ends all sessions that can be ended. Sessions that cannot are skipped and tried once more after all
 * others; reading back reports them.
 */
async function endSessions(
  service: HaltService,
  latched: Halt,
  early: EarlyVerification,
): Promise<void> {
  if (await endInOrder(service, latched, early)) return;
  await wait(RETRY_EVERY_MS);
  await endInOrder(service, latched, early);
}

/** @returns false when another attempt may end more. */
async function endInOrder(
  service: HaltService,
  latched: Halt,
  early: EarlyVerification,
): Promise<boolean> {
  const { storage, clock, log, release } = service;
  let after = START;
  let limit = MOST_PER_WRITE;
  let isDone = true;
  let tryUntil = performance.now() + RETRY_FOR_MS;
  for (;;) {
    try {
      const { task_ids, deployment_ids, last } = await storage.write(
        (tx) => endPaperSessions(tx, clock(), latched, after, limit),
        { urgent: true },
      );
      if (last === undefined) return isDone;
      release(task_ids);
      early.begin(deployment_ids);
      after = last;
      limit = Math.min(2 * limit, MOST_PER_WRITE);
      tryUntil = performance.now() + RETRY_FOR_MS;
    } catch (error) {
      // Smaller writes find the session that cannot be ended.
      if (limit > 1) {
        limit = Math.ceil(limit / 4);
        continue;
      }
      if (performance.now() > tryUntil) {
        log.warn({ err: error, msg: `the halt ${latched.halt_id} could not end all sessions` });
        return true;
      }
      const stuck = await findFirstSession(storage.read, latched, after).catch(() => null);
      if (stuck === undefined) return isDone;
      if (stuck === null) {
        await wait(RETRY_EVERY_MS);
        continue;
      }
      // Only the first one is logged; the answer names them all.
      if (isDone) {
        log.warn({ err: error, msg: `deployment ${stuck.deployment_id} could not be halted` });
        isDone = false;
      }
      after = stuck;
    }
  }
}

/** Ends production deployments that have not begun, and waits up to `ms` for the end of all others. */
async function endDeployments(
  { storage, clock, log }: HaltService,
  latched: Halt,
  ms: number,
): Promise<void> {
  const until = performance.now() + ms;
  try {
    if ((await retryOutage(() => findFirstDeployment(storage.read, latched))) === undefined) return;
    await retryOutage(() =>
      storage.write((tx) => endUnbegunDeployments(tx, clock(), latched), { urgent: true }),
    );
    while ((await findFirstDeployment(storage.read, latched)) && performance.now() < until) {
      await wait(RETRY_EVERY_MS);
    }
  } catch (error) {
    log.warn({
      err: error,
      msg: `the production deployments of halt ${latched.halt_id} cannot be read`,
    });
  }
}

/** Returns an unverified result if the database cannot be read: the halt itself has not failed. */
async function readBack(
  { storage, clock, log }: HaltService,
  latched: Halt,
  early: EarlyVerification,
): Promise<Verification> {
  try {
    const verified = await early.results();
    return await retryOutage(() => verifyHalt(storage.read, latched, clock(), verified));
  } catch (error) {
    log.warn({ err: error, msg: `the result of halt ${latched.halt_id} cannot be read` });
    return NOT_READ;
  }
}

const NOT_READ: Verification = { verified: false, in_force: false, deployments: [] };

/** @returns undefined when the work takes longer than `ms`. */
async function within<T>(ms: number, work: Promise<T>): Promise<T | undefined> {
  const late = Promise.withResolvers<undefined>();
  const timer = setTimeout(late.resolve, Math.max(0, ms));
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Retries `access` for a limited time while the database does not answer.
 * @throws OutcomeUnknown when an attempt may have been written, and no later one has succeeded.
 */
async function retryOutage<T>(access: () => Promise<T>): Promise<T> {
  const until = performance.now() + RETRY_FOR_MS;
  let doubt: OutcomeUnknown | undefined;
  const shouldRetry = (error: unknown): boolean => {
    if (error instanceof OutcomeUnknown) doubt = error;
    return error instanceof ServiceError && error.retryable && performance.now() <= until;
  };
  const waits = { shortestMs: RETRY_EVERY_MS, longestMs: RETRY_EVERY_MS };
  return retry(access, { ...waits, shouldRetry }).catch((error) => {
    throw doubt ?? error;
  });
}
