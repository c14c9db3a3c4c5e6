/** Finds occurrences that rules can match. */
import { sql, type ExpressionBuilder } from 'kysely';
import { DAY, HOUR } from '../../base/durations.ts';
import { formatPercent, formatSpan } from '../../base/format.ts';
import type { ErrorData } from '../../base/error-data.ts';
import type { NotificationCondition } from '../../base/notifications.ts';
import { calendarOf, type CalendarName } from '../../market/trading-calendar.ts';
import { isPostgres } from '../../storage/prepare-rows-query.ts';
import type { Db, Tables } from '../../storage/tables.ts';
import type { Notice } from './notices.ts';

export interface Occurrence {
  /** Equal for the same occurrence, whichever server finds it. */
  readonly key: string;
  readonly condition: NotificationCondition;
  readonly type: Notice['type'];
  /** Null if it is not about one bot. */
  readonly bot_id: string | null;
  /** Milliseconds since the Unix epoch. */
  readonly at: number;
  /** Value that is compared with the amount of a rule; null for conditions without one. */
  readonly measure: number | null;
  /** Text after the name of the bot, such as `is halted: …`; the whole summary if there is no bot. */
  readonly text: string;
  readonly details: Notice['data']['details'];
}

/** A lease of this server, which is in no database. */
export interface OwnLease {
  readonly lease_id: string;
  /** Milliseconds since the Unix epoch. */
  readonly expires_at: number;
}

type Finder = (db: Db, since: number) => Promise<Occurrence[]>;

/** Finds what happened at `since` or later, ms since the Unix epoch. */
export const EVENT_FINDERS: Readonly<Record<'halted' | 'error', Finder>> = {
  halted: findHalts,
  error: async (db, since) => [
    ...(await findFailedSessions(db, since)),
    ...(await findCriticalAlerts(db, since)),
  ],
};

async function findHalts(db: Db, since: number): Promise<Occurrence[]> {
  const halts = await db
    .selectFrom('halts')
    .selectAll()
    .where('requested_at', '>=', since)
    .execute();
  return halts.map(({ halt_id, bot_id, reason, requested_at: at }) => ({
    key: `halt:${halt_id}`,
    condition: 'halted',
    type: bot_id === null ? 'bots.halted' : 'bot.halted',
    bot_id,
    at,
    measure: null,
    text: `${bot_id === null ? 'all bots are' : 'is'} halted: ${reason}`,
    details: { halt_id, reason },
  }));
}

async function findFailedSessions(db: Db, since: number): Promise<Occurrence[]> {
  const tasks = await db
    .selectFrom('tasks')
    .select(['task_id', 'bot_id', 'kind', 'ended_at', 'error'])
    // The literal lets the database use the partial index of failed tasks.
    .where(sql<boolean>`status = 'failed'`)
    .where('kind', 'in', ['paper', 'production'])
    .where('ended_at', '>=', since)
    .$narrowType<{ ended_at: number; error: string }>()
    .execute();
  return tasks.map(({ task_id, bot_id, kind, ended_at: at, error }) => {
    const { code, message } = JSON.parse(error) as ErrorData;
    return {
      key: `task:${task_id}`,
      condition: 'error',
      type: 'bot.error',
      bot_id,
      at,
      measure: null,
      text: `has failed: ${message}`,
      details: { task_id, session: kind, code },
    };
  });
}

/** Alerts of the same cause in the same hour of the clock are one occurrence, so that a flood sends few messages. */
async function findCriticalAlerts(db: Db, since: number): Promise<Occurrence[]> {
  const events = await db
    .selectFrom('bot_events')
    .select(['bot_id', 'seq', 'run_id', 'recorded_at', 'payload'])
    // The literal lets the database use the partial index of alerts.
    .where(sql<boolean>`kind = 'alert.raised'`)
    .where('recorded_at', '>=', since)
    .where('payload', 'like', '%"severity":"critical"%')
    .orderBy('recorded_at')
    .execute();
  return events.flatMap(({ bot_id, seq, run_id: task_id, recorded_at: at, payload }) => {
    const { control } = JSON.parse(payload) as { readonly control: string };
    if (control === 'halt') return [];
    return {
      key: `alert:${bot_id}:${control}:${Math.floor(at / HOUR)}`,
      condition: 'error',
      type: 'bot.error',
      bot_id,
      at,
      measure: null,
      text: `has a critical alert: ${control.replaceAll('_', ' ')}`,
      details: { task_id, control, seq },
    };
  });
}

/** Open sessions that have lost at least the fraction `least` of their highest equity. */
export async function findDrawdowns(db: Db, least: number): Promise<Occurrence[]> {
  const equity = sql<number>`cast(${jsonText(db, 'session.state', ['equity'])} as double precision)`;
  const peakPath = ['carry', 'risk', 'peak_equity'];
  const peak = sql<number>`cast(${jsonText(db, 'session.state', peakPath)} as double precision)`;
  const sessions = await selectOpenSessions(db)
    .select([equity.as('equity'), peak.as('peak')])
    // The database compares, because there may be many sessions; null without a peak.
    .where(equity, '<=', sql<number>`${peak} * ${1 - least}`)
    .where(peak, '>', 0)
    .execute();
  return sessions.map(({ task_id, bot_id, recorded_at: at, ...account }) => {
    const measure = 1 - account.equity / account.peak;
    return {
      // A later drawdown, from a higher equity, is another occurrence.
      key: `drawdown:${task_id}:${account.peak}`,
      condition: 'drawdown',
      type: 'bot.drawdown',
      bot_id,
      at,
      measure,
      text: `has lost ${formatPercent(measure)} since its highest equity`,
      details: { task_id, drawdown: measure, equity: account.equity, peak_equity: account.peak },
    };
  });
}

