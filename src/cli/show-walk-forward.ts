import { formatCountOf, formatPercent, NO_VALUE } from '../base/format.ts';
import { formatFigure, readFigure } from '../base/format-figure.ts';
import { JOINED_FIGURES } from '../base/joined-figures.ts';
import { RUN_FIGURES } from '../base/run-figures.ts';
import { describeLuck } from '../backtest/ledger/describe-luck.ts';
import type { WalkForwardDocument } from '../backtest/windows/walk-forward-document.ts';
import { UNDEFINED_REASONS } from '../backtest/summary.ts';
import type { Output } from './output.ts';
import { showFindings, showGates } from './show-backtest.ts';

export function showWalkForward(out: Output, document: WalkForwardDocument): void {
  const { bot, plan, axes, windows, efficiency, stability } = document;
  const right = (title: string) => ({ title, align: 'right' as const });
  const day = (text: string): string => text.slice(0, 10);
  const kind = plan.anchored ? 'anchored' : 'rolling';
  const gap = plan.embargo === null ? '' : `, embargo ${plan.embargo}`;
  out.line(
    `${out.style.bold(bot.name)}  ${formatCountOf(windows.length, 'window')}, ${kind}: train ${plan.train}, test ${plan.test}${gap}`,
  );
  out.line();
  out.table(
    [
      { title: 'test' },
      ...axes.map(({ name }) => right(name)),
      right('Sharpe, training'),
      right('Sharpe, test'),
      right('return, test'),
      right('trades'),
    ],
    windows.map(({ test, params, in_sample, out_of_sample }) => [
      `${day(test.from)} to ${day(test.to)}`,
      ...axes.map(({ name }) => String(params?.[name] ?? NO_VALUE)),
      formatFigure('sharpe', in_sample?.sharpe ?? null),
      formatFigure('sharpe', out_of_sample.sharpe),
      formatFigure('total_return', out_of_sample.total_return),
      formatFigure('trades', out_of_sample.trades),
    ]),
  );
  for (const [at, { flat }] of windows.entries()) {
    if (flat !== null) out.line(`Window ${at + 1} holds no position: ${flat.detail}.`);
  }
  out.line();
  out.table(
    [{ title: 'joined tests' }, right('')],
    JOINED_FIGURES.map((name) => [
      RUN_FIGURES[name].label,
      formatFigure(name, readFigure(document, name)),
    ]),
  );
  out.line();
  out.line(efficiencyInWords(document));
  for (const { name, changes } of stability) {
    out.line(`${name} changed at ${changes} of ${formatCountOf(windows.length - 1, 'step')}.`);
  }
  const profitable = Math.round(efficiency.profitable_windows * windows.length);
  out.line(`${profitable} of ${formatCountOf(windows.length, 'test window')} made a profit.`);
  for (const sentence of describeLuck(document)) out.line(sentence);
  showFindings(out, document.findings);
  showGates(out, document.gates);
}

function efficiencyInWords({ efficiency, undefined: reasons }: WalkForwardDocument): string {
  const share = (value: number | null): string =>
    value === null ? NO_VALUE : formatPercent(value);
  const { value, in_sample_annual, out_of_sample_annual } = efficiency;
  const annual = `${share(out_of_sample_annual)} a year in tests, ${share(in_sample_annual)} in training`;
  if (value !== null) return `Walk-forward efficiency: ${formatPercent(value)} (${annual}).`;
  const reason = reasons['efficiency.value'];
  const why = reason === undefined ? '' : `: ${UNDEFINED_REASONS[reason]}`;
  return `Walk-forward efficiency is undefined${why} (${annual}).`;
}
