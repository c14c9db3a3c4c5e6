import { setTimeout as wait } from 'node:timers/promises';
import { v7 as uuidv7 } from 'uuid';
import { getBot } from '../bot-registry/bots.ts';
import { ServiceError } from '../errors.ts';
import { appendEvents } from '../events/append.ts';
import { appendAudit, type Actor } from '../identity/audit.ts';
import type { Db } from '../storage/tables.ts';
import { asStorageError } from '../storage/unavailable.ts';
import { active, START, type Place } from './active.ts';
import { endSome } from './end.ts';
import { findInForce, type Halt, type HaltService } from './halts.ts';
import { verifyHalt, type Verification } from './verify.ts';

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
  const latched = await insist(() => latch(service, by, ref, reason));
  const latched_ms = sinceBegin();
  await endAll(service, latched);
  const verification = await readBack(service, latched);
  return { halt: latched, ...verification, latched_ms, verified_ms: sinceBegin() };
}

/** From then on nothing starts, and nothing of what runs is recorded. */
function latch(
  { storage, clock }: HaltService,
  by: Actor,
  ref: string | null,
  reason: string,
): Promise<Halt> {
  return storage.write(
    async (tx) => {
      const now = clock();
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
        details: { halt_id, reason, repeated: before !== undefined },
      });
      if (before !== undefined) return before;
      await tx.insertInto('halts').values(halted).execute();
      if (bot !== null) {
        const payload = { halt_id, scope, reason, by };
        await appendEvents(tx, bot.bot_id, now, [
          { kind: 'control.halted', version: bot.current_version, occurred_at: now, payload },
        ]);
      }
      return halted;
    },
    { urgent: true },
  );
}

/** Ends what can be ended. What cannot keeps nothing else from its end, and is told by reading back. */
async function endAll(service: HaltService, latched: Halt): Promise<void> {
  const { storage, clock, log, release } = service;
  let after = START;
  let atOnce = AT_ONCE;
  let isTold = false;
  let tryUntil = performance.now() + GIVE_UP_MS;
  for (;;) {
    try {
      const { task_ids, last } = await storage.write(
        (tx) => endSome(tx, clock(), latched, after, atOnce),
        { urgent: true },
      );
      if (last === undefined) return;
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
        return;
      }
      const stuck = await nextOf(storage.read, latched, after).catch(() => undefined);
      if (stuck === undefined) {
        await wait(TRY_AGAIN_MS);
        continue;
      }
      // With the first of them is told why; which they all are is in the answer.
      if (!isTold) {
        log.warn({ err: error, msg: `the deployment ${stuck.deployment_id} could not be halted` });
        isTold = true;
      }
      after = stuck;
    }
  }
}

/** What cannot be read is not verified: whoever asked for the halt is told so, and not that it failed. */
async function readBack({ storage, log }: HaltService, latched: Halt): Promise<Verification> {
  try {
    return await insist(() => verifyHalt(storage.read, latched));
  } catch (error) {
    log.warn({ err: error, msg: `what became of the halt ${latched.halt_id} cannot be read` });
    return { verified: false, in_force: false, deployments: [] };
  }
}

async function nextOf(db: Db, latched: Halt, after: Place): Promise<Place | undefined> {
  return active(db, latched, after)
    .select(['deployment.bot_id', 'deployment.deployment_id'])
    .orderBy('deployment.bot_id')
    .orderBy('deployment.deployment_id')
    .limit(1)
    .executeTakeFirst();
}

/** Goes on trying for a time while the database does not answer. */
async function insist<T>(access: () => Promise<T>): Promise<T> {
  const until = performance.now() + GIVE_UP_MS;
  for (;;) {
    try {
      return await access();
    } catch (thrown) {
      const error = asStorageError(thrown);
      const isTransient = error instanceof ServiceError && error.retryable;
      if (!isTransient || performance.now() > until) throw error;
      await wait(TRY_AGAIN_MS);
    }
  }
}
