/** How the results of tests of bots are shown. */
import type { ConformanceResult, StressResult } from '../api/compliance.ts';
import { ServiceError } from '../base/errors.ts';
import { formatCountOf, NO_VALUE } from '../base/format.ts';
import type { Output } from './output.ts';
import type { Answer } from './verb.ts';

/** Undefined of what is no test. */
export function testResultAnswer(result: Readonly<Record<string, unknown>>): Answer | undefined {
  if (result['schema'] === 'conformance/1') {
    const shown = result as unknown as ConformanceResult;
    return {
      data: result,
      show: (out) => showConformance(out, shown),
      failure: conformanceFailure(shown),
    };
  }
  if (result['schema'] !== 'stress/1') return undefined;
  const shown = result as unknown as StressResult;
  return { data: result, show: (out) => showStress(out, shown), failure: stressFailure(shown) };
}

const SIMULATED =
  'Tested at a simulated venue: it discharges Article 6 of RTS 6 for no venue, whose own test nothing here stands in for.';

function showConformance(out: Output, result: ConformanceResult): void {
  const { bot_ref, version, seed, cases, counts, evidence_hash } = result;
  out.table(
    [{ title: 'case' }, { title: 'result' }, { title: 'what' }, { title: 'paragraphs' }],
    cases.map(({ id, status, title, articles }) => [
      id,
      formatStatus(status),
      title,
      articles.join(', '),
    ]),
  );
  for (const status of ['fail', 'inconclusive', 'not_applicable'] as const) {
    for (const one of cases.filter((each) => each.status === status)) {
      out.line();
      out.line(`${one.id} ${formatStatus(status)}: ${one.reason}`);
    }
  }
  out.line();
  out.line(`${bot_ref}, version ${version}, seed ${seed}, evidence ${evidence_hash}`);
  out.line(
    Object.entries(counts)
      .map(([status, count]) => `${count} ${status.replace('_', ' ')}`)
      .join(', '),
  );
  if (counts.not_run > 0) {
    out.line(`NOT RUN: ${formatCountOf(counts.not_run, 'case')}. What is not run is not passed.`);
  }
  if (counts.inconclusive > 0) {
    out.line(`INCONCLUSIVE: ${formatCountOf(counts.inconclusive, 'case')}. That is no pass.`);
  }
  if (counts.pass === 0) out.line('NOTHING PASSED: it shows nothing.');
  showIsolation(out, result);
  showStale(out, result);
  out.line(SIMULATED);
}

function formatStatus(status: string): string {
  return status === 'pass' ? 'pass' : status.replace('_', ' ').toUpperCase();
}

function conformanceFailure({
  run_id,
  bot_ref,
  cases,
  isolation,
}: ConformanceResult): ServiceError | undefined {
  if (!isolation.logs_kept || isolation.orders_of_test > 0) {
    return new ServiceError('gate_not_met', 'the test was not apart from production', {
      remedy: `See \`isolation\` of the result, and \`service-local bots events verify ${bot_ref}\`.`,
    });
  }
  const those = (wanted: string): string[] =>
    cases.filter(({ status }) => status === wanted).map(({ id }) => id);
  const [failed, open] = [those('fail'), those('inconclusive')];
  if (failed.length + open.length === 0) return undefined;
  return new ServiceError(
    'gate_not_met',
    failed.length > 0
      ? `${formatCountOf(failed.length, 'case')} failed: ${failed.join(', ')}`
      : `${formatCountOf(open.length, 'case')} came to nothing, which is no pass: ${open.join(', ')}`,
    { remedy: pointToFile('evidence.ndjson', run_id) },
  );
}

const LIMITS: Readonly<Record<string, string>> = {
  on: 'all as in the spec',
  lifted: 'without that of messages',
};

const MESSAGES: Readonly<Record<string, string>> = {
  out: 'orders and cancels out',
  in_order: 'answers to orders in',
  in_md: 'bars in',
};

function formatWindow(seconds: number): string {
  if (seconds % 86_400 === 0) return formatCountOf(seconds / 86_400, 'day');
  if (seconds % 3600 === 0) return formatCountOf(seconds / 3600, 'hour');
  if (seconds % 60 === 0) return formatCountOf(seconds / 60, 'minute');
  return formatCountOf(seconds, 'second');
}

