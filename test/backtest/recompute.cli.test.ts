import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Summary } from '../../src/backtest/summary.ts';
import type { SweepDocument } from '../../src/backtest/search/sweep-document.ts';
import { inProcess } from '../cli/in-process.ts';
import { isAtLength, some } from '../length.ts';

const EXAMPLES = join(import.meta.dirname, '../../examples');
const DAY = 86_400_000;
const DIGITS = 9;

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'service-local-recompute-'));
});
afterAll(() => rmSync(directory, { recursive: true }));

type Row = Readonly<Record<string, string>>;

function csv(file: string): Row[] {
  const [head, ...lines] = readFileSync(file, 'utf8').trimEnd().split('\n');
  const names = head!.split(',');
  return lines.map((line) => {
    const cells = line.split(',');
    return Object.fromEntries(names.map((name, at) => [name, cells[at]!]));
  });
}

interface Fill {
  readonly kind: string;
  readonly time: string;
  readonly symbol: string;
  readonly quantity: number;
  readonly price: number;
  readonly reference: number;
  readonly fee: number;
  readonly position: number;
}

const sum = (values: readonly number[]): number => values.reduce((total, each) => total + each, 0);
const mean = (values: readonly number[]): number => sum(values) / values.length;
const deviation = (values: readonly number[]): number =>
  Math.sqrt(sum(values.map((each) => (each - mean(values)) ** 2)) / (values.length - 1));

/** Every figure of a daily run, computed only from its files and conventions. */
function recomputed(out: string, { conventions, window, equity: { start } }: Summary) {
  const { periods_per_year: perYear, year_days: yearDays } = conventions;
  const curve = csv(join(out, 'equity.csv')).map((row) => ({
    time: Date.parse(row['time']!),
    equity: Number(row['equity']),
    drawdown: Number(row['drawdown']),
  }));
  const values = curve.map(({ equity }) => equity);
  const end = values.at(-1)!;
  const returns = values.slice(1).map((value, at) => value / values[at]! - 1);
  const days = (Date.parse(window.to) - Date.parse(window.from)) / DAY;
  const total = end / start - 1;
  const cagr = (1 + total) ** (yearDays / days) - 1;
  const maxDrawdown = Math.min(...curve.map(({ drawdown }) => drawdown));
  const downside = Math.sqrt(mean(returns.map((each) => Math.min(each, 0) ** 2)));
  const sorted = returns.toSorted((a, b) => a - b);
  const rank = (returns.length - 1) * 0.05;
  const [low, high] = [sorted[Math.floor(rank)]!, sorted[Math.ceil(rank)]!];
  const valueAtRisk = low + (high - low) * (rank - Math.floor(rank));

  let peakTime = curve[0]!.time;
  let longest = 0;
  for (const { time, drawdown } of curve) {
    longest = Math.max(longest, time - peakTime);
    if (drawdown === 0) peakTime = time;
  }

  const trades = csv(join(out, 'trades.csv'));
  for (const row of trades) {
    const [quantity, entry, exit, pnl, fees] = [
      'quantity',
      'entry_price',
      'exit_price',
      'pnl',
      'fees',
    ].map((name) => Number(row[name])) as [number, number, number, number, number];
    const sign = row['side'] === 'long' ? 1 : -1;
    expect(pnl).toBeCloseTo(sign * quantity * (exit - entry) - fees, 4);
    expect(Number(row['return'])).toBeCloseTo(pnl / (quantity * entry), DIGITS);
  }
  const closed = trades.filter(({ status }) => status === 'closed');
  const profits = closed.map(({ pnl }) => Number(pnl));
  const gains = profits.filter((each) => each > 0);
  const losses = profits.filter((each) => each < 0);
  const tradeReturns = closed.map((row) => Number(row['return']));
  const winRate = gains.length / profits.length;

  const events = readFileSync(join(out, 'events.ndjson'), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Fill);
  const fills = events.filter(({ kind }) => kind === 'order.filled');
  const traded = sum(fills.map(({ quantity, price }) => quantity * price));
  const held = new Map<string, number>();
  let next = 0;
  const inMarket = curve.filter(({ time }) => {
    for (; next < fills.length && Date.parse(fills[next]!.time) <= time; next++) {
      held.set(fills[next]!.symbol, fills[next]!.position);
    }
    return [...held.values()].some((position) => position !== 0);
  });

  return {
    equity: { start, end, peak: Math.max(start, ...values) },
    returns: {
      total,
      count: returns.length,
      cagr,
      annual: (1 + total) ** (perYear / returns.length) - 1,
      best_day: sorted.at(-1)!,
      worst_day: sorted[0]!,
    },
    risk: {
      volatility: deviation(returns) * Math.sqrt(perYear),
      sharpe: (mean(returns) / deviation(returns)) * Math.sqrt(perYear),
      sortino: (mean(returns) / downside) * Math.sqrt(perYear),
      calmar: cagr / -maxDrawdown,
      max_drawdown: maxDrawdown,
      max_drawdown_days: longest / DAY,
      var_95: valueAtRisk,
      cvar_95: mean(returns.filter((each) => each <= valueAtRisk)),
    },
    trades: {
      count: closed.length,
      open: trades.length - closed.length,
      win_rate: winRate,
      profit_factor: sum(gains) / -sum(losses),
      expectancy: mean(profits),
      average: mean(tradeReturns),
      best: Math.max(...tradeReturns),
      worst: Math.min(...tradeReturns),
      sqn: (Math.sqrt(profits.length) * mean(profits)) / deviation(profits),
      kelly: winRate - (1 - winRate) / (mean(gains) / -mean(losses)),
    },
    costs: {
      fees: sum(trades.map(({ fees }) => Number(fees))),
      slippage: sum(
        fills.map(({ quantity, price, reference }) => quantity * Math.abs(price - reference)),
      ),
      turnover: traded / mean(values) / (days / yearDays),
    },
    exposure: { time: inMarket.length / curve.length },
  };
}

