/** Counts of the events that a bot recorded in a period. */
import { sql } from 'kysely';
import { countPackedBars } from '../../events/packed-bar-rows.ts';
import type { Storage } from '../../storage/storage.ts';
import type { SeqRange } from './period.ts';
import type { Deployment } from './traded-deployments.ts';

export interface EventCount {
  readonly kind: string;
  readonly run_id: string | null;
  /** Reason of a denied or rejected order, latency of an alert (ms); null if missing or for other kinds. */
  readonly detail: string | number | null;
  readonly count: number;
}

export const ALERTS = /^alert\./;
/** Events that stop a session after repeated executions, Article 15(3). */
export const LATCHES = /^account\.latched$/;
export const DATA_GAPS = /^data\.(?!bars$)/;
export const BREAKS = /^(venue\.(mismatch|orphan)|account\.margin_call)$/;

/** SQLite blocks the server's thread while it reads; this number of events takes about 10 ms. */
const EVENTS_AT_ONCE = 8192;

/** A payload that was tampered with may not be JSON; the event still counts. */
const DETAILS = {
  sqlite: sql`case when json_valid(payload) then case
    when kind in ('order.denied', 'order.rejected') then json_extract(payload, '$.reason')
    when kind = 'alert.raised' and json_type(payload, '$.latency_ms') in ('integer', 'real')
      then json_extract(payload, '$.latency_ms')
    end end`,
  postgres: sql`case
    when kind in ('order.denied', 'order.rejected')
      then substring(payload from '"reason":"([a-z0-9_]+)"')
    when kind = 'alert.raised' then substring(payload from '"latency_ms":(-?[0-9.eE+-]+)')
    end`,
};

/** Counts the events of each kind, run and detail, in pages between which other work continues. */
export async function countEvents(
  storage: Storage,
  bot_id: string,
  { after_seq, through_seq }: SeqRange,
  atOnce = EVENTS_AT_ONCE,
): Promise<EventCount[]> {
  const counts = new Map<string, EventCount>();
  const detail = sql<EventCount['detail']>`${DETAILS[storage.kind]}`;
  for (let after = after_seq; after < through_seq; after += atOnce) {
    const until_seq = Math.min(after + atOnce, through_seq);
    const rows = await storage.read
      .selectFrom('bot_events')
      .select(['kind', 'run_id', detail.as('detail')])
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .where('bot_id', '=', bot_id)
      .where('seq', '>', after)
      .where('seq', '<=', until_seq)
      .groupBy(['kind', 'run_id', detail])
      .execute();
    const packed = await countPackedBars(storage.read, bot_id, { after_seq: after, until_seq });
    for (const row of [...rows, ...packed.map((one) => ({ ...one, detail: null }))]) {
      const key = JSON.stringify([row.kind, row.run_id, row.detail]);
      counts.set(key, { ...row, count: row.count + (counts.get(key)?.count ?? 0) });
    }
    await new Promise(setImmediate);
  }
  return [...counts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, count]) => count);
}

/** Deployment targets by run id. */
export type Environments = ReadonlyMap<string | null, Deployment['target']>;

/** Counts order events by deployment target and kind. */
export function countOrderEvents(counts: readonly EventCount[], environments: Environments) {
  return countBy(counts, /^order\./, ({ kind, run_id }) => ({
    environment: environments.get(run_id) ?? 'unknown',
    kind,
  }));
}

/** Counts orders that were denied before they were sent, by limit and deployment target. */
export function countBreaches(counts: readonly EventCount[], environments: Environments) {
  return countBy(counts, /^order\.denied$/, ({ detail, run_id }) => ({
    control: detail ?? 'unknown',
    environment: environments.get(run_id) ?? 'unknown',
  })).map((row) => ({ ...row, blocked: row.count, missed: null }));
}

export function countKinds(counts: readonly EventCount[], kinds: RegExp) {
  return countBy(counts, kinds, ({ kind }) => ({ kind }));
}

/** Sums the counts of events of some kinds with the same key, in the order of the keys. */
function countBy<K extends object>(
  counts: readonly EventCount[],
  kinds: RegExp,
  keyOf: (one: EventCount) => K,
): (K & { readonly count: number })[] {
  const chosen = counts.filter(({ kind }) => kinds.test(kind));
  return [...Map.groupBy(chosen, (one) => JSON.stringify(keyOf(one)))]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, group]) => ({ ...(JSON.parse(key) as K), count: sum(group) }));
}

function sum(counts: readonly EventCount[]): number {
  return counts.reduce((total, { count }) => total + count, 0);
}

/**
 * Counts the orders whose run is recorded, and those whose session names a trader, desk or client.
 * `attributed` and `pct` count orders of which the run and at least one of the three are known.
 */
export function countAttribution(
  counts: readonly EventCount[],
  deployments: readonly Deployment[],
) {
  const subjects = new Map(deployments.map((one) => [one.task_id as string | null, one.subjects]));
  const submitted = counts.filter(({ kind }) => kind === 'order.submitted');
  const orders = sum(submitted);
  const countWith = (...names: readonly ('trader' | 'desk' | 'client')[]): number =>
    sum(submitted.filter(({ run_id }) => names.some((name) => subjects.get(run_id)?.[name])));
  const attributed = countWith('trader', 'desk', 'client');
  return {
    orders,
    with_run: sum(submitted.filter(({ run_id }) => run_id !== null)),
    with_trader: countWith('trader'),
    with_desk: countWith('desk'),
    with_client: countWith('client'),
    attributed,
    pct: orders === 0 ? null : (100 * attributed) / orders,
  };
}

/** Maximum latency of an alert under Article 16(5). */
const LATEST_MS = 5000;

/** Counts alerts and their latency; null without alerts, as the bot may not produce any. */
export function countAlerts(counts: readonly EventCount[]) {
  const raised = counts.filter(({ kind }) => kind === 'alert.raised');
  if (raised.length === 0) return null;
  const known = raised.filter(({ detail }) => detail !== null);
  const longest = known.reduce((most, { detail }) => Math.max(most, Number(detail)), 0);
  return {
    raised: sum(raised),
    latency_unknown: sum(raised) - sum(known),
    latency_max_ms: known.length === 0 ? null : longest,
    over_5s: sum(known.filter(({ detail }) => Number(detail) > LATEST_MS)),
  };
}
