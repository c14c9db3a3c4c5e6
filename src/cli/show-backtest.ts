import { describeLuck } from '../backtest/ledger/describe-luck.ts';
import type { Conventions, Finding, Gate, Summary } from '../backtest/summary.ts';
import { shownFigures } from '../backtest/search/goal.ts';
import { describeTrials, whyNotDeflated } from '../backtest/search/describe-trials.ts';
import type { SweepDocument } from '../backtest/search/sweep-document.ts';
import { formatCountOf, formatPercent, formatRatio, NO_VALUE } from '../base/format.ts';
import { formatFigure, readFigure } from '../base/format-figure.ts';
import { RUN_FIGURES, type FigureName } from '../base/run-figures.ts';
import { formatTime } from '../market/bar-time.ts';
import type { Cell, Output } from './output.ts';

const SUMMARY_FIGURES = [
  ['total_return', 'trades'],
  ['cagr', 'win_rate'],
  ['end_equity', 'profit_factor'],
  ['volatility', 'expectancy'],
  ['sharpe', 'best_trade'],
  ['sortino', 'worst_trade'],
  ['calmar', 'fees'],
  ['max_drawdown', 'slippage'],
  ['max_drawdown_days', 'exposure'],
] as const satisfies readonly (readonly [left: FigureName, right: FigureName])[];

export function showSummary(out: Output, summary: Summary): void {
  const { bot, window, trades, orders } = summary;
  out.line(`${out.style.bold(bot.name)}  ${formatWindow(window)}`);
  if (summary.unsaved_bundle !== undefined) out.line(describeUnsaved(summary.unsaved_bundle));
  out.line();
  const cells = (name: FigureName, aside = ''): string[] => [
    RUN_FIGURES[name].label,
    `${formatFigure(name, readFigure(summary, name))}${aside}`,
  ];
  const open = trades.open > 0 ? ` (+${trades.open} open)` : '';
  const rows = SUMMARY_FIGURES.map(([left, right]) => [
    ...cells(left),
    ...cells(right, right === 'trades' ? open : ''),
  ]);
  out.table(
    [{ title: '' }, { title: '', align: 'right' }, { title: '' }, { title: '', align: 'right' }],
    rows,
  );
  if (summary.benchmark !== undefined) {
    out.line();
    out.line(formatBenchmark(summary, summary.benchmark.name));
  }
  for (const sentence of describeLuck(summary)) {
    out.line();
    out.line(sentence);
  }
  out.line();
  out.line(out.style.dim(formatConventions(summary.conventions)));
  const reasons = Object.entries(orders.reasons);
  if (reasons.length > 0) {
    const refused = reasons.reduce((sum, [, count]) => sum + count, 0);
    const list = reasons.map(([reason, count]) => `${reason} ${count}`).join(', ');
    const { filled, canceled, expired, working, rejected, denied } = orders;
    const total = filled + canceled + expired + working + rejected + denied;
    out.line(`${refused} of ${total} orders refused: ${list}`);
  }
  if (summary.profile !== undefined) showProfile(out, summary.profile);
  showFindings(out, summary.findings);
  showGates(out, summary.gates);
}

function describeUnsaved(hash: string | null): string {
  return hash === null
    ? 'This run used none of the files of its version.'
    : `This run used unsaved code (sha256 ${hash}) instead of the files of its version.`;
}