/**
 * Open sessions that have recorded nothing for at least `least` seconds, not counting the time in
 * which the exchange of the bot's calendar is closed.
 */
export async function findSilentSessions(
  db: Db,
  now: number,
  least: number,
): Promise<Occurrence[]> {
  const sessions = await selectOpenSessions(db)
    .innerJoin('bot_versions as version', (join) =>
      join
        .onRef('version.bot_id', '=', 'deployment.bot_id')
        .onRef('version.version', '=', 'deployment.version'),
    )
    .select(
      jsonText(db, 'version.document', ['spec', 'universe', 'calendar'])
        .$castTo<CalendarName | null>()
        .as('calendar'),
    )
    .where('session.recorded_at', '<=', now - least * 1000)
    .execute();
  return sessions.flatMap(({ task_id, bot_id, recorded_at, calendar }) => {
    const since = Math.max(recorded_at, openedAt(calendar, now));
    const measure = Math.floor((now - since) / 1000);
    if (measure < least) return [];
    return {
      key: `no_bars:${task_id}:${recorded_at}`,
      condition: 'no_bars',
      type: 'bot.no_bars',
      bot_id,
      at: now,
      measure,
      text: `has received no bars for ${formatSpan(now - since)}`,
      details: { task_id, seconds: measure },
    };
  });
}

/** When the current trading session of a calendar opened; in the future while it is closed. */
function openedAt(calendar: CalendarName | null, now: number): number {
  try {
    return calendarOf(calendar ?? undefined)?.sessionAt(now).open ?? 0;
  } catch {
    // The calendar does not cover this year.
    return 0;
  }
}

/** A value inside a column of JSON text, as text; null if it is absent. */
function jsonText(db: Db, column: string, path: readonly string[]) {
  return isPostgres(db)
    ? sql<string | null>`cast(${sql.ref(column)} as json) #>> ${sql.lit(`{${path.join(',')}}`)}`
    : sql<string | null>`json_extract(${sql.ref(column)}, ${sql.lit(`$.${path.join('.')}`)})`;
}

/** Leases of installations and of this server that expire within `most` hours and are not renewed. */
export async function findExpiringLeases(
  db: Db,
  now: number,
  most: number,
  own: OwnLease | null,
): Promise<Occurrence[]> {
  const leases = await db
    .selectFrom('license_leases as lease')
    .innerJoin('deployments', 'deployments.deployment_id', 'lease.deployment_id')
    .innerJoin('contracts', 'contracts.contract_id', 'deployments.contract_id')
    .select(['lease.lease_id', 'lease.expires_at', 'deployments.deployment_id', 'deployments.name'])
    .where('lease.expires_at', '<=', now + most * HOUR)
    // Older ones were found before, or expired while there was no rule.
    .where('lease.grace_ends_at', '>', now - DAY)
    .where('lease.revoked_at', 'is', null)
    .where('deployments.revoked_at', 'is', null)
    .where('contracts.ends_at', '>', now)
    .where((of) => of.not(of.exists(newerLease(of))))
    .execute();
  const found = leases.map(({ name, ...lease }) => ({ ...lease, holder: `installation ${name}` }));
  const all =
    own === null || own.expires_at > now + most * HOUR
      ? found
      : [...found, { ...own, deployment_id: null, holder: 'this server' }];
  return all.map(({ lease_id, expires_at, deployment_id, holder }) => ({
    key: `lease:${lease_id}`,
    condition: 'lease',
    type: 'license.lease_expires',
    bot_id: null,
    at: now,
    measure: Math.max(0, expires_at - now) / HOUR,
    text: `the lease of ${holder} ${expires_at > now ? 'expires' : 'expired'} at ${new Date(expires_at).toISOString()}`,
    details: { lease_id, deployment_id, expires_at: new Date(expires_at).toISOString() },
  }));
}

function newerLease(of: ExpressionBuilder<Tables & { lease: Tables['license_leases'] }, 'lease'>) {
  return of
    .selectFrom('license_leases as newer')
    .select('newer.lease_id')
    .whereRef('newer.deployment_id', '=', 'lease.deployment_id')
    .whereRef('newer.lease_id', '>', 'lease.lease_id');
}

function selectOpenSessions(db: Db) {
  return db
    .selectFrom('bot_deployments as deployment')
    .innerJoin('trading_sessions as session', 'session.task_id', 'deployment.task_id')
    .select(['session.task_id', 'session.bot_id', 'session.recorded_at'])
    .where('deployment.ended_at', 'is', null)
    .where('deployment.target', 'in', ['paper', 'k8s']);
}
