/** What a report has to say that the records do not hold. */
import { ALERTS, LATCHES } from './counts.ts';
import { formatCountOf } from '../../base/format.ts';
import type { Gaps } from './fields.ts';
import type { EventCount, Period, SeqRange } from './period.ts';
import { MOST_LISTED } from './records.ts';

/** What a log without such events leaves open: that there was nothing, or that nothing makes them. */
const UNTOLD = [
  ['no_alerts', ALERTS, 'the log has no alerts, and so nothing of how fast they were', ['16(5)']],
  ['no_latches', LATCHES, 'the log has no stops after repeated execution', ['15(3)']],
] as const;

/** How much of the year there is. */
export function sayHowMuchThereIs(
  gaps: Gaps,
  { year, isOver }: Period,
  { after_seq, through_seq }: SeqRange,
): void {
  if (!isOver) gaps.add('period_not_over', `the year ${year} is not over`, ['9(1)']);
  if (through_seq === after_seq) {
    gaps.add('no_events', 'the log of the bot has no event of the period', ['9(1)(a)']);
  }
}

/** What the log does not tell, and what is not done here. */
export function sayWhatIsMissing(
  gaps: Gaps,
  {
    counts,
    environments,
    drills,
    halts,
    unattributed,
  }: {
    readonly counts: readonly EventCount[];
    readonly environments: ReadonlyMap<string, string>;
    readonly drills: number;
    readonly halts: number;
    /** Orders. */
    readonly unattributed: number;
  },
): void {
  const isLive = counts.some(({ run_id }) => environments.get(run_id ?? '') === 'k8s');
  if (!isLive) {
    gaps.add('no_production', 'there is no event of production: what was counted is of paper', [
      '9(1)(a)',
    ]);
  }
  gaps.add(
    'halt_of_subjects',
    'a halt of one trader, desk or client: there are those of a bot and of all bots',
    ['12(2)'],
  );
  if (unattributed > 0) {
    gaps.add(
      'unattributed_orders',
      `for which trader, desk or client ${formatCountOf(unattributed, 'order')} were`,
      ['12(3)'],
    );
  }
  if (drills === 0) gaps.add('no_drill', 'no drill of the halt in the period', ['12', '14(4)']);
  if (Math.max(drills, halts) > MOST_LISTED) {
    gaps.add('halts_cut', `only the first ${MOST_LISTED} halts are listed`, ['12']);
  }
  gaps.add(
    'missed_breaches',
    'how many breaches of a limit went unnoticed: the log tells only those denied',
    ['15(1)'],
  );
  for (const [id, kinds, missing, articles] of UNTOLD) {
    if (!counts.some(({ kind }) => kinds.test(kind))) gaps.add(id, missing, articles);
  }
  gaps.add('no_surveillance', 'surveillance for market abuse, which is not done here', [
    '13(1)',
    '13(2)',
  ]);
  gaps.add(
    'no_external_reconciliation',
    'reconciliation with clearers, brokers and data providers',
    ['17(3)'],
  );
}

/**
 * Not run is never a pass, and neither is what was run of something else than now, or came to no pass.
 * @param catalogue ids of all cases. @param conformance the newest first, as is `stress`.
 */
export function sayWhatWasTried(
  gaps: Gaps,
  catalogue: readonly string[],
  conformance: readonly (Tried & Conformed)[],
  stress: readonly (Tried & { readonly scope: unknown; readonly verdict: unknown })[],
): void {
  const ofConformance = ['6(1)', '6(2)'];
  if (conformance.length === 0) {
    gaps.add('conformance_not_run', 'conformance: not run', ofConformance);
  } else if (conformance.every(({ stale }) => stale)) {
    gaps.add('conformance_stale', 'conformance: not run of what there is now', ofConformance);
  } else {
    const last = lastOfCases(conformance.filter(({ stale }) => !stale));
    const not = catalogue.filter((id) => !last.has(id));
    if (not.length > 0) {
      const how = `${not.length} of ${catalogue.length} cases not run`;
      const missing = `conformance: ${how} of what there is now: ${not.join(', ')}`;
      gaps.add('conformance_in_part', missing, ofConformance);
    }
    for (const [id, status] of last) {
      if (status !== 'fail' && status !== 'inconclusive') continue;
      const what = status === 'fail' ? 'failed' : 'was inconclusive, which is no pass';
      gaps.add(`conformance_${id}`, `conformance: ${id} ${what}`, ofConformance);
    }
  }
  gaps.add(
    'conformance_at_venue',
    "the venue's own report of a conformance test, which nothing here stands in for",
    ['6(1)(a)'],
  );
  if (stress.length === 0) gaps.add('stress_not_run', 'stress test: not run', ['10']);
  else if (stress.every(({ stale }) => stale)) {
    gaps.add('stress_stale', 'stress test: not run of what there is now', ['10']);
  } else {
    const { verdict } = stress.find(({ stale }) => !stale)!;
    if (verdict !== 'pass') {
      const missing = `stress test: the newest came to the verdict ${String(verdict)}, which is no pass`;
      gaps.add('stress_not_passed', missing, ['10']);
    }
  }
  if (!stress.some(({ stale, scope }) => !stale && scope === 'firm')) {
    gaps.add('stress_of_firm', 'a stress test with the load of the firm: none of this bot', ['10']);
  }
}

interface Tried {
  readonly stale: boolean;
}

interface Conformed {
  readonly passed: readonly string[];
  readonly not_passed: readonly { readonly id: string; readonly status: string }[];
}

/** What each case came to when it was played last, by id. */
function lastOfCases(newestFirst: readonly Conformed[]): ReadonlyMap<string, string> {
  const all = newestFirst
    .toReversed()
    .flatMap(({ passed, not_passed }) => [
      ...passed.map((id) => [id, 'pass'] as const),
      ...not_passed.map(({ id, status }) => [id, status] as const),
    ]);
  return new Map(all.toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)));
}
