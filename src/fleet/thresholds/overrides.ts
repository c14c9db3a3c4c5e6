/**
 * Overrides of Article 15(6) of RTS 6: one order that a limit denies is let through, once, by two
 * people. Somebody who trades asks; risk verifies; another, who is designated, authorises; all three
 * are different. Nothing of the limit changes. Only limits of price and size are lifted (`OverridableLimit`):
 * no halt, latch, lease, permission, loss or rate of messages.
 */
import { v7 as uuidv7 } from 'uuid';
import { getBot } from '../registry/bots.ts';
import { ServiceError } from '../../base/errors.ts';
import type { OverridableLimit, UsedPermit } from '../../engine/risk/supervision.ts';
import { appendEvents } from '../../events/append.ts';
import { appendAudit, type Actor } from '../../identity/audit.ts';
import { readPage, type Page, type PageRequest } from '../../storage/paging.ts';
import type { Storage } from '../../storage/storage.ts';
import type { Db, OverridesTable } from '../../storage/tables.ts';
import type { TimedPermit } from '../../trading/session-supervision.ts';

export interface AskedOverride {
  /** The session whose order it is; the only one of the bot that has not ended by default. */
  readonly run_id?: string | undefined;
  readonly symbol: string;
  readonly side: 'buy' | 'sell';
  /** Units. */
  readonly max_quantity: number;
  /** See `Permit`. */
  readonly worst_price: number | null;
  readonly controls: readonly OverridableLimit[];
  readonly reason: string;
  readonly valid_minutes: number;
}

export type Override = Omit<OverridesTable, 'controls'> & {
  readonly controls: readonly OverridableLimit[];
  readonly status: 'requested' | 'verified' | 'authorised' | 'used' | 'expired';
};

/** An override that may still be used. */
export interface RunPermit extends TimedPermit {
  readonly run_id: string;
}

interface Service {
  readonly storage: Storage;
  /** Milliseconds since the Unix epoch. */
  readonly clock: () => number;
}

/** @throws ServiceError `not_found`; `conflict` where no session, or more than one, is meant. */
export function requestOverride(
  { storage, clock }: Service,
  by: Actor,
  ref: string,
  { run_id: asked, valid_minutes, controls, ...order }: AskedOverride,
): Promise<Override> {
  return storage.write(async (tx) => {
    const now = clock();
    const { bot_id } = await getBot(tx, ref);
    const run_id = await sessionOf(tx, bot_id, asked);
    const row: OverridesTable = {
      override_id: uuidv7({ msecs: now }),
      bot_id,
      run_id,
      ...order,
      controls: JSON.stringify(controls),
      requested_by: by,
      requested_at: now,
      expires_at: now + valid_minutes * 60_000,
      verified_by: null,
      verified_at: null,
      verify_reason: null,
      authorised_by: null,
      authorised_at: null,
      authorise_reason: null,
      used_at: null,
      used_order: null,
    };
    await recordDecision(tx, now, by, row, 'risk.override_requested', order.reason);
    await tx.insertInto('overrides').values(row).execute();
    return known(row, now);
  });
}

/** That the limit is rightly passed for this order: by risk. @throws see `authoriseOverride`. */
export function verifyOverride(
  service: Service,
  by: Actor,
  override_id: string,
  reason: string,
): Promise<Override> {
  return decide(service, by, override_id, reason, 'verify');
}

/**
 * From then on the order may pass, once and until it expires.
 *
 * @throws ServiceError `not_found`; `conflict` with the reason `same_person`, `not_verified`,
 * `decided` or `expired`.
 */
export function authoriseOverride(
  service: Service,
  by: Actor,
  override_id: string,
  reason: string,
): Promise<Override> {
  return decide(service, by, override_id, reason, 'authorise');
}

function decide(
  { storage, clock }: Service,
  by: Actor,
  override_id: string,
  reason: string,
  what: 'verify' | 'authorise',
): Promise<Override> {
  return storage.write(async (tx) => {
    const now = clock();
    const row = await rowOf(tx, override_id);
    refuse(row, by, what, now);
    const change =
      what === 'verify'
        ? { verified_by: by, verified_at: now, verify_reason: reason }
        : { authorised_by: by, authorised_at: now, authorise_reason: reason };
    const after = { ...row, ...change };
    const kind = what === 'verify' ? 'risk.override_verified' : 'risk.override_authorised';
    await recordDecision(tx, now, by, after, kind, reason);
    await tx.updateTable('overrides').set(change).where('override_id', '=', override_id).execute();
    return known(after, now);
  });
}

