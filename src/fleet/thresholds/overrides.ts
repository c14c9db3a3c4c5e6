/**
 * Overrides of Article 15(6) of RTS 6: one order passes a limit that denies it. A trader requests the
 * override, the risk function verifies it, and a designated person authorizes it; all three differ. The
 * limit itself stays. Only limits of price and size can be overridden.
 */
import { v7 as uuidv7 } from 'uuid';
import { getBot } from '../registry/bots.ts';
import { ServiceError } from '../../base/errors.ts';
import type { OverridableLimit, UsedPermit } from '../../engine/risk/permits.ts';
import { appendEvents } from '../../events/append.ts';
import { appendAudit, type Actor } from '../../identity/audit.ts';
import { readRowsPage, type Page, type PageRequest } from '../../storage/paging.ts';
import type { StorageService } from '../../storage/storage.ts';
import type { Db, OverridesTable } from '../../storage/tables.ts';
import type { TimedPermit } from '../../trading/session-supervision.ts';

export interface AskedOverride {
  /** Task of the session; may be omitted if the bot has only one active session. */
  readonly run_id?: string | undefined;
  readonly symbol: string;
  readonly side: 'buy' | 'sell';
  /** Units. */
  readonly max_quantity: number;
  /** Worst price as in `Permit`. */
  readonly worst_price: number | null;
  readonly controls: readonly OverridableLimit[];
  readonly reason: string;
  readonly valid_minutes: number;
}

export type Override = Omit<OverridesTable, 'controls'> & {
  readonly controls: readonly OverridableLimit[];
  readonly status: 'requested' | 'verified' | 'authorized' | 'used' | 'expired';
};

/** An authorized override that can be used. */
export interface RunPermit extends TimedPermit {
  readonly run_id: string;
}

/** @throws ServiceError `not_found`; `conflict` unless exactly one active session matches. */
export function requestOverride(
  { storage, clock }: StorageService,
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
      authorized_by: null,
      authorized_at: null,
      authorize_reason: null,
      used_at: null,
      used_order: null,
    };
    await recordDecision(tx, now, by, row, 'risk.override_requested', order.reason);
    await tx.insertInto('overrides').values(row).execute();
    return known(row, now);
  });
}

/** Confirms for the risk function that the order may pass. @throws as `authorizeOverride`. */
export function verifyOverride(
  service: StorageService,
  by: Actor,
  override_id: string,
  reason: string,
): Promise<Override> {
  return decide(service, by, override_id, reason, 'verify');
}

/**
 * Lets the order pass once, until the override expires.
 *
 * @throws ServiceError `not_found`; `conflict` with the reason `same_person`, `not_verified`,
 * `decided` or `expired`.
 */
export function authorizeOverride(
  service: StorageService,
  by: Actor,
  override_id: string,
  reason: string,
): Promise<Override> {
  return decide(service, by, override_id, reason, 'authorize');
}

function decide(
  { storage, clock }: StorageService,
  by: Actor,
  override_id: string,
  reason: string,
  what: 'verify' | 'authorize',
): Promise<Override> {
  return storage.write(async (tx) => {
    const now = clock();
    const row = await rowOf(tx, override_id);
    refuse(row, by, what, now);
    const change =
      what === 'verify'
        ? { verified_by: by, verified_at: now, verify_reason: reason }
        : { authorized_by: by, authorized_at: now, authorize_reason: reason };
    const after = { ...row, ...change };
    const kind = what === 'verify' ? 'risk.override_verified' : 'risk.override_authorized';
    await recordDecision(tx, now, by, after, kind, reason);
    await tx.updateTable('overrides').set(change).where('override_id', '=', override_id).execute();
    return known(after, now);
  });
}

function refuse(row: OverridesTable, by: Actor, what: 'verify' | 'authorize', now: number): void {
  const { requested_by, verified_by, authorized_by, expires_at } = row;
  const conflict = (reason: string, message: string, remedy: string) =>
    new ServiceError('conflict', message, { reason, remedy });
  if (expires_at <= now) {
    throw conflict('expired', 'the override has expired', 'Request another override.');
  }
  if ((what === 'verify' ? verified_by : authorized_by) !== null) {
    const done = what === 'verify' ? 'verified' : 'authorized';
    const remedy = 'See `service-local bots overrides list`.';
    throw conflict('decided', `the override is already ${done}`, remedy);
  }
  if (what === 'authorize' && verified_by === null) {
    throw conflict(
      'not_verified',
      'the override is not verified',
      'The risk function must verify it first, with `service-local bots overrides verify`.',
    );
  }
  if (by === requested_by || by === verified_by) {
    throw conflict(
      'same_person',
      by === requested_by ? 'you requested the override' : 'you verified the override',
      'Three different persons must request, verify and authorize an override.',
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
    isNone ? 'the bot has no such active session' : 'the bot has several active sessions',
    {
      reason: isNone ? 'no_session' : 'several_sessions',
      remedy: 'Name the task of the session with `--run`; see `service-local bots deployments`.',
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
        : row.authorized_at !== null
          ? 'authorized'
          : row.verified_at !== null
            ? 'verified'
            : 'requested';
  return { ...row, controls: JSON.parse(controls) as OverridableLimit[], status };
}

/** Lists the overrides of a bot, newest first, with their status at `now`. */
export async function listOverrides(
  db: Db,
  ref: string,
  request: PageRequest,
  now: number,
): Promise<Page<Override>> {
  const { bot_id } = await getBot(db, ref);
  const query = db.selectFrom('overrides').selectAll().where('bot_id', '=', bot_id);
  const page = await readRowsPage(['overrides', bot_id], request, query, 'override_id', 'desc');
  return { ...page, items: page.items.map((row) => known(row, now)) };
}

export async function listOpenPermits(db: Db, now: number): Promise<RunPermit[]> {
  const rows = await db
    .selectFrom('overrides')
    .selectAll()
    .where('authorized_at', 'is not', null)
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

/** Marks an override as used, as reported by its session; ignores overrides without authorization. */
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
    .where('authorized_at', 'is not', null)
    .where('used_at', 'is', null)
    .execute();
}
