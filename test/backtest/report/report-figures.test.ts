import { describe, expect, it } from 'vitest';
import { drawdownsOf } from '../../../src/backtest/returns.ts';
import { worstDrawdowns } from '../../../src/backtest/report/drawdowns.ts';
import { excursionOf } from '../../../src/backtest/report/excursions.ts';
import { ExitReasons, type Closing } from '../../../src/backtest/report/exit-reasons.ts';
import { histogramOf } from '../../../src/backtest/report/histogram.ts';
import { rollingFigures, sampledReturns } from '../../../src/backtest/report/rolling.ts';
import { timeAxis, valueAxis } from '../../../src/backtest/report/svg-chart.ts';
import { groupTrades } from '../../../src/backtest/report/trade-groups.ts';
import type { OrderStep } from '../../../src/engine/order-steps.ts';
import type { OrderType } from '../../../src/engine/orders/order.ts';
import type { Trade } from '../../../src/engine/round-trip.ts';
import { barsFromRows } from '../../../src/market/bars.ts';
import { daily, day, goldenRun, trade } from '../golden.ts';

describe('the worst drawdowns', () => {
  const dated = (equity: readonly number[], count: number) =>
    worstDrawdowns(
      Float64Array.from(equity, (_, step) => day(step)),
      drawdownsOf(Float64Array.from(equity), equity[0]),
      count,
    );

  it('have the dates of peak, trough and recovery, the deepest first', () => {
    expect(dated([100, 90, 95, 100, 110, 55, 110, 120, 108], 5)).toEqual([
      { start: day(4), trough: day(5), recovery: day(6), depth: -0.5 },
      { start: day(0), trough: day(1), recovery: day(3), depth: 90 / 100 - 1 },
      { start: day(7), trough: day(8), recovery: undefined, depth: 108 / 120 - 1 },
    ]);
  });

  it('are the deepest of many, and empty if equity never fell', () => {
    const sawtooth = Array.from({ length: 400 }, (_, i) => (i % 2 ? 100 - (i % 97) / 10 : 100));
    const depths = dated(sawtooth, 5).map(({ depth }) => depth);
    const all = drawdownsOf(Float64Array.from(sawtooth)).toSorted().slice(0, 5);
    expect(depths).toEqual([...all]);
    expect(dated([1, 2, 3], 5)).toEqual([]);
  });
});

describe('excursions', () => {
  const bars = barsFromRows([
    [day(0), 100, 120, 90, 100, 1],
    [day(1), 100, 104, 97, 102, 1],
    [day(2), 102, 111, 101, 110, 1],
    [day(3), 108, 150, 50, 60, 1],
  ]);
  const entered = { entry_time: day(1), exit_time: day(3), entry_price: 100, exit_price: 108 };

  it('cover the bars from the entry to the one before the exit', () => {
    const { adverse, favorable } = excursionOf(trade(8, entered), bars);
    expect(adverse).toBeCloseTo(0.03, 12);
    expect(favorable).toBeCloseTo(0.11, 12);
  });

  it('swap sides for a short trade', () => {
    const { adverse, favorable } = excursionOf(trade(-8, { ...entered, side: 'short' }), bars);
    expect(adverse).toBeCloseTo(0.11, 12);
    expect(favorable).toBeCloseTo(0.03, 12);
  });

  it('include the exit price, such as that of a stop in the bar of the entry', () => {
    const stopped = { ...entered, exit_time: day(1), exit_price: 95 };
    const { adverse, favorable } = excursionOf(trade(-5, stopped), bars);
    expect(adverse).toBeCloseTo(0.05, 12);
    expect(favorable).toBe(0);
  });
});