const BLOCKS = ['equity', 'returns', 'risk', 'trades', 'costs', 'exposure'] as const;

test.each(some(1, ['sma-crossover.yaml', 'pairs-reversion.yaml']))(
  'every figure of %s can be computed from the files of its run',
  async (file) => {
    const out = join(directory, file);
    const { code, stdout } = await inProcess([
      'backtest',
      join(EXAMPLES, file),
      '--json',
      '--out',
      out,
    ]);
    expect(code).toBe(0);
    const summary = JSON.parse(stdout) as Summary;
    const expected = recomputed(out, summary);
    for (const block of BLOCKS) {
      const figures: Readonly<Record<string, number | null>> = { ...summary[block] };
      const own: Readonly<Record<string, number>> = expected[block];
      expect(Object.keys(figures).toSorted()).toEqual(Object.keys(own).toSorted());
      for (const [name, value] of Object.entries(own)) {
        const scale = Math.max(1, Math.abs(value));
        expect(figures[name]! / scale, `${block}.${name}`).toBeCloseTo(value / scale, DIGITS);
      }
    }
  },
);

test.runIf(isAtLength)(
  'the figures of each trial of a sweep are consistent with each other',
  async () => {
    const out = join(directory, 'sweep');
    const spec = join(EXAMPLES, 'sma-crossover.yaml');
    const { code, stdout } = await inProcess([
      'backtest',
      'sweep',
      spec,
      '-p',
      'fast=5:15:5',
      '--workers',
      '1',
      '--json',
      '--out',
      out,
    ]);
    expect(code).toBe(0);
    const { window, conventions } = JSON.parse(stdout) as SweepDocument;
    const days = (Date.parse(window.to) - Date.parse(window.from)) / DAY;
    const rows = csv(join(out, 'trials.csv'));
    expect(rows).toHaveLength(3);
    for (const row of rows) {
      const [total, cagr, calmar, drawdown] = [
        'total_return',
        'cagr',
        'calmar',
        'max_drawdown',
      ].map((name) => Number(row[name])) as [number, number, number, number];
      expect(cagr).toBeCloseTo((1 + total) ** (conventions.year_days / days) - 1, DIGITS);
      expect(calmar).toBeCloseTo(cagr / -drawdown, DIGITS);
    }
  },
);
