import type { RobustnessDocument } from '../backtest/robustness/robustness-document.ts';
import {
  formatRobustness,
  ROBUSTNESS_FIGURE_NAMES,
  ROBUSTNESS_FIGURES,
  type RobustnessFigureName,
  type Variant,
} from '../backtest/robustness/robustness-figures.ts';
import { SWEEP_FIGURES } from '../backtest/search/trial-figures.ts';
import { ServiceError } from '../base/errors.ts';
import { formatFigure } from '../base/format-figure.ts';
import { formatCountOf, NO_VALUE } from '../base/format.ts';
import { RUN_FIGURES } from '../base/run-figures.ts';
import type { Output } from './output.ts';
import { formatWindow } from './show-backtest.ts';

export function showRobustness(out: Output, document: RobustnessDocument): void {
  const { bot, window, chosen, trials, figures, neighbors, stresses, gates } = document;
  const params = Object.entries(chosen.params).map(([name, value]) => `${name}=${value}`);
  out.line(`${out.style.bold(bot.name)}  ${formatWindow(window)}`);
  out.line(
    trials.total > 1
      ? `best of ${formatCountOf(trials.total, 'trial')}: ${params.join(' ')}`
      : params.join(' '),
  );
  out.line();
  out.table(
    [
      { title: 'run' },
      ...SWEEP_FIGURES.map((name) => ({ title: RUN_FIGURES[name].label, align: 'right' as const })),
    ],
    [{ label: 'as chosen', metrics: chosen.metrics }, ...neighbors, ...stresses].map(cellsOf),
  );
  out.line();
  for (const name of ROBUSTNESS_FIGURE_NAMES) {
    const { value, explanation } = figures[name];
    const { label } = ROBUSTNESS_FIGURES[name];
    if (value === null) out.line(out.style.dim(explanation));
    else
      out.line(
        `${out.style.bold(`${label} ${formatRobustness(name, value, document.objective)}`)}  ${explanation}`,
      );
  }
  if (gates.length === 0) return;
  out.line();
  out.table(
    [{ title: 'gate' }, { title: 'value', align: 'right' }, { title: '' }],
    gates.map(({ name, op, threshold, value, pass }) => [
      `${name} ${op} ${threshold}`,
      value === null
        ? NO_VALUE
        : formatRobustness(name as RobustnessFigureName, value, document.objective),
      pass ? { text: 'pass', paint: out.style.green } : { text: 'FAIL', paint: out.style.red },
    ]),
  );
}

function cellsOf({ label, metrics }: Pick<Variant, 'label' | 'metrics'>): string[] {
  return [
    label,
    ...SWEEP_FIGURES.map((name) =>
      metrics === null ? NO_VALUE : formatFigure(name, metrics[name]),
    ),
  ];
}

export function robustnessFailure({ gates }: RobustnessDocument): ServiceError | undefined {
  const missed = gates.filter(({ pass }) => !pass);
  if (missed.length === 0) return undefined;
  const text = missed.map(
    ({ name, op, threshold, explanation }) => `${name} ${op} ${threshold}: ${explanation}`,
  );
  return new ServiceError('gate_not_met', text.join(' '), {
    remedy: 'Do not trade this result; test the idea on other data or with fewer parameters.',
  });
}