function refuse(row: OverridesTable, by: Actor, what: 'verify' | 'authorise', now: number): void {
  const { requested_by, verified_by, authorised_by, expires_at } = row;
  const conflict = (reason: string, message: string, remedy: string) =>
    new ServiceError('conflict', message, { reason, remedy });
  if (expires_at <= now) {
    throw conflict('expired', 'the override has expired', 'Ask for another.');
  }
  if ((what === 'verify' ? verified_by : authorised_by) !== null) {
    throw conflict('decided', `somebody has done that: ${what}`, 'See `bots overrides list`.');
  }
  if (what === 'authorise' && verified_by === null) {
    throw conflict(
      'not_verified',
      'risk has not verified the override',
      'Have somebody of risk verify it first: `service-local bots overrides verify`.',
    );
  }
  if (by === requested_by || by === verified_by) {
    throw conflict(
      'same_person',
      by === requested_by ? 'you have asked for the override' : 'you have verified the override',
      'One person asks, another verifies, and a third authorises.',
    );
  }
}

async function sessionOf(tx: Db, bot_id: string, asked: string | undefined): Promise<string> {
  let query = tx
    .selectFrom('bot_deployments')
    .select('task_id')
    .where('bot_id', '=', bot_id)
    .where('ended_at', 'is', null)
    .where('target', 'in', ['paper', 'k8s']);
  if (asked !== undefined) query = query.where('task_id', '=', asked);
  const sessions = await query.limit(2).execute();
  if (sessions.length === 1) return sessions[0]!.task_id;
  const isNone = sessions.length === 0;
  throw new ServiceError(
    'conflict',
    isNone ? 'the bot has no such session that goes on' : 'the bot has several sessions',
    {
      reason: isNone ? 'no_session' : 'several_sessions',
      remedy: 'Name the task of the session whose order it is: `--run`.',
    },
  );
}

async function recordDecision(
  tx: Db,
  now: number,
  by: Actor,
  { controls, ...row }: OverridesTable,
  kind: string,
  reason: string,
): Promise<void> {
  const { override_id, bot_id, run_id, symbol, side, max_quantity, worst_price, expires_at } = row;
  const order = { run_id, symbol, side, max_quantity, worst_price };
  const details = { override_id, ...order, controls: JSON.parse(controls) as unknown, reason };
  const expires = new Date(expires_at).toISOString();
  await appendAudit(tx, now, {
    actor: by,
    action: kind.replace('risk.override_', 'risk.overrides.'),
    target: `bot:${bot_id}`,
    details: { ...details, expires_at: expires },
  });
  const { current_version: version } = await getBot(tx, bot_id);
  const payload = { ...details, expires_at: expires, by };
  await appendEvents(tx, bot_id, now, [{ kind, version, occurred_at: now, payload }]);
}

async function rowOf(db: Db, override_id: string): Promise<OverridesTable> {
  const row = await db
    .selectFrom('overrides')
    .selectAll()
    .where('override_id', '=', override_id)
    .executeTakeFirst();
  if (row !== undefined) return row;
  throw new ServiceError('not_found', `there is no override ${override_id}`, {
    remedy: 'See `service-local bots overrides list`.',
  });
}

function known({ controls, ...row }: OverridesTable, now: number): Override {
  const status =
    row.used_at !== null
      ? 'used'
      : row.expires_at <= now
        ? 'expired'
        : row.authorised_at !== null
          ? 'authorised'
          : row.verified_at !== null
            ? 'verified'
            : 'requested';
  return { ...row, controls: JSON.parse(controls) as OverridableLimit[], status };
}

/** Of a bot, the newest first. @param now by which they expire. */
export async function listOverrides(
  db: Db,
  ref: string,
  request: PageRequest,
  now: number,
): Promise<Page<Override>> {
  const { bot_id } = await getBot(db, ref);
  return readPage(
    ['overrides', bot_id],
    request,
    ({ override_id }) => override_id,
    async (after, limit) => {
      let query = db.selectFrom('overrides').selectAll().where('bot_id', '=', bot_id);
      if (after !== undefined) query = query.where('override_id', '<', after);
      const rows = await query.orderBy('override_id', 'desc').limit(limit).execute();
      return rows.map((row) => known(row, now));
    },
  );
}

/** Those that sessions may use. */
export async function listOpenPermits(db: Db, now: number): Promise<RunPermit[]> {
  const rows = await db
    .selectFrom('overrides')
    .selectAll()
    .where('authorised_at', 'is not', null)
    .where('used_at', 'is', null)
    .where('expires_at', '>', now)
    .orderBy('override_id')
    .execute();
  return rows.map((row) => {
    const { override_id, run_id, symbol, side, max_quantity, worst_price, expires_at } = row;
    const controls = JSON.parse(row.controls) as OverridableLimit[];
    return { override_id, run_id, symbol, side, max_quantity, worst_price, controls, expires_at };
  });
}

/** A session has told that it used one; of one that nobody authorised that is not believed. */
export async function markUsed(
  tx: Db,
  run_id: string,
  { override_id, order }: Pick<UsedPermit, 'override_id' | 'order'>,
  now: number,
): Promise<void> {
  await tx
    .updateTable('overrides')
    .set({ used_at: now, used_order: order })
    .where('override_id', '=', override_id)
    .where('run_id', '=', run_id)
    .where('authorised_at', 'is not', null)
    .where('used_at', 'is', null)
    .execute();
}
