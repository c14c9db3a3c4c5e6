/** What counts of events come to. */
import type { Subjects } from '../../fleet/thresholds/subjects.ts';
import type { EventCount } from './period.ts';
import type { Deployment } from './records.ts';

/** Kinds of events: alerts, and latches after repeated execution. */
export const ALERTS = /^alert\./;
export const LATCHES = /^account\.latched$/;

/** Where a run was, by its id. */
export type Environments = ReadonlyMap<string, Deployment['target']>;

/** What became of orders, by where their run was. */
export function byEnvironment(counts: readonly EventCount[], environments: Environments) {
  const ofOrders = counts.filter(({ kind }) => kind.startsWith('order.'));
  return sumBy(ofOrders, ({ kind, run_id }) => ({
    environment: environments.get(run_id ?? '') ?? 'unknown',
    kind,
  }));
}

/** Orders that were denied before they were sent, by the control that did it. */
export function breachesOf(counts: readonly EventCount[], environments: Environments) {
  const denied = counts.filter(({ kind }) => kind === 'order.denied');
  return sumBy(denied, ({ reason, run_id }) => ({
    control: reason ?? 'unknown',
    environment: environments.get(run_id ?? '') ?? 'unknown',
  })).map(({ count, ...row }) => ({ ...row, count, blocked: count, missed: null }));
}

/** Events of these kinds. */
export function kindsIn(counts: readonly EventCount[], kinds: RegExp) {
  return sumBy(
    counts.filter(({ kind }) => kinds.test(kind)),
    ({ kind }) => ({ kind }),
  );
}

/** The same, but null, and no zero, where there are none of what nothing here may be making. */
export function kindsOrNull(counts: readonly EventCount[], kinds: RegExp) {
  const found = kindsIn(counts, kinds);
  return found.length === 0 ? null : found;
}

/**
 * Of how many orders the log tells the run, and so the bot and its version, and of how many its session
 * says for which trader, desk or client they are. `pct`: of those of which both is known.
 */
export function attributionOf(counts: readonly EventCount[], deployments: readonly Deployment[]) {
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

/** How many there are of each, in the order of what they have in common. */
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
