import type { Comparison, ComparedFigure } from '../backtest/compare/compare-runs.ts';
import { describeParam, describeTrade } from '../backtest/compare/describe-difference.ts';
import { formatCount, NO_VALUE } from '../base/format.ts';
import { formatFigure } from '../base/format-figure.ts';
import { RUN_FIGURES } from '../base/run-figures.ts';
import { formatTime } from '../market/bar-time.ts';
import type { Cell, Column, Output } from './output.ts';

export function showRunComparison(out: Output, comparison: Comparison): void {
  const { runs, notes, figures, shared, differences } = comparison;
  out.table(
    ['', 'bot', 'from', 'to', 'bars', 'run'].map((title) => ({
      title,
      align: title === 'bars' ? ('right' as const) : ('left' as const),
    })),
    runs.map(({ label, bot, window, run_id }) => [
      label,
      bot.name,
      formatTime(Date.parse(window.from)),
      formatTime(Date.parse(window.to)),
      formatCount(window.bars),
      run_id,
    ]),
  );
  for (const note of notes) {
    out.line();
    out.line(out.style.yellow(note));
  }
  const isSame = new Set(runs.map(({ window }) => `${window.from} ${window.to}`)).size === 1;
  const labels = runs.map(({ label }) => label);
  if (shared !== null && !isSame) {
    const [from, to] = [shared.from, shared.to].map((at) => formatTime(Date.parse(at)));
    out.line();
    out.line(`${from} to ${to}`);
    showFigures(out, labels, shared.figures);
    out.line();
    out.line('each run over its own window');
  } else {
    out.line();
  }
  showFigures(out, labels, figures);
  for (const { run, lock, params, trade } of differences) {
    out.line();
    out.line(out.style.bold(`A and ${run}`));
    for (const param of params) out.line(`  ${describeParam(param, run)}`);
    for (const cause of lock) out.line(`  ${cause}`);
    if (params.length + lock.length === 0) out.line('  the locks are equal');
    out.line(`  ${describeTrade(trade, run)}`);
  }
}

export function showFigures(
  out: Output,
  labels: readonly string[],
  figures: readonly ComparedFigure[],
): void {
  const columns: Column[] = [
    { title: '' },
    ...labels.map((title) => ({ title, align: 'right' as const })),
  ];
  const rows = figures.map(({ figure, values, best }): Cell[] => [
    RUN_FIGURES[figure].label,
    ...values.map((value, index) => {
      const text = value === null ? NO_VALUE : formatFigure(figure, value);
      return best.includes(index) ? { text: `✓ ${text}`, paint: out.style.green } : text;
    }),
  ]);
  out.table(columns, rows);
}
