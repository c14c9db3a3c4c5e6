import { expect, test } from 'vitest';
import { formatFigure, readFigure } from '../../src/base/format-figure.ts';
import { RUN_FIGURES, type FigureName } from '../../src/base/run-figures.ts';
import { syntheticRun } from '../backtest/report-fixture.ts';

test('every figure of the table is a number in the summary of a run with wins and losses', () => {
  const { summary } = syntheticRun({ steps: 3000 });
  const missing = Object.keys(RUN_FIGURES).filter(
    (name) => readFigure(summary, name as FigureName) === null,
  );
  expect(missing).toEqual([]);
});

test('a figure is null when its block or its value is missing', () => {
  expect(readFigure({}, 'sharpe')).toBeNull();
  expect(readFigure({ risk: { sharpe: null } }, 'sharpe')).toBeNull();
  expect(readFigure({ margin_calls: 2 }, 'margin_calls')).toBe(2);
});

test('each unit has its digits, and an undefined figure is a dash', () => {
  expect(formatFigure('total_return', 0.12345)).toBe('12.35%');
  expect(formatFigure('sharpe', -1.005)).toBe('−1.01');
  expect(formatFigure('end_equity', 137_695.043)).toBe('137,695.04');
  expect(formatFigure('trades', 2000)).toBe('2,000');
  expect(formatFigure('max_drawdown_days', 1)).toBe('1 day');
  expect(formatFigure('max_drawdown_days', 3588.04)).toBe('3,588 days');
  expect(formatFigure('max_drawdown_days', 0.26)).toBe('0.3 days');
  expect(formatFigure('calmar', null)).toBe('—');
});
