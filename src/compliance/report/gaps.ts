/** Rules that find what the records lack, in the order in which a report lists the gaps. */
import { formatCountOf } from '../../base/format.ts';
import { article } from '../articles.ts';
import { ALERTS, LATCHES } from './event-counts.ts';
import { MOST_LISTED } from './listed.ts';
import type { Records } from './records.ts';
import { findLimitGaps, findThresholdGaps } from './reported-limits.ts';
import type { ConformanceSummary } from './test-results.ts';
import type { Gap } from './validation-report.ts';
import { toChangeId } from './version-changes.ts';

type Rule = (records: Records) => readonly Gap[];

/** @param missing what is missing; undefined if nothing is. */
function rule(
  id: string,
  articles: readonly string[],
  missing: (records: Records) => string | undefined,
): Rule {
  return (records) => {
    const text = missing(records);
    return text === undefined ? [] : [{ id, missing: text, articles }];
  };
}

const RULES: readonly Rule[] = [
  rule('period_not_over', ['9(1)'], ({ period: { year, isOver } }) =>
    isOver ? undefined : `the year ${year} is not over`,
  ),
  rule('no_events', ['9(1)(a)'], ({ range }) =>
    range.through_seq === range.after_seq
      ? 'the log of the bot has no event in the period'
      : undefined,
  ),
  rule('versions_cut', ['5(7)', '11'], ({ versions }) =>
    versions.length > MOST_LISTED
      ? `only the last ${MOST_LISTED} versions were examined`
      : undefined,
  ),
  ({ current }) => findLimitGaps(current),
  ({ thresholds }) => findThresholdGaps(thresholds),
  rule('no_production', ['9(1)(a)'], ({ counts, environments }) =>
    counts.some(({ run_id }) => environments.get(run_id ?? '') === 'k8s')
      ? undefined
      : 'the log has no production event; all counts come from paper trading',
  ),
  rule(
    'halt_of_subjects',
    ['12(2)'],
    () => 'a halt for one trader, desk or client; halts stop one bot or all bots',
  ),
  rule('unattributed_orders', ['12(3)'], ({ attribution: { orders, attributed } }) =>
    orders > attributed
      ? `the trader, desk or client of ${formatCountOf(orders - attributed, 'order')}`
      : undefined,
  ),
  rule('no_drill', ['12', '14(4)'], ({ drills }) =>
    drills.length === 0 ? 'no halt drill in the period' : undefined,
  ),
  rule('halts_cut', ['12'], ({ drills, halts }) =>
    Math.max(drills.length, halts.length) > MOST_LISTED
      ? `only the first ${MOST_LISTED} halts are listed`
      : undefined,
  ),
  rule(
    'missed_breaches',
    ['15(1)'],
    () => 'how many breaches of a limit went unnoticed; the log has only denied orders',
  ),
  // Either no such event occurred, or the bot does not produce them.
  rule('no_alerts', ['16(5)'], ({ counts }) =>
    counts.some(({ kind }) => ALERTS.test(kind))
      ? undefined
      : 'the log has no alerts, so their latency is unknown',
  ),
  rule('no_latches', ['15(3)'], ({ counts }) =>
    counts.some(({ kind }) => LATCHES.test(kind))
      ? undefined
      : 'the log has no stops after repeated execution',
  ),
  rule(
    'no_surveillance',
    ['13(1)', '13(2)'],
    () => 'surveillance for market abuse, which this program does not perform',
  ),
  rule(
    'no_external_reconciliation',
    ['17(3)'],
    () => 'reconciliation with clearers, brokers and data providers',
  ),
  findConformanceGaps,
  rule(
    'conformance_at_venue',
    ['6(1)(a)'],
    () => "the venue's own report of a conformance test, which no test of this program replaces",
  ),
  findStressGaps,
  rule('stress_of_firm', ['10'], ({ stress }) =>
    stress.some(({ stale, scope }) => !stale && scope === 'firm')
      ? undefined
      : 'a stress test of this bot with the load of the whole firm',
  ),
  rule('incidents_cut', [], ({ failed }) =>
    failed.length > MOST_LISTED
      ? `more than ${MOST_LISTED} runs failed; the remaining ones are not listed`
      : undefined,
  ),
  ({ made }) =>
    made.map(toChangeId).map((id) => ({
      id: `approval_${id}`,
      missing: `who approved version ${id}`,
      articles: ['5(2)', '5(7)'],
    })),
];

/** @throws Error if a gap cites a paragraph that does not exist, which is a bug in the program. */
export function findGaps(records: Records): Gap[] {
  const gaps = RULES.flatMap((find) => find(records));
  for (const { articles } of gaps) for (const one of articles) article(one);
  return gaps;
}

function findConformanceGaps({ conformance, catalogue }: Records): Gap[] {
  const gap = (id: string, missing: string): Gap => ({
    id: `conformance_${id}`,
    missing: `conformance: ${missing}`,
    articles: ['6(1)', '6(2)'],
  });
  if (conformance.length === 0) return [gap('not_run', 'not run')];
  const current = conformance.filter(({ stale }) => !stale);
  if (current.length === 0) return [gap('stale', 'not run on the current version and program')];
  const last = listLastStatuses(current);
  const notRun = catalogue.filter((id) => !last.has(id));
  const inPart = `${notRun.length} of ${catalogue.length} cases not run on the current version and program: ${notRun.join(', ')}`;
  const open = [...last].flatMap(([id, status]) => {
    if (status === 'fail') return [gap(id, `${id} failed`)];
    if (status !== 'inconclusive') return [];
    return [gap(id, `${id} was inconclusive, which does not count as passed`)];
  });
  return [...(notRun.length === 0 ? [] : [gap('in_part', inPart)]), ...open];
}

/** Returns the newest status of each case, by id. @param tests newest first. */
function listLastStatuses(tests: readonly ConformanceSummary[]): ReadonlyMap<string, string> {
  const all = tests
    .toReversed()
    .flatMap(({ passed, not_passed }) => [
      ...passed.map((id) => [id, 'pass'] as const),
      ...not_passed.map(({ id, status }) => [id, status] as const),
    ]);
  return new Map(all.toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)));
}

function findStressGaps({ stress }: Records): Gap[] {
  const gap = (id: string, missing: string): Gap => ({
    id: `stress_${id}`,
    missing: `stress test: ${missing}`,
    articles: ['10'],
  });
  if (stress.length === 0) return [gap('not_run', 'not run')];
  const newest = stress.find(({ stale }) => !stale);
  if (newest === undefined) return [gap('stale', 'not run on the current version and program')];
  if (newest.verdict === 'pass') return [];
  const verdict = String(newest.verdict);
  return [
    gap('not_passed', `the newest has the verdict ${verdict}, which does not count as passed`),
  ];
}
