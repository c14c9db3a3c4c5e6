import type { ConformanceResult, StressResult } from '../api/compliance-tests.ts';
import { ServiceError } from '../base/errors.ts';
import { formatCountOf, NO_VALUE } from '../base/format.ts';
import { formatSeconds } from '../base/seconds.ts';
import type { Output } from './output.ts';
import type { Answer } from './verb.ts';

/** Undefined if the result is not that of a conformance or stress test. */
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
  'Tested at a simulated venue: this replaces no conformance test at a venue under Article 6 of RTS 6.';

function showConformance(out: Output, result: ConformanceResult): void {
  const { bot_ref, version, seed, cases, counts, evidence_hash } = result;
  out.table(
    [{ title: 'case' }, { title: 'result' }, { title: 'title' }, { title: 'paragraphs' }],
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
    out.line(
      `NOT RUN: ${formatCountOf(counts.not_run, 'case')}. A case that is not run does not count as passed.`,
    );
  }
  if (counts.inconclusive > 0) {
    out.line(
      `INCONCLUSIVE: ${formatCountOf(counts.inconclusive, 'case')}. An inconclusive case does not count as passed.`,
    );
  }
  if (counts.pass === 0) out.line('NO CASE PASSED: the result proves nothing.');
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
    return new ServiceError('gate_not_met', 'the test was not isolated from production', {
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
      : `${formatCountOf(open.length, 'case')} inconclusive: ${open.join(', ')}`,
    { remedy: pointToFile('evidence.ndjson', run_id) },
  );
}

const LIMITS: Readonly<Record<string, string>> = {
  on: 'as in the spec',
  lifted: 'without the message limit',
};

const MESSAGES: Readonly<Record<string, string>> = {
  out: 'orders and cancels sent',
  in_order: 'order reports received',
  in_md: 'bars received',
};

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
      { title: 'window', align: 'right' },
      { title: 'target', align: 'right' },
      { title: 'offered', align: 'right' },
      { title: 'achieved', align: 'right' },
    ],
    result.passes.flatMap(({ limits, reached }) =>
      reached.map((one) => [
        LIMITS[limits] ?? limits,
        MESSAGES[one.class] ?? one.class,
        formatSeconds(one.window_s),
        String(one.target),
        String(one.offered),
        String(one.achieved),
      ]),
    ),
  );
  out.line();
  out.line(
    'Each row shows the most messages in any window of that length. The target is the peak times the multiplier. With the limits of the spec, fewer messages are sent than offered, because the limits engage. Without the message limit, all offered messages should be achieved.',
  );
  out.line();
  out.table(
    [{ title: 'control under load' }, { title: 'result' }, { title: 'paragraphs' }],
    result.controls.map(({ id, status, articles }) => [
      id,
      formatStatus(status),
      articles.join(', '),
    ]),
  );
  out.line();
  showIsolation(out, result);
  if (assumption !== null)
    out.line(`ASSUMED (owner: ${assumption.owner ?? 'none yet'}): ${assumption.text}`);
  for (const reason of reasons) out.line(`- ${reason}`);
  for (const aspect of result.not_judged) out.line(`NOT JUDGED: ${aspect}`);
  if (verdict === 'provisional') out.line('PROVISIONAL: this does not count as a pass.');
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
  const what =
    verdict === 'fail'
      ? 'the bot did not withstand the load'
      : 'a provisional verdict does not count as a pass';
  return new ServiceError('gate_not_met', `${what}: ${reasons[0] ?? NO_VALUE}`, {
    remedy: pointToFile('stress.json', run_id),
  });
}

const QUIETER = 'Run the test again while the host has an idle processor.';

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
    ? 'unchanged'
    : `CHANGED during the test${changed.length > 0 ? ` (${changed.join('; ')})` : ''}`;
  out.line(
    `Production: logs ${logs_kept ? 'unchanged' : 'CHANGED during the test'}, ${formatCountOf(orders_of_test, 'order')} of the test in them, configuration ${config}.`,
  );
}

function showStale(
  out: Output,
  { stale, stale_reasons }: Pick<ConformanceResult, 'stale' | 'stale_reasons'>,
): void {
  if (stale) out.line(`STALE: ${stale_reasons.join('; ')}. Run the test again.`);
}
