import { ALERTS, LATCHES } from './counts.ts';
import { formatCountOf } from '../../base/format.ts';
import type { Gaps } from './report-fields.ts';
import type { EventCount, Period, SeqRange } from './period.ts';
import { MOST_LISTED } from './records.ts';

/** Gaps of a log without such events: either none occurred, or the bot does not produce them. */
const EVENT_GAPS = [
  ['no_alerts', ALERTS, 'the log has no alerts, so their latency is unknown', ['16(5)']],
  ['no_latches', LATCHES, 'the log has no stops after repeated execution', ['15(3)']],
] as const;

export function addPeriodGaps(
  gaps: Gaps,
  { year, isOver }: Period,
  { after_seq, through_seq }: SeqRange,
): void {
  if (!isOver) gaps.add('period_not_over', `the year ${year} is not over`, ['9(1)']);
  if (through_seq === after_seq) {
    gaps.add('no_events', 'the log of the bot has no event in the period', ['9(1)(a)']);
  }
}

/** Adds gaps of the log, and the duties that this program does not cover. */
export function addRecordGaps(
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
    /** Orders without a trader, desk or client. */
    readonly unattributed: number;
  },
): void {
  const isLive = counts.some(({ run_id }) => environments.get(run_id ?? '') === 'k8s');
  if (!isLive) {
    gaps.add(
      'no_production',
      'the log has no production event; all counts come from paper trading',
      ['9(1)(a)'],
    );
  }
  gaps.add(
    'halt_of_subjects',
    'a halt for one trader, desk or client; halts stop one bot or all bots',
    ['12(2)'],
  );
  if (unattributed > 0) {
    gaps.add(
      'unattributed_orders',
      `the trader, desk or client of ${formatCountOf(unattributed, 'order')}`,
      ['12(3)'],
    );
  }
  if (drills === 0) gaps.add('no_drill', 'no halt drill in the period', ['12', '14(4)']);
  if (Math.max(drills, halts) > MOST_LISTED) {
    gaps.add('halts_cut', `only the first ${MOST_LISTED} halts are listed`, ['12']);
  }
  gaps.add(
    'missed_breaches',
    'how many breaches of a limit went unnoticed; the log has only denied orders',
    ['15(1)'],
  );
  for (const [id, kinds, missing, articles] of EVENT_GAPS) {
    if (!counts.some(({ kind }) => kinds.test(kind))) gaps.add(id, missing, articles);
  }
  gaps.add(
    'no_surveillance',
    'surveillance for market abuse, which this program does not perform',
    ['13(1)', '13(2)'],
  );
  gaps.add(
    'no_external_reconciliation',
    'reconciliation with clearers, brokers and data providers',
    ['17(3)'],
  );
}

/**
 * Adds gaps for tests that were not run, are stale or were not passed.
 *
 * @param catalogue ids of all cases. @param conformance newest first, like `stress`.
 */
export function addTestGaps(
  gaps: Gaps,
  catalogue: readonly string[],
  conformance: readonly (TestRun & ConformanceRun)[],
  stress: readonly (TestRun & { readonly scope: unknown; readonly verdict: unknown })[],
): void {
  const ofConformance = ['6(1)', '6(2)'];
  if (conformance.length === 0) {
    gaps.add('conformance_not_run', 'conformance: not run', ofConformance);
  } else if (conformance.every(({ stale }) => stale)) {
    gaps.add(
      'conformance_stale',
      'conformance: not run on the current version and program',
      ofConformance,
    );
  } else {
    const last = lastOfCases(conformance.filter(({ stale }) => !stale));
    const notRun = catalogue.filter((id) => !last.has(id));
    if (notRun.length > 0) {
      const how = `${notRun.length} of ${catalogue.length} cases not run`;
      const missing = `conformance: ${how} on the current version and program: ${notRun.join(', ')}`;
      gaps.add('conformance_in_part', missing, ofConformance);
    }
    for (const [id, status] of last) {
      if (status !== 'fail' && status !== 'inconclusive') continue;
      const what =
        status === 'fail' ? 'failed' : 'was inconclusive, which does not count as passed';
      gaps.add(`conformance_${id}`, `conformance: ${id} ${what}`, ofConformance);
    }
  }
  gaps.add(
    'conformance_at_venue',
    "the venue's own report of a conformance test, which no test of this program replaces",
    ['6(1)(a)'],
  );
  if (stress.length === 0) gaps.add('stress_not_run', 'stress test: not run', ['10']);
  else if (stress.every(({ stale }) => stale)) {
    gaps.add('stress_stale', 'stress test: not run on the current version and program', ['10']);
  } else {
    const { verdict } = stress.find(({ stale }) => !stale)!;
    if (verdict !== 'pass') {
      const missing = `stress test: the newest has the verdict ${String(verdict)}, which does not count as passed`;
      gaps.add('stress_not_passed', missing, ['10']);
    }
  }
  if (!stress.some(({ stale, scope }) => !stale && scope === 'firm')) {
    gaps.add('stress_of_firm', 'a stress test of this bot with the load of the whole firm', ['10']);
  }
}

interface TestRun {
  readonly stale: boolean;
}

interface ConformanceRun {
  readonly passed: readonly string[];
  readonly not_passed: readonly { readonly id: string; readonly status: string }[];
}

/** Returns the newest status of each case, by id. */
function lastOfCases(newestFirst: readonly ConformanceRun[]): ReadonlyMap<string, string> {
  const all = newestFirst
    .toReversed()
    .flatMap(({ passed, not_passed }) => [
      ...passed.map((id) => [id, 'pass'] as const),
      ...not_passed.map(({ id, status }) => [id, status] as const),
    ]);
  return new Map(all.toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)));
}
