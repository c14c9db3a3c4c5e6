import type { Subjects } from '../../fleet/thresholds/subjects.ts';
import type { EventCount } from './period.ts';
import type { Deployment } from './records.ts';

export const ALERTS = /^alert\./;
/** Events that stop a session after repeated executions, Article 15(3). */
export const LATCHES = /^account\.latched$/;

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

/** Null if there are none: the bot may not produce such events at all, so 0 would be misleading. */
export function countKindsOrNull(counts: readonly EventCount[], kinds: RegExp) {
  const found = countKinds(counts, kinds);
  return found.length === 0 ? null : found;
}

/**
 * Counts the orders whose run is recorded, and those whose session names a trader, desk or client.
 * `attributed` and `pct` count orders of which the run and at least one of the three are known.
 */
export function countAttribution(
  counts: readonly EventCount[],
  deployments: readonly Deployment[],
) {
  const subjects = new Map(deployments.map(({ task_id, subjects: whose }) => [task_id, whose]));
  const submitted = counts.filter(({ kind }) => kind === 'order.submitted');
  const countOf = (isMeant: (whose: Subjects | null, run_id: string | null) => boolean): number =>
    submitted.reduce((sum, { run_id, count }) => {
      const whose = subjects.get(run_id ?? '') ?? null;
      return isMeant(whose, run_id) ? sum + count : sum;
    }, 0);
  const orders = countOf(() => true);
  const attributed = countOf(
    (whose) => whose !== null && (whose.trader ?? whose.desk ?? whose.client) !== null,
  );
  return {
    orders,
    with_run: countOf((_, run_id) => run_id !== null),
    with_trader: countOf((whose) => whose !== null && whose.trader !== null),
    with_desk: countOf((whose) => whose !== null && whose.desk !== null),
    with_client: countOf((whose) => whose !== null && whose.client !== null),
    attributed,
    pct: orders === 0 ? null : (100 * attributed) / orders,
  };
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
