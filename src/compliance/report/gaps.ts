/** Finds what the records lack. */
import { formatCountOf } from '../../base/format.ts';
import { article } from '../articles.ts';
import { ALERTS, countKinds, LATCHES } from './event-counts.ts';
import type { Records } from './records.ts';
import { MOST_LISTED } from './report-values.ts';
import { findLimitGaps, findThresholdGaps } from './reported-limits.ts';
import type { ConformanceSummary } from './test-results.ts';
import type { Gap } from './validation-report.ts';
import { toChangeId } from './version-changes.ts';

/** One gap per line: its id, the affected paragraphs, and what is missing. */
const GAPS = `
period_not_over 9(1): the year {year} is not over
no_events 9(1)(a): the log of the bot has no event in the period
versions_cut 5(7) 11: only the last ${MOST_LISTED} versions were examined
no_production 9(1)(a): the log has no production event; all counts come from paper trading
halt_of_subjects 12(2): a halt for one trader, desk or client; halts stop one bot or all bots
unattributed_orders 12(3): the trader, desk or client of {unattributed}
no_drill 12 14(4): no halt drill in the period
halts_cut 12: only the first ${MOST_LISTED} halts are listed
missed_breaches 15(1): the number of undetected limit breaches; the log has only denied orders
no_alerts 16(5): the log has no alerts, so their latency is unknown
no_latches 15(3): the log has no stops after repeated execution
no_surveillance 13(1) 13(2): surveillance for market abuse, which this program does not perform
no_external_reconciliation 17(3): reconciliation with clearers, brokers and data providers
conformance_not_run 6(1) 6(2): conformance: not run
conformance_stale 6(1) 6(2): conformance: not run on the current version and program
conformance_at_venue 6(1)(a): the venue's own report of a conformance test, which no test of this program replaces
stress_not_run 10: stress test: not run
stress_stale 10: stress test: not run on the current version and program
stress_not_passed 10: stress test: the newest has the verdict {verdict}, which does not count as passed
stress_of_firm 10: a stress test of this bot with the load of the whole firm
incidents_cut: more than ${MOST_LISTED} runs failed; the remaining ones are not listed
`;

/** Returns a gap of the table by id, with its placeholders replaced. */
function toGap(id: string, values: Readonly<Record<string, string>>): Gap {
  const [, articles = '', missing = ''] = new RegExp(`^${id}([^:]*): (.*)$`, 'm').exec(GAPS)!;
  return {
    id,
    missing: missing.replace(/\{(\w+)\}/, (_, name: string) => values[name]!),
    articles: articles.split(' ').slice(1),
  };
}

/**
 * Lists the gaps in the order of the report.
 *
 * @throws Error if a gap cites a paragraph that does not exist, which is a bug in the program.
 */
export function findGaps(records: Records): Gap[] {
  const { period, range, versions, counts, attribution, drills, halts } = records;
  const { conformance, stress, failed, made } = records;
  const unattributed = attribution.orders - attribution.attributed;
  const lacks = (kinds: RegExp): boolean => countKinds(counts, kinds).length === 0;
  const isProduction = (run: string | null): boolean => records.environments.get(run) === 'k8s';
  const newestStress = stress.find(({ stale }) => !stale);
  const found: Readonly<Record<string, boolean | readonly Gap[]>> = {
    period_not_over: !period.isOver,
    no_events: range.through_seq === range.after_seq,
    versions_cut: versions.length > MOST_LISTED,
    limits: findLimitGaps(records.current),
    thresholds: findThresholdGaps(records.thresholds),
    no_production: !counts.some(({ run_id }) => isProduction(run_id)),
    halt_of_subjects: true,
    unattributed_orders: unattributed > 0,
    no_drill: drills.length === 0,
    halts_cut: Math.max(drills.length, halts.length) > MOST_LISTED,
    missed_breaches: true,
    // Either no such event occurred, or the bot does not produce them.
    no_alerts: lacks(ALERTS),
    no_latches: lacks(LATCHES),
    no_surveillance: true,
    no_external_reconciliation: true,
    conformance_not_run: conformance.length === 0,
    conformance_stale: conformance.length > 0 && conformance.every(({ stale }) => stale),
    cases: findCaseGaps(records),
    conformance_at_venue: true,
    stress_not_run: stress.length === 0,
    stress_stale: stress.length > 0 && newestStress === undefined,
    stress_not_passed: newestStress !== undefined && newestStress.verdict !== 'pass',
    stress_of_firm: !stress.some(({ stale, scope }) => !stale && scope === 'firm'),
    incidents_cut: failed.length > MOST_LISTED,
    approvals: made.map(toChangeId).map((id) => ({
      id: `approval_${id}`,
      missing: `who approved version ${id}`,
      articles: ['5(2)', '5(7)'],
    })),
  };
  const values = {
    year: String(period.year),
    unattributed: formatCountOf(unattributed, 'order'),
    verdict: String(newestStress?.verdict),
  };
  const gaps = Object.entries(found).flatMap(([id, one]) =>
    one === true ? [toGap(id, values)] : one || [],
  );
  for (const { articles } of gaps) for (const one of articles) article(one);
  return gaps;
}

/** Finds the cases that were not run or did not pass, unless all tests are stale. */
function findCaseGaps({ conformance, catalogue }: Records): Gap[] {
  const current = conformance.filter(({ stale }) => !stale);
  if (current.length === 0) return [];
  const last = listLastStatuses(current);
  const notRun = catalogue.filter((id) => !last.has(id));
  const inPart = `${notRun.length} of ${catalogue.length} cases not run on the current version and program: ${notRun.join(', ')}`;
  const gap = (id: string, missing: string): Gap => ({
    id: `conformance_${id}`,
    missing: `conformance: ${missing}`,
    articles: ['6(1)', '6(2)'],
  });
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
