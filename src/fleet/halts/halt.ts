import { setTimeout as wait } from 'node:timers/promises';
import { v7 as uuidv7 } from 'uuid';
import { getBot } from '../registry/bots.ts';
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
import { verifyHalt, type Verification } from './verify-halt.ts';

/** What came of asking for a halt. */
export interface HaltReport extends Verification {
  readonly halt: Halt;
  /** After how many milliseconds nothing of it could trade any more. */
  readonly latched_ms: number;
  /** After how many milliseconds all of it had been read back. */
  readonly verified_ms: number;
}

/** Of one write, which others wait for. */
const AT_ONCE = 256;
/** As long a halt goes on trying while the database does nothing of what it is asked to. */
const GIVE_UP_MS = 15_000;
const TRY_AGAIN_MS = 250;
/**
 * Whoever asked is told what is known by then, before he is sent away after 30 seconds; the ending
 * goes on. Times after he asked.
 */
const READ_BACK_AFTER_MS = 20_000;
const ANSWER_AFTER_MS = 27_000;

/**
 * Ends all trading of a bot, and keeps it from starting any until it is resumed. One that is halted
 * stays as it is halted, and whatever trades all the same is ended.
 *
 * @throws ServiceError `not_found`; `storage_unavailable` when not even the start could be kept from.
 */
export function haltBot(
  service: HaltService,
  by: Actor,
  ref: string,
  reason: string,
): Promise<HaltReport> {
  return halt(service, by, ref, reason);
}

/** The same for all bots that there are, and will be until they are resumed. */
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
  const latched = await insist(() => latch(service, by, ref, reason, sinceBegin));
  const latched_ms = sinceBegin();
  // Whoever looks after production deployments here sees at once what is wanted.
  service.wake();
  const ms = READ_BACK_AFTER_MS - latched_ms;
  const ending = Promise.all([
    endAll(service, latched),
    productionEnded(service, latched, ms),
  ]).catch((error: unknown) => {
    service.log.warn({
      err: error,
      msg: `the halt ${latched.halt_id} could not end everything that it covers`,
    });
  });
  await within(ms, ending);
  const rest = ANSWER_AFTER_MS - sinceBegin();
  const verification = (await within(rest, readBack(service, latched))) ?? NOT_READ;
  return { halt: latched, ...verification, latched_ms, verified_ms: sinceBegin() };
}

/** From then on nothing starts, and nothing of what runs is recorded. */
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

/** Ends all paper sessions that a halt covers, in the caller's transaction. */
export async function endAllPaperSessions(tx: Db, now: number, latched: Halt): Promise<number> {
  let ended = 0;
  let after = START;
  for (;;) {
    const { task_ids, last } = await endPaperSessions(tx, now, latched, after, AT_ONCE);
    ended += task_ids.length;
    if (last === undefined) return ended;
    after = last;
  }
}

/** A halt of all bots is in the log of none. */
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
 * Ends what can be ended. What cannot keeps nothing else from its end, is tried once more after all
 * others, and is told by reading back.
 */
async function endAll(service: HaltService, latched: Halt): Promise<void> {
  if (await endInOrder(service, latched)) return;
  await wait(TRY_AGAIN_MS);
  await endInOrder(service, latched);
}

/** @returns false when another attempt may end more. */
async function endInOrder(service: HaltService, latched: Halt): Promise<boolean> {
  const { storage, clock, log, release } = service;
  let after = START;
  let atOnce = AT_ONCE;
  let isDone = true;
  let tryUntil = performance.now() + GIVE_UP_MS;
  for (;;) {
    try {
      const { task_ids, last } = await storage.write(
        (tx) => endPaperSessions(tx, clock(), latched, after, atOnce),
        { urgent: true },
      );
      if (last === undefined) return isDone;
      release(task_ids);
      after = last;
      atOnce = Math.min(2 * atOnce, AT_ONCE);
      tryUntil = performance.now() + GIVE_UP_MS;
    } catch (error) {
      // Fewer at once, until it is clear which of them it is.
      if (atOnce > 1) {
        atOnce = Math.ceil(atOnce / 4);
        continue;
      }
      if (performance.now() > tryUntil) {
        log.warn({ err: error, msg: `the halt ${latched.halt_id} could not be seen to its end` });
        // It has been tried for long enough.
        return true;
      }
      const stuck = await findFirstSession(storage.read, latched, after).catch(() => null);
      if (stuck === undefined) return isDone;
      if (stuck === null) {
        await wait(TRY_AGAIN_MS);
        continue;
      }
      // With the first of them is told why; which they all are is in the answer.
      if (isDone) {
        log.warn({ err: error, msg: `the deployment ${stuck.deployment_id} could not be halted` });
        isDone = false;
      }
      after = stuck;
    }
  }
}

/** Resolves when all that is in production has ended, or at the latest after `ms`. */
async function productionEnded(
  { storage, clock, log }: HaltService,
  latched: Halt,
  ms: number,
): Promise<void> {
  const until = performance.now() + ms;
  try {
    if ((await insist(() => findFirstDeployment(storage.read, latched))) === undefined) return;
    await insist(() =>
      storage.write((tx) => endUnbegunDeployments(tx, clock(), latched), { urgent: true }),
    );
    while ((await findFirstDeployment(storage.read, latched)) && performance.now() < until) {
      await wait(TRY_AGAIN_MS);
    }
  } catch (error) {
    log.warn({
      err: error,
      msg: `what the halt ${latched.halt_id} ends in production is not known`,
    });
  }
}

/** What cannot be read is not verified: whoever asked for the halt is told so, and not that it failed. */
async function readBack(
  { storage, clock, log }: HaltService,
  latched: Halt,
): Promise<Verification> {
  try {
    return await insist(() => verifyHalt(storage.read, latched, clock()));
  } catch (error) {
    log.warn({ err: error, msg: `what became of the halt ${latched.halt_id} cannot be read` });
    return NOT_READ;
  }
}

const NOT_READ: Verification = { verified: false, in_force: false, deployments: [] };

/** @returns undefined when it takes longer. */
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
 * @throws OutcomeUnknown when any attempt may have been written, and no later one has clarified it.
 */
async function insist<T>(access: () => Promise<T>): Promise<T> {
  const until = performance.now() + GIVE_UP_MS;
  let doubt: OutcomeUnknown | undefined;
  for (;;) {
    try {
      return await access();
    } catch (error) {
      if (error instanceof OutcomeUnknown) doubt = error;
      const isTransient = error instanceof ServiceError && error.retryable;
      if (!isTransient || performance.now() > until) throw doubt ?? error;
      await wait(TRY_AGAIN_MS);
    }
  }
}