describe('exit reasons', () => {
  const exitReasonsOf = (events: OrderStep[], trades: Trade[], closing?: Closing) => {
    const reasons = new ExitReasons(closing);
    for (const event of events) reasons.add(event);
    return reasons.of(trades);
  };
  const none = { type: undefined, parent: undefined, position: undefined };
  const submitted = (order: number, type: OrderType, more = {}): OrderStep => ({
    ...none,
    kind: 'order.submitted',
    time: 0,
    symbol: 'X',
    order,
    type,
    ...more,
  });
  const filled = (order: number, position: number): OrderStep => ({
    ...none,
    kind: 'order.filled',
    time: 0,
    symbol: 'X',
    order,
    position,
  });
  const reasonsOf = (...events: OrderStep[]): string[] => {
    const trades = [1, 2, 3].map((id) => trade(0, { id }));
    for (const count of [1, 2, 3]) {
      const found = exitReasonsOf(events, trades.slice(0, count));
      if (found.size > 0) return [...found.values()];
    }
    return [];
  };

  it('are the kind of the order that made the position flat', () => {
    expect(
      reasonsOf(
        submitted(1, 'market'),
        filled(1, 5),
        submitted(2, 'limit', { parent: 1 }),
        submitted(3, 'stop', { parent: 1 }),
        filled(2, 2),
        filled(3, 0),
        submitted(4, 'limit'),
        filled(4, -5),
        submitted(5, 'trailing_stop'),
        filled(5, 0),
      ),
    ).toEqual(['stop_loss', 'trailing_stop']);
  });

  it('name take profits, reversals and margin calls', () => {
    expect(
      reasonsOf(
        submitted(1, 'market'),
        filled(1, 5),
        submitted(2, 'limit', { parent: 1 }),
        filled(2, 0),
        submitted(3, 'market'),
        filled(3, 5),
        submitted(4, 'market'),
        filled(4, -5),
        { ...none, kind: 'account.margin_call', time: 1, symbol: '', order: 0 },
        submitted(5, 'market', { time: 1 }),
        filled(5, 0),
      ),
    ).toEqual(['take_profit', 'reversal', 'margin_call']);
  });

  it('name trades that the end of a run or window closed, but not those of its other orders', () => {
    const [first, last] = [day(1), day(2)];
    const events = [
      submitted(1, 'market', { time: first }),
      filled(1, 5),
      submitted(2, 'market', { time: first }),
      filled(2, 0),
      submitted(3, 'market', { time: first }),
      filled(3, 5),
      submitted(4, 'stop', { time: last, parent: 3 }),
      filled(4, 0),
      submitted(5, 'market', { time: first }),
      filled(5, 5),
      submitted(6, 'market', { time: last }),
      filled(6, 0),
    ];
    const trades = [1, 2, 3].map((id) => trade(0, { id }));
    const closing = { reason: 'window_end', times: [day(2)] } as const;
    expect([...exitReasonsOf(events, trades, closing).values()]).toEqual([
      'market',
      'stop_loss',
      'window_end',
    ]);
  });

  it('are unknown if the events close another number of trades', () => {
    expect(exitReasonsOf([filled(1, 5), filled(2, 0)], []).size).toBe(0);
  });
});

it('rolling figures are those of the run over each window of six months', () => {
  const run = goldenRun();
  const conventions = daily(run.time);
  const sampled = sampledReturns(run, 'day');
  expect(sampled.time.at(-1)).toBe(run.time.at(-1));
  expect(sampled.time).toHaveLength(504);
  const { window, time, sharpe, volatility } = rollingFigures(sampled, conventions, 1000);
  expect(window).toBe(126);
  expect(time).toHaveLength(504 - 126 + 1);
  // Each figure by its definition, from prices alone.
  const last = Array.from(run.equity.slice(-127));
  const returns = last.slice(1).map((value, i) => value / last[i]! - 1);
  const mean = returns.reduce((sum, value) => sum + value) / 126;
  const variance = returns.reduce((sum, value) => sum + (value - mean) ** 2, 0) / 125;
  expect(sharpe.at(-1)).toBeCloseTo((mean / Math.sqrt(variance)) * Math.sqrt(252), 10);
  expect(volatility.at(-1)).toBeCloseTo(Math.sqrt(variance * 252), 10);
  const few = rollingFigures(sampled, conventions, 10);
  expect(few.time.length).toBeLessThanOrEqual(10);
  expect(few.time.at(-1)).toBe(time.at(-1));
});

it('a histogram counts every value once, with outliers in the outer bins', () => {
  const values = Float64Array.from({ length: 1000 }, (_, i) => ((i % 21) - 10) / 1000);
  values[0] = 5;
  const { counts, width, from } = histogramOf(values, { mean: 0, deviation: 0.006 })!;
  expect(counts.reduce((sum, count) => sum + count)).toBe(1000);
  expect(counts.length).toBeLessThanOrEqual(41);
  expect(from).toBeLessThanOrEqual(-0.01);
  expect(from + counts.length * width).toBeLessThan(0.03);
  expect(histogramOf(Float64Array.of(1, 1), { mean: 1, deviation: 0 })).toBeUndefined();
});

it('trades are grouped by name, with wins, profit and mean return', () => {
  const trades = [trade(10), trade(-4), trade(6, { symbol: 'Y' })];
  expect(groupTrades(trades, ({ symbol }) => symbol, ['Y', 'X'])).toEqual([
    { name: 'Y', count: 1, winRate: 1, pnl: 6, averageReturn: 0.0006 },
    {
      name: 'X',
      count: 2,
      winRate: 0.5,
      pnl: 6,
      averageReturn: expect.closeTo(0.0003, 12) as number,
    },
  ]);
  expect(groupTrades(trades, () => undefined)).toEqual([]);
});

it('axes have a few round ticks that enclose the values', () => {
  const axis = valueAxis([-0.13, 0.21], String);
  expect(axis.ticks.map(({ label }) => label)).toEqual(['-0.2', '-0.1', '0', '0.1', '0.2', '0.3']);
  const years = timeAxis(Date.UTC(2000, 0, 3), Date.UTC(2020, 3, 17));
  expect(years.ticks.map(({ label }) => label)).toEqual(
    ['2000', '2005', '2010', '2015', '2020'].slice(1),
  );
  expect(timeAxis(day(0), day(1)).ticks).toHaveLength(2);
});