export function showSweep(out: Output, document: SweepDocument, top: number): void {
  const { bot, window, search, axes, results, findings } = document;
  const { trials, deflated_sharpe: deflated, holdout } = document;
  out.line(`${out.style.bold(bot.name)}  ${formatWindow(window)}`);
  out.line(describeTrials(trials));
  for (const { reason, count } of trials.skipped_because) {
    out.line(`  ${formatCountOf(count, 'combination')} skipped: ${reason}`);
  }
  if (results.length === 0) {
    out.line(
      trials.excluded > 0
        ? 'No trial meets --where, so there is nothing to rank. Loosen its conditions to see results.'
        : 'No trial has a result yet, so there is nothing to rank.',
    );
    return;
  }
  out.line();
  const figures = shownFigures(search.objectives);
  const hasFronts = search.objectives.length > 1;
  out.table(
    [...axes.map(({ name }) => name), ...(hasFronts ? ['front'] : [])]
      .concat(figures.map((name) => RUN_FIGURES[name].label))
      .map((title) => ({ title, align: 'right' as const })),
    results
      .slice(0, top)
      .map(({ params, metrics, front }) => [
        ...axes.map(({ name }) => String(params[name])),
        ...(front === undefined ? [] : [String(front)]),
        ...figures.map((name) => formatFigure(name, metrics[name])),
      ]),
  );
  out.line();
  if (deflated === null) {
    out.line(`There is no deflated Sharpe ratio: ${whyNotDeflated(document)}.`);
  } else {
    out.line(
      `Deflated Sharpe ratio of the best trial: ${formatPercent(deflated.probability)}, the probability that its Sharpe ` +
        `ratio exceeds what luck alone gives in ${formatCountOf(deflated.trials, 'trial')}. Without skill, the best of them would have a Sharpe ratio of ` +
        `about ${formatRatio(deflated.expected_max_sharpe)}.`,
    );
  }
  for (const sentence of describeLuck({ holdout })) out.line(sentence);
  showFindings(out, findings);
}

export function showGates(out: Output, gates: readonly Gate[]): void {
  if (gates.length === 0) return;
  out.line();
  out.table(
    [{ title: 'gate' }, { title: 'value', align: 'right' }, { title: '' }],
    gates.map(({ name, op, threshold, value, pass }) => [
      `${name} ${op} ${threshold}`,
      value === null ? NO_VALUE : String(Number(value.toPrecision(6))),
      pass ? paint('pass', out.style.green) : paint('FAIL', out.style.red),
    ]),
  );
}

export function showFindings(out: Output, findings: readonly Finding[]): void {
  for (const { severity, issue, remedy } of findings) {
    const color = { critical: out.style.red, warning: out.style.yellow, info: out.style.cyan };
    out.line();
    out.line(`${color[severity](severity)}: ${issue}`);
    out.line(`  → ${remedy}`);
  }
}

function showProfile(out: Output, { name, statistics }: NonNullable<Summary['profile']>): void {
  out.line();
  out.table(
    [{ title: `as ${name} reports it` }, { title: '', align: 'right' }],
    Object.entries(statistics).map(([key, value]) => [
      key,
      value === null ? NO_VALUE : String(Number(value.toPrecision(9))),
    ]),
  );
}

const BENCHMARK_FIGURES = [
  'alpha',
  'beta',
  'correlation',
  'tracking_error',
  'information_ratio',
] as const satisfies readonly FigureName[];

function formatBenchmark(summary: Summary, name: string): string {
  const figures = BENCHMARK_FIGURES.map(
    (figure) =>
      `${RUN_FIGURES[figure].label.toLowerCase()} ${formatFigure(figure, readFigure(summary, figure))}`,
  );
  return `Against ${name === 'buy_and_hold' ? 'buying and holding' : name}: ${figures.join(', ')}`;
}

function formatConventions(conventions: Conventions): string {
  const { periods_per_year, ddof, risk_free, year_days, sampling } = conventions;
  const sample = sampling === 'day' ? 'UTC day' : sampling;
  return `returns per ${sample}, ${periods_per_year} a year, ddof ${ddof}, risk-free ${risk_free}; CAGR by days/${year_days}, Calmar by CAGR`;
}

function paint(text: string, color: (text: string) => string): Cell {
  return { text, paint: color };
}

export function formatWindow({ from, to, bars }: Summary['window']): string {
  const [first, last] = [from, to].map((instant) => formatTime(Date.parse(instant)));
  return `${first} to ${last}, ${formatCountOf(bars, 'bar')}`;
}