function showStress(out: Output, result: StressResult): void {
  const { bot_ref, version, seed, verdict, basis, scope, multiplier, reasons, assumption, host } =
    result;
  out.table(
    [{ title: '' }, { title: '' }],
    [
      ['bot', `${bot_ref}, version ${version}`],
      ['verdict', verdict === 'pass' ? 'pass' : verdict.toUpperCase()],
      ['peaks', `${basis}, scope ${scope}, ${result.coverage_days} of ${result.peaks.days} days`],
      ['multiplier', String(multiplier)],
      ['seed', String(seed)],
      ...(host === undefined ? [] : [['host', formatHostLoad(host)] as const]),
    ],
  );
  out.line();
  out.table(
    [
      { title: 'limits' },
      { title: 'messages' },
      { title: 'within', align: 'right' },
      { title: 'to withstand', align: 'right' },
      { title: 'offered', align: 'right' },
      { title: 'achieved', align: 'right' },
    ],
    result.passes.flatMap(({ limits, reached }) =>
      reached.map((one) => [
        LIMITS[limits] ?? limits,
        MESSAGES[one.class] ?? one.class,
        formatWindow(one.window_s),
        String(one.target),
        String(one.offered),
        String(one.achieved),
      ]),
    ),
  );
  out.line();
  out.line(
    'Messages: the most within a span of time, at the busiest; to withstand is the peak times the multiplier. With its limits, fewer go out than are offered: they engage. Without its limit of messages, what is offered is to be achieved.',
  );
  out.line();
  out.table(
    [{ title: 'control at that load' }, { title: 'result' }, { title: 'paragraphs' }],
    result.controls.map(({ id, status, articles }) => [
      id,
      formatStatus(status),
      articles.join(', '),
    ]),
  );
  out.line();
  showIsolation(out, result);
  if (assumption !== null)
    out.line(`ASSUMED, owned by ${assumption.owner ?? 'nobody yet'}: ${assumption.text}`);
  for (const reason of reasons) out.line(`- ${reason}`);
  for (const what of result.not_judged) out.line(`NOT JUDGED: ${what}`);
  if (verdict === 'provisional') out.line('PROVISIONAL: that is no pass.');
  if (verdict === 'inconclusive')
    out.line(`INCONCLUSIVE: this does not count as a pass. ${QUIETER}`);
  showStale(out, result);
  out.line(SIMULATED);
}

function stressFailure({ run_id, verdict, reasons }: StressResult): ServiceError | undefined {
  if (verdict === 'pass') return undefined;
  if (verdict === 'inconclusive') {
    return new ServiceError('inconclusive', `the host was too busy for a verdict: ${reasons[0]}`, {
      remedy: `${QUIETER} ${pointToFile('stress.json', run_id)}`,
    });
  }
  const what = verdict === 'fail' ? 'it did not withstand it' : 'provisional, which is no pass';
  return new ServiceError('gate_not_met', `${what}: ${reasons[0] ?? NO_VALUE}`, {
    remedy: pointToFile('stress.json', run_id),
  });
}

const QUIETER = 'Run it again while the host has a free processor.';

function formatHostLoad({ real_ms, withheld_ms }: NonNullable<StressResult['host']>): string {
  const share = real_ms === 0 ? 0 : withheld_ms / real_ms;
  return `ran other work for ${Math.round(100 * share)} % of the time`;
}

function pointToFile(file: string, run_id: string): string {
  return `See ${file}, which \`service-local tasks result ${run_id} --out DIR\` writes.`;
}

function showIsolation(out: Output, { isolation }: Pick<ConformanceResult, 'isolation'>): void {
  const { logs_kept, orders_of_test, config_unchanged, changed = [] } = isolation;
  const config = config_unchanged
    ? 'is unchanged'
    : `was CHANGED meanwhile${changed.length > 0 ? ` (${changed.join('; ')})` : ''}`;
  out.line(
    `Production: its logs are ${logs_kept ? 'as they were' : 'NOT AS THEY WERE'}, ${formatCountOf(orders_of_test, 'order')} of the test in them, its configuration ${config}.`,
  );
}

function showStale(
  out: Output,
  { stale, stale_reasons }: Pick<ConformanceResult, 'stale' | 'stale_reasons'>,
): void {
  if (stale) out.line(`STALE: ${stale_reasons.join('; ')}. Test it again.`);
}
