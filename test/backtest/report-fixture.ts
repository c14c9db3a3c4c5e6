import { createHash } from 'node:crypto';
import { drawdownOf } from '../../src/engine/equity-curve.ts';
import { outcomesOf } from './golden.ts';
import type { ReturnedIndicator } from '../../src/engine/series/returned-indicators.ts';
import type { Trade } from '../../src/engine/round-trip.ts';
import { allocateBars, type Bars } from '../../src/market/bars.ts';
import { compareWithBenchmark } from '../../src/backtest/benchmark.ts';
import { deflatedStatistics } from '../../src/backtest/deflated-sharpe.ts';
import { drawdownsOf } from '../../src/backtest/returns.ts';
import type { ReportInput } from '../../src/backtest/report/input.ts';
import { beginReport } from '../../src/backtest/report/report.ts';
import { HIGHEST_SHARPE } from '../../src/backtest/search/goal.ts';
import { metricsFrom } from '../../src/backtest/search/trial-figures.ts';
import type { SweepReportInput } from '../../src/backtest/report/sweep-report.ts';
import type { SweepRow } from '../../src/backtest/report/sweep-row.ts';
import { conventionsFor, statistics } from '../../src/backtest/statistics.ts';
import type { Summary } from '../../src/backtest/summary.ts';

const DAY_MS = 86_400_000;

/** Park–Miller generator, which is the same on every machine. */
function uniform(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 16_807) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

export function randomWalk(steps: number, stepMs: number, seed: number, from = 100): Bars {
  const next = uniform(seed);
  const cents = (price: number): number => Math.round(price * 100) / 100;
  const bars = allocateBars(steps);
  // Long walks have smaller steps, so that prices remain plausible.
  const size = steps > 10_000 ? 0.001 : 0.03;
  let close = from;
  for (let i = 0; i < steps; i++) {
    const open = close;
    close = cents(open * (1 + (next() - 0.4925) * size));
    bars.time[i] = Date.UTC(2004, 0, 5) + i * stepMs;
    bars.open[i] = open;
    bars.high[i] = cents(Math.max(open, close) * (1 + next() * 0.006));
    bars.low[i] = cents(Math.min(open, close) * (1 - next() * 0.006));
    bars.close[i] = close;
    bars.volume[i] = Math.floor(next() * 1e6);
  }
  return bars;
}

const EARLIER_TRIALS = {
  count: 1283,
  sharpe_count: 1200,
  sharpe_mean: 0.1,
  sharpe_variance: 0.04,
} as const;

export interface RunOptions {
  readonly steps?: number;
  readonly stepMs?: number;
  /** Steps from one entry to the next; positions are held for half of them. */
  readonly tradeEvery?: number;
  readonly symbols?: readonly string[];
  readonly summary?: Partial<Summary>;
}

/** Two lines over the prices, and one in a pane of its own, of the first instrument. */
export function syntheticIndicators({ bars }: { readonly bars: Bars }): ReturnedIndicator[] {
  const shifted = (shift: number): Float64Array => bars.close.map((close) => close + shift);
  const line = (name: string, column: string, scale: string, values: Float64Array) => ({
    name,
    line: column,
    scale,
    values,
  });
  const own = new Map([[0, { before: 0 }]]);
  return [
    {
      kind: 'bollinger',
      label: 'bollinger(close,20,2)',
      bars: own,
      lines: [
        line('bands.upper', 'upper', 'price', shifted(5)),
        line('bands.lower', 'lower', 'price', shifted(-5)),
      ],
    },
    {
      kind: 'rsi',
      label: 'rsi(close,14)',
      bars: own,
      lines: [line('strength', 'value', 'rsi(0.close,14)', shifted(-20))],
    },
  ];
}

/** Input of a report whose files are complete. */
export type HashedInput = ReportInput & { readonly summary: Summary };

export function renderReport(input: HashedInput): string {
  return beginReport(input)(input.summary.hashes);
}

/** A synthetic run with alternating long and short trades on random prices. */
export function syntheticRun(options: RunOptions = {}): HashedInput {
  const { steps = 1500, stepMs = DAY_MS, tradeEvery = 40, symbols = ['SPX'] } = options;
  const instruments = symbols.map((symbol, index) => ({
    symbol,
    bars: randomWalk(steps, stepMs, 20_240_102 + index),
  }));
  const { time } = instruments[0]!.bars;
  const trades: Trade[] = [];
  for (let step = 5; step + tradeEvery < steps; step += tradeEvery) {
    const { symbol, bars } = instruments[trades.length % instruments.length]!;
    const exit = step + (tradeEvery >> 1);
    const side = trades.length % 3 === 2 ? 'short' : 'long';
    const [entryPrice, exitPrice] = [bars.open[step]!, bars.open[exit]!];
    const quantity = 10_000 / entryPrice;
    const fees = quantity * (entryPrice + exitPrice) * 0.0005;
    const pnl = (side === 'long' ? 1 : -1) * quantity * (exitPrice - entryPrice) - fees;
    trades.push({
      id: trades.length + 1,
      symbol,
      side,
      entry_time: time[step]!,
      exit_time: time[exit]!,
      bars: exit - step,
      quantity,
      entry_price: entryPrice,
      exit_price: exitPrice,
      pnl,
      return: pnl / (quantity * entryPrice),
      fees,
    });
  }
  const last = trades.at(-1);
  const openTrades =
    last === undefined
      ? []
      : [{ ...last, id: last.id + 1, entry_time: last.exit_time, exit_time: time[steps - 1]! }];

  const { close } = instruments[0]!.bars;
  const benchmark = Float64Array.from(close, (price) => (price / close[0]!) * 100_000);
  const equity = Float64Array.from(
    close,
    (price, i) => 60_000 + (price / close[0]!) * 40_000 + 8000 * Math.sin(i / 200),
  );
  const result = { time, equity, initialCash: 100_000, trades, openTrades };
  return {
    summary: { ...syntheticSummary(result, benchmark), ...options.summary },
    result,
    drawdown: drawdownsOf(equity, 100_000),
    instruments,
    currency: 'USD',
    benchmark,
  };
}

