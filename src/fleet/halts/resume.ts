import { getBot } from '../registry/bots.ts';
import { ServiceError } from '../../base/errors.ts';
import { appendEvents } from '../../events/append.ts';
import { appendAudit, type Actor } from '../../identity/audit.ts';
import type { StorageService } from '../../storage/storage.ts';
import type { Db } from '../../storage/tables.ts';
import { findFirstSession, START } from './active-sessions.ts';
import { findFirstDeployment } from './halt-production.ts';
import { findInForce, getHalt, type Halt, type ListedHalt } from './halts.ts';

/**
 * Lifts the halt of a bot, without starting anything.
 *
 * @throws ServiceError `not_found`; `conflict` when the bot is not halted, all bots are halted, or a
 * deployment that the halt covers has not ended.
 */
export function resumeBot(
  { storage, clock }: StorageService,
  by: Actor,
  ref: string,
  reason: string,
): Promise<ListedHalt> {
  return storage.write(async (tx) => {
    const bot = await getBot(tx, ref);
    const { bot_id, slug, current_version: version } = bot;
    const all = await findInForce(tx, null);
    if (all !== undefined) {
      throw new ServiceError('conflict', `all bots are halted by halt ${all.halt_id}`, {
        reason: 'halted',
        remedy: 'Lift that halt first, with `service-local bots resume-all --reason "…"`.',
      });
    }
    const halt = await findInForce(tx, bot_id);
    if (halt === undefined) throw notHalted(`bot ${slug} is not halted`);
    await refuseActive(tx, halt, `bots halt ${slug}`);
    const now = clock();
    const { halt_id, scope } = halt;
    await appendAudit(tx, now, {
      actor: by,
      action: 'bots.resume',
      target: `bot:${bot_id}`,
      details: { halt_id, reason },
    });
    await appendEvents(tx, bot_id, now, [
      {
        kind: 'control.resumed',
        version,
        occurred_at: now,
        payload: { halt_id, scope, reason, by },
      },
    ]);
    return lift(tx, halt, { lifted_at: now, lifted_by: by, lift_reason: reason });
  });
}

/**
 * Lifts the halt of all bots. Halts of single bots stay in force.
 * @throws ServiceError `conflict` when there is no such halt, or a deployment has not ended.
 */
export function resumeAll(
  { storage, clock }: StorageService,
  by: Actor,
  reason: string,
): Promise<ListedHalt> {
  return storage.write(async (tx) => {
    const halt = await findInForce(tx, null);
    if (halt === undefined) throw notHalted('there is no halt of all bots');
    await refuseActive(tx, halt, 'bots halt-all');
    const now = clock();
    const { halt_id } = halt;
    const details = { halt_id, reason };
    await appendAudit(tx, now, { actor: by, action: 'bots.resume_all', target: 'bots', details });
    return lift(tx, halt, { lifted_at: now, lifted_by: by, lift_reason: reason });
  });
}

async function lift(
  tx: Db,
  halt: Halt,
  lifted: Pick<Halt, 'lifted_at' | 'lifted_by' | 'lift_reason'>,
): Promise<ListedHalt> {
  await tx.updateTable('halts').set(lifted).where('halt_id', '=', halt.halt_id).execute();
  return getHalt(tx, halt.halt_id);
}

/** An interrupted halt may leave sessions that would trade again. */
async function refuseActive(tx: Db, halt: Halt, verb: string): Promise<void> {
  const left = (await findFirstSession(tx, halt, START)) ?? (await findFirstDeployment(tx, halt));
  if (left === undefined) return;
  throw new ServiceError(
    'conflict',
    `halt ${halt.halt_id} has not ended deployment ${left.deployment_id} yet`,
    {
      reason: 'not_ended',
      remedy: `Repeat the halt with \`service-local ${verb} --reason "…"\`, which ends the remaining deployments.`,
    },
  );
}

function notHalted(message: string): ServiceError {
  return new ServiceError('conflict', message, {
    reason: 'not_halted',
    remedy: 'See `service-local bots halts`.',
  });
}
