/** Counts of the events that a bot recorded in a period. */
import { sql } from 'kysely';
import type { Storage } from '../../storage/storage.ts';
import type { Db } from '../../storage/tables.ts';
import type { Deployment } from './traded-deployments.ts';
import type { SeqRange } from './period.ts';

export interface EventCount {
  readonly kind: string;
  readonly run_id: string | null;
  /** Null unless an order was denied or rejected. */
  readonly reason: string | null;
  readonly count: number;
}

export const ALERTS = /^alert\./;
/** Events that stop a session after repeated executions, Article 15(3). */
export const LATCHES = /^account\.latched$/;
export const DATA_GAPS = /^data\.(?!bars$)/;
export const BREAKS = /^(venue\.(mismatch|orphan)|account\.margin_call)$/;

/** SQLite blocks the server's thread while it reads; this number of events takes about 10 ms. */
const EVENTS_AT_ONCE = 8192;

/** Counts the events of each kind, run and reason, in pages between which other work continues. */
export async function countEvents(
  storage: Storage,
  bot_id: string,
  { after_seq, through_seq }: SeqRange,
  atOnce = EVENTS_AT_ONCE,
): Promise<EventCount[]> {
  const counts = new Map<string, EventCount>();
  // A payload that was tampered with may not be JSON; the event still counts.
  const reasonIn =
    storage.kind === 'sqlite'
      ? sql`case when json_valid(payload) then json_extract(payload, '$.reason') end`
      : sql`substring(payload from '"reason":"([a-z0-9_]+)"')`;
  const reason = sql<
    string | null
  >`case when kind in ('order.denied', 'order.rejected') then ${reasonIn} end`;
  for (let after = after_seq; after < through_seq; after += atOnce) {
    const rows = await storage.read
      .selectFrom('bot_events')
      .select(['kind', 'run_id', reason.as('reason')])
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .where('bot_id', '=', bot_id)
      .where('seq', '>', after)
      .where('seq', '<=', Math.min(after + atOnce, through_seq))
      .groupBy(['kind', 'run_id', reason])
      .execute();
    for (const row of rows) {
      const key = JSON.stringify([row.kind, row.run_id, row.reason]);
      const before = counts.get(key)?.count ?? 0;
      counts.set(key, { ...row, count: before + row.count });
    }
    await new Promise(setImmediate);
  }
  return [...counts.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, count]) => count);
}

/** Deployment targets by run id. */
export type Environments = ReadonlyMap<string, Deployment['target']>;

/** Counts order events by deployment target and kind. */
export function countOrderEvents(counts: readonly EventCount[], environments: Environments) {
  const ofOrders = counts.filter(({ kind }) => kind.startsWith('order.'));
  return sumBy(ofOrders, ({ kind, run_id }) => ({
    environment: environments.get(run_id ?? '') ?? 'unknown',
    kind,
  }));
}

/** Counts orders that were denied before they were sent, by limit and deployment target. */
export function countBreaches(counts: readonly EventCount[], environments: Environments) {
  const denied = counts.filter(({ kind }) => kind === 'order.denied');
  return sumBy(denied, ({ reason, run_id }) => ({
    control: reason ?? 'unknown',
    environment: environments.get(run_id ?? '') ?? 'unknown',
  })).map(({ count, ...row }) => ({ ...row, count, blocked: count, missed: null }));
}

export function countKinds(counts: readonly EventCount[], kinds: RegExp) {
  return sumBy(
    counts.filter(({ kind }) => kinds.test(kind)),
    ({ kind }) => ({ kind }),
  );
}

/**
 * Counts the orders whose run is recorded, and those whose session names a trader, desk or client.
 * `attributed` and `pct` count orders of which the run and at least one of the three are known.
 */
export function countAttribution(
  counts: readonly EventCount[],
  deployments: readonly Deployment[],
) {
  const subjects = new Map(deployments.map(({ task_id, subjects: own }) => [task_id, own]));
  const sum = {
    orders: 0,
    with_run: 0,
    with_trader: 0,
    with_desk: 0,
    with_client: 0,
    attributed: 0,
  };
  for (const { kind, run_id, count } of counts) {
    if (kind !== 'order.submitted') continue;
    const { trader = null, desk = null, client = null } = subjects.get(run_id ?? '') ?? {};
    sum.orders += count;
    if (run_id !== null) sum.with_run += count;
    if (trader !== null) sum.with_trader += count;
    if (desk !== null) sum.with_desk += count;
    if (client !== null) sum.with_client += count;
    if ((trader ?? desk ?? client) !== null) sum.attributed += count;
  }
  return { ...sum, pct: sum.orders === 0 ? null : (100 * sum.attributed) / sum.orders };
}

/** Sums the counts of events with the same key, in the order of the keys. */
function sumBy<K extends object>(
  counts: readonly EventCount[],
  keyOf: (one: EventCount) => K,
): (K & { readonly count: number })[] {
  const groups = Map.groupBy(counts, (one) => JSON.stringify(keyOf(one)));
  return [...groups]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, group]) => ({
      ...(JSON.parse(key) as K),
      count: group.reduce((sum, { count }) => sum + count, 0),
    }));
}

/** Maximum latency of an alert under Article 16(5). */
const LATEST_MS = 5000;
const ALERTS_AT_ONCE = 4096;

/** Counts alerts and their latency; null without alerts, as the bot may not produce any. */
export async function countAlerts(db: Db, bot_id: string, { after_seq, through_seq }: SeqRange) {
  const found = {
    raised: 0,
    latency_unknown: 0,
    latency_max_ms: null as number | null,
    over_5s: 0,
  };
  for (let after = after_seq; ;) {
    const rows = await db
      .selectFrom('bot_events')
      .select(['seq', 'payload'])
      .where('bot_id', '=', bot_id)
      .where('kind', '=', 'alert.raised')
      .where('seq', '>', after)
      .where('seq', '<=', through_seq)
      .orderBy('seq')
      .limit(ALERTS_AT_ONCE)
      .execute();
    for (const { payload } of rows) {
      const ms = readLatency(payload);
      found.raised += 1;
      if (ms === null) found.latency_unknown += 1;
      else {
        found.latency_max_ms = Math.max(found.latency_max_ms ?? 0, ms);
        if (ms > LATEST_MS) found.over_5s += 1;
      }
    }
    if (rows.length < ALERTS_AT_ONCE) return found.raised === 0 ? null : found;
    after = rows.at(-1)!.seq;
  }
}

/** Returns null also for a payload that is not JSON because it was tampered with. */
function readLatency(payload: string): number | null {
  try {
    const { latency_ms } = JSON.parse(payload) as { readonly latency_ms?: unknown };
    return typeof latency_ms === 'number' ? latency_ms : null;
  } catch {
    return null;
  }
}