function syntheticSummary(result: ReportInput['result'], benchmark: Float64Array): Summary {
  const { time, trades } = result;
  const conventions = conventionsFor(time, { barMs: Math.min(DAY_MS, time[1]! - time[0]!) });
  const figures = statistics(
    {
      ...result,
      drawdown: drawdownOf(result.initialCash, time, result.equity),
      tradeOutcomes: outcomesOf(trades),
      steps: time.length,
      fees: trades.reduce((sum, { fees }) => sum + fees, 0),
      slippage: 0,
      tradedNotional: trades.length * 20_000,
      stepsInMarket: time.length >> 1,
    },
    conventions,
  );
  const hash = (text: string): string => createHash('sha256').update(text).digest('hex');
  const { max_drawdown, sharpe } = figures.risk;
  const deflated = deflatedStatistics(result, sharpe, conventions, EARLIER_TRIALS);
  const against = compareWithBenchmark(result, { equity: benchmark }, conventions);
  return {
    ...figures,
    benchmark: against.benchmark,
    undefined: { ...figures.undefined, ...against.undefined, ...deflated.undefined },
    schema: 'service-local/backtest/v1',
    run_id: 'run-20240102',
    bot: { name: 'SMA crossover on the S&P 500', slug: 'sma-crossover' },
    version: hash('spec'),
    lock: {
      digest: hash('lock'),
      spec: hash('spec'),
      engine: '0.1.0',
      seed: 7,
      strategy: { './my-strategy.ts': hash('strategy') },
      data: { SPX: hash('data') },
    },
    window: {
      from: new Date(time[0]!).toISOString(),
      to: new Date(time.at(-1)!).toISOString(),
      bars: time.length,
    },
    engine: { version: '0.1.0', seed: 7, wall_ms: 41, bars_per_second: 36_585_366 },
    conventions,
    orders: {
      submitted: 2 * trades.length + 3,
      filled: 2 * trades.length + 1,
      fills: 2 * trades.length + 1,
      canceled: 1,
      expired: 0,
      working: 0,
      rejected: 1,
      denied: 1,
      refused: 2,
      reasons: { insufficient_funds: 1, max_position_pct: 1 },
    },
    ambiguity: { bars: 0 },
    margin_calls: 0,
    deflated_sharpe: deflated.deflated_sharpe,
    gates: [
      { name: 'sharpe', op: '>=', threshold: 0.2, value: sharpe, pass: true },
      { name: 'max_drawdown', op: '>=', threshold: -0.1, value: max_drawdown, pass: false },
    ],
    findings: [
      {
        code: 'too_few_trades',
        severity: 'warning',
        issue: 'Too few trades to tell skill from luck',
        evidence: { closed_trades: trades.length, wanted: 100 },
        remedy: 'Test a longer window, a shorter timeframe or more instruments.',
      },
      {
        code: 'fees_eat_profit',
        severity: 'info',
        issue: 'Fees take a fifth of the gross profit',
        evidence: { fees: 361.52, gross_profit: 1843.2, share: 0.1961 },
        remedy: 'Trade less often, or check the fee model against your broker’s price list.',
      },
    ],
    files: ['equity.parquet'],
    hashes: { events: hash('events'), trades: hash('trades'), equity: hash('equity') },
  };
}

const NO_TRIALS = {
  failed: 0,
  pruned: 0,
  excluded: 0,
  skipped: 0,
  skipped_because: [],
};

/** A grid of `fast` × `slow` (× `stop`) whose best trial is nearest to 20 × 80. */
export function syntheticSweep(stops: readonly string[] = ['none']): SweepReportInput {
  const rows: SweepRow[] = [];
  for (const stop of stops) {
    for (let fast = 5; fast <= 50; fast += 5) {
      for (let slow = 20; slow <= 200; slow += 20) {
        const distance = Math.hypot((fast - 20) / 15, (slow - 80) / 60);
        const sharpe = fast >= slow ? null : 0.9 - distance * 0.6 - (stop === 'none' ? 0 : 0.05);
        rows.push({
          params: { fast, slow, stop },
          metrics: {
            ...metricsFrom(() => null),
            sharpe,
            total_return: (sharpe ?? 0) * 0.8,
            max_drawdown: -0.1 - distance * 0.05,
            trades: Math.round(2000 / (fast + slow)),
            end_equity: 100_000 * (1 + (sharpe ?? 0) * 0.8),
          },
        });
      }
    }
  }
  const { summary } = syntheticRun({ steps: 300 });
  return {
    bot: summary.bot,
    version: summary.version,
    window: summary.window,
    currency: 'USD',
    trials: { ...NO_TRIALS, total: rows.length, done: rows.length },
    ranked: rows.length,
    objectives: HIGHEST_SHARPE.objectives,
    isSampled: false,
    rows: rows.toSorted((a, b) => (b.metrics.sharpe ?? -9) - (a.metrics.sharpe ?? -9)),
    deflated: { probability: 0.41, expected_max_sharpe: 0.96, trials: rows.length },
  };
}
