import { expect, test } from 'vitest';
import { backtest, type Outcome } from '../../src/backtest/backtest.ts';
import type { BacktestJob } from '../../src/backtest/job.ts';
import { NO_RISK_LIMITS, type EngineConfig } from '../../src/engine/config.ts';
import { defineStrategy, type StrategyContext } from '../../src/engine/strategy.ts';
import { barsFromRows, type Bars } from '../../src/market/bars.ts';
import { day } from './golden.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/** Bars without range: each opens where the one before closed. */
function bars(closes: readonly number[], step: number, offset = 0): Bars {
  return barsFromRows(
    closes.map((close, i) => {
      const open = closes[i - 1] ?? close;
      const range = [Math.max(open, close), Math.min(open, close)] as const;
      return [day(0) + offset + i * step, open, ...range, close, 1000];
    }),
  );
}

/** Runs a strategy that calls `onStep` at the close of every step, from 0. */
function run(
  histories: Readonly<Record<string, Bars>>,
  barMs: number,
  onStep: (step: number, context: StrategyContext) => void,
  config: Partial<EngineConfig> = {},
): Promise<Outcome> {
  const strategy = defineStrategy({
    name: 'test',
    description: 'made by a test',
    params: {},
    create(context) {
      let step = 0;
      return { onBar: () => onStep(step++, context) };
    },
  });
  const job: BacktestJob = {
    bot: { name: 'Test', slug: 'test' },
    currency: 'USD',
    lock: { digest: '', spec: '', engine: '', seed: 0, strategy: 'test', data: {} },
    strategy,
    params: {},
    config: {
      cash: 1000,
      fill: { model: 'next_open' },
      units: 'fractional',
      fees: { model: 'none' },
      slippage: { model: 'none' },
      account: { model: 'margin', initial: 0.25, maintenance: 0.01 },
      risk: NO_RISK_LIMITS,
      seed: 0,
      ...config,
    },
    barMs,
    instruments: Object.entries(histories).map(([symbol, history]) => ({
      symbol,
      bars: history,
      source: { bars: history.length, missing: 0 },
    })),
    assertions: [],
  };
  return backtest(job, { runId: 'run', timeoutMs: 10_000 });
}

/** Buys these shares of the equity at the first close. */
const holding =
  (...weights: readonly number[]) =>
  (step: number, { broker, instruments }: StrategyContext): void => {
    if (step === 0) weights.forEach((weight, i) => broker.target(instruments[i]!, weight));
  };

test('a lost account ends the run, and bars and buy and hold count only until then', async () => {
  const histories = {
    X: bars([100, 100, 100, 50, 400, 800], DAY),
    Y: bars([50, 50, 50, 60, 1, 1], DAY),
  };
  // Three times the equity is in X, which halves in the fourth bar, after Y was sold.
  const { result, summary } = await run(histories, DAY, (step, context) => {
    holding(3, 0.5)(step, context);
    if (step === 2) context.broker.target(context.instruments[1]!, 0);
  });
  expect(result.ruinedAt).toBe(3);
  expect(summary.window).toEqual({
    from: new Date(day(0)).toISOString(),
    to: new Date(day(3)).toISOString(),
    bars: 8,
  });
  const finding = summary.findings.find(({ code }) => code === 'holding_is_better');
  expect(finding?.evidence).toMatchObject({ buy_and_hold: expect.closeTo(-0.15, 12) });
});

test('the first day of an intraday run counts among its returns', async () => {
  const hours = Array.from({ length: 72 }, (_, i) => (i < 24 ? 100 - i : 77 + (i >> 4)));
  const { summary } = await run({ X: bars(hours, HOUR) }, HOUR, holding(1));
  expect(summary.conventions.sampling).toBe('day');
  expect(summary.returns.worst_day).toBeCloseTo(-0.23, 12);
});

test('days of instruments that begin at different hours count as whole days', async () => {
  const closes = Array.from({ length: 100 }, (_, i) => 100 + 5 * Math.sin(i));
  const daily = (offset: number): Bars => bars(closes, DAY, offset);
  const together = await run({ X: daily(0), Y: daily(0) }, DAY, holding(0.5, 0.5));
  const apart = await run({ X: daily(0), Y: daily(14.5 * HOUR) }, DAY, holding(0.5, 0.5));
  expect(apart.result.steps).toBe(200);
  expect(apart.summary.conventions).toEqual(together.summary.conventions);
  expect(apart.summary.risk.sharpe).toBeCloseTo(together.summary.risk.sharpe!, 1);
  expect(apart.summary.risk.volatility).toBeCloseTo(together.summary.risk.volatility!, 2);
});

test('a run that closes at its end sells at the last closes, with costs, after its last order', async () => {
  const histories = {
    X: bars([100, 100, 110, 120], DAY),
    // Y has no bar in the last step.
    Y: bars([50, 50, 40], DAY),
  };
  const trade = (step: number, context: StrategyContext): void => {
    holding(0.5, -0.5)(step, context);
    const [x] = context.instruments;
    if (step === 3) context.broker.order({ instrument: x, side: 'buy', quantity: 1 });
  };
  const costs = {
    fees: { model: 'percent', rate: 0.01, min: 0 },
    slippage: { model: 'basis_points', bps: 100 },
  } as const;
  const held = await run(histories, DAY, trade, costs);
  const { result, summary } = await run(histories, DAY, trade, { ...costs, closesAtEnd: true });

  expect(result.openTrades).toEqual([]);
  expect(result.positions).toEqual({});
  expect(result.trades.map(({ symbol, side, exit_time }) => [symbol, side, exit_time])).toEqual([
    ['X', 'long', day(3)],
    ['Y', 'short', day(3)],
  ]);
  expect(result.trades[0]!.exit_price).toBeCloseTo(120 * 0.99, 10);
  expect(result.trades[1]!.exit_price).toBeCloseTo(40 * 1.01, 10);
  expect(result.cash).toBe(result.equity.at(-1));
  expect(summary.equity.end).toBe(result.cash);
  expect([...result.equity].slice(0, 3)).toEqual([...held.result.equity].slice(0, 3));
  const [long, short] = held.result.openTrades;
  const value = long!.quantity * 120 + short!.quantity * 40;
  // A hundredth for slippage and about as much for fees.
  expect(held.result.equity.at(-1)! - result.cash).toBeCloseTo(
    value * 0.01 + 0.01 * (long!.quantity * 118.8 + short!.quantity * 40.4),
    8,
  );
  expect(result.stepsInMarket).toBe(held.result.stepsInMarket - 1);
  expect(summary.orders).toMatchObject({ working: 0, canceled: 1 });
  const canceled = [...result.journal.events()].filter(({ kind }) => kind === 'order.canceled');
  expect(canceled).toMatchObject([{ reason: 'run_ended' }]);
});

test('the volume of the last bar does not limit the fill that closes a run', async () => {
  const { result } = await run({ X: bars([100, 100, 100, 100], DAY) }, DAY, holding(1), {
    cash: 200_000,
    fill: { model: 'volume_share', limit: 0.9 },
    closesAtEnd: true,
  });
  expect(result.trades).toHaveLength(1);
  expect(result.trades[0]!.quantity).toBeGreaterThan(900);
  expect(result.positions).toEqual({});
});
