import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { pricesSection } from '../../src/backtest/report/charts-section.ts';
import { unpackColumn, unpackLevels } from '../../src/backtest/report/client/unpack-levels.ts';
import { packColumn } from '../../src/backtest/report/pack-column.ts';
import { packLevel } from '../../src/backtest/report/pack-level.ts';
import { priceCharts } from '../../src/backtest/report/price-charts.ts';
import {
  monthlyReturns,
  thinCurve,
  toCandles,
  toMarkers,
  toRanges,
} from '../../src/backtest/report/series.ts';
import { drawdownsOf } from '../../src/backtest/returns.ts';
import type { Trade } from '../../src/engine/round-trip.ts';
import { barsFromRows } from '../../src/market/bars.ts';
import { randomWalk, syntheticIndicators, syntheticRun } from './report-fixture.ts';

const DAY_MS = 86_400_000;
const days = (count: number): Float64Array =>
  Float64Array.from({ length: count }, (_, day) => day * DAY_MS);

describe('thinning an equity curve', () => {
  const curve = fc.array(fc.double({ min: 1, max: 1000, noNaN: true }), {
    minLength: 1,
    maxLength: 400,
  });

  it('keeps extremes, ends and the deepest drawdown within the limit', () => {
    fc.assert(
      fc.property(
        curve,
        fc.integer({ min: 12, max: 60 }),
        fc.boolean(),
        (values, limit, withBenchmark) => {
          const equity = Float64Array.from(values);
          const benchmark = withBenchmark ? equity.toReversed() : undefined;
          const time = days(equity.length);
          const { curve: thin, deepest } = thinCurve(
            time,
            equity,
            drawdownsOf(equity, 500),
            benchmark,
            limit,
          );
          const close = (a: number, b: number): void =>
            expect(Math.abs(a - b)).toBeLessThanOrEqual(1e-7);

          expect(thin.time.length).toBeLessThanOrEqual(Math.max(limit, 0));
          expect(thin.time).toEqual(thin.time.toSorted((a, b) => a - b));
          expect(thin.time[0]).toBe(0);
          expect(thin.time.at(-1)).toBe(time.at(-1)! / 1000);
          close(Math.max(...thin.equity), Math.max(...equity));
          close(Math.min(...thin.equity), Math.min(...equity));
          close(Math.min(...thin.drawdown, 0), deepest.depth);
          if (benchmark) close(Math.max(...thin.benchmark!), Math.max(...benchmark));
        },
      ),
    );
  });

  it('gives every stretch the same number of points, even if it is flat', () => {
    const equity = Float64Array.from({ length: 1000 }, (_, i) =>
      i < 500 ? 100 : 100 + Math.sin(i),
    );
    const { curve: thin } = thinCurve(days(1000), equity, drawdownsOf(equity, 100), undefined, 302);
    const flat = thin.time.filter((seconds) => seconds * 1000 < 500 * DAY_MS).length;
    expect(flat).toBe(150);
    expect(thin.time.length).toBe(301);
  });

  it('dates the deepest drawdown, including a loss before any profit', () => {
    const equity = Float64Array.of(90, 120, 60, 130, 100);
    expect(thinCurve(days(5), equity, drawdownsOf(equity, 100), undefined, 100).deepest).toEqual({
      depth: -0.5,
      peakTime: DAY_MS,
      troughTime: 2 * DAY_MS,
    });
    expect(
      thinCurve(
        days(1),
        equity.subarray(0, 1),
        drawdownsOf(equity.subarray(0, 1), 100),
        undefined,
        100,
      ).curve.drawdown,
    ).toEqual([-0.1]);
  });
});

it('candles combine first open, extremes and last close of their bars', () => {
  const bars = barsFromRows([
    [0, 10, 12, 9, 11, 1],
    [1000, 11, 15, 10, 14, 1],
    [2000, 14, 14, 8, 9, 1],
    [3000, 9, 10, 7, 8, 1],
    [4000, 8, 9, 8, 9, 1],
  ]);
  expect(toCandles(bars, 3)).toEqual({
    barsPerCandle: 2,
    time: [0, 2, 4],
    open: [10, 14, 8],
    high: [15, 14, 9],
    low: [9, 7, 8],
    close: [14, 8, 9],
    volume: [2, 2, 1],
  });
});

describe('the ranges of a line', () => {
  const candlesOf = (bars: number, perCandle: number): ReturnType<typeof toCandles> =>
    toCandles(randomWalk(bars, DAY_MS, 1), Math.ceil(bars / perCandle));

  it('have the lowest, highest and last value of each candle', () => {
    fc.assert(
      fc.property(
        fc.array(fc.option(fc.integer({ min: -99, max: 99 }), { nil: Number.NaN }), {
          minLength: 4,
          maxLength: 60,
        }),
        fc.integer({ min: 2, max: 7 }),
        fc.integer({ min: 0, max: 3 }),
        (values, perCandle, before) => {
          const candles = candlesOf(values.length - before, perCandle);
          const ranges = toRanges(Float64Array.from(values), { before }, candles);
          const { close, low = close, high = close } = ranges;
          for (let candle = 0; candle < candles.time.length; candle++) {
            const from = before + candle * candles.barsPerCandle;
            const own = values.slice(from, from + candles.barsPerCandle);
            const known = own.filter((value) => !Number.isNaN(value));
            const last = own.at(-1)!;
            expect(close[candle]).toBe(Number.isNaN(last) ? null : last);
            expect(low[candle]).toBe(known.length === 0 ? null : Math.min(...known));
            expect(high[candle]).toBe(known.length === 0 ? null : Math.max(...known));
          }
        },
      ),
    );
  });

  it('hold the value of a slower line between its entries, and need no extremes for single bars', () => {
    const rows = Int32Array.of(1, 4);
    expect(toRanges(Float64Array.of(7, 9), { before: 0, rows }, candlesOf(6, 1))).toEqual({
      close: [null, 7, 7, 7, 9, 9],
    });
  });

  it('begin with the value of a slower line that was complete before the run', () => {
    const rows = Int32Array.of(1, 2, 5);
    const values = Float64Array.of(7, 8, 9);
    expect(toRanges(values, { before: 3, rows }, candlesOf(3, 1))).toEqual({ close: [8, 8, 9] });
  });

  it('leave out values that cannot be drawn', () => {
    const values = Float64Array.of(Number.NaN, Infinity, 1 / 3);
    expect(toRanges(values, { before: 0 }, candlesOf(3, 1))).toEqual({
      close: [null, null, 1 / 3],
    });
  });
});

it('a candle has one marker per kind with its count, and exits by the sign of their total profit', () => {
  const candles = toCandles(randomWalk(10, DAY_MS, 1), 5);
  const start = candles.time[0]! * 1000;
  const trade = (
    entry: number,
    exit: number,
    pnl: number,
    side: 'long' | 'short' = 'long',
  ): Trade => ({
    ...syntheticRun({ steps: 100 }).result.trades[0]!,
    side,
    entry_time: start + entry * DAY_MS,
    exit_time: start + exit * DAY_MS,
    pnl,
  });
  const closed = [trade(0, 4, 5), trade(1, 5, -2), trade(1, 9, -1, 'short'), trade(-3, 9, -1)];
  expect(toMarkers(candles, closed, [trade(7, 9, 3)])).toEqual([
    [0, 'long', 2],
    [0, 'short', 1],
    [2, 'gain', 2, 3],
    [3, 'long', 1],
    [4, 'loss', 2, -2],
  ]);
});

describe('monthly returns', () => {
  const at = (...dates: string[]): Float64Array =>
    Float64Array.from(dates, (date) => Date.parse(date));

  it('are relative to the equity at the end of the previous month and year', () => {
    const time = at('2023-11-30', '2023-12-15', '2023-12-31T23:59Z', '2024-01-01', '2024-03-05');
    const years = monthlyReturns(time, Float64Array.of(110, 50, 121, 60.5, 121), 100);
    expect(years.map(({ year, total }) => [year, total])).toEqual([
      [2023, 121 / 100 - 1],
      [2024, 0],
    ]);
    expect(years[0]!.months.slice(9)).toEqual([undefined, 110 / 100 - 1, 121 / 110 - 1]);
    expect(years[1]!.months.slice(0, 4)).toEqual([-0.5, undefined, 1, undefined]);
  });

  it('are undefined after a total loss', () => {
    const [year] = monthlyReturns(at('2024-01-31', '2024-02-29'), Float64Array.of(0, 5), 100);
    expect(year!.months.slice(0, 2)).toEqual([-1, null]);
  });
});

it('names short entries in the legend only if there are some', () => {
  const run = syntheticRun({ steps: 60 });
  const legendOf = (side: Trade['side']): string => {
    const trades = run.result.trades.map((trade) => ({ ...trade, side }));
    const input = { ...run, result: { ...run.result, trades, openTrades: [] } };
    return pricesSection(priceCharts(input, true), input.instruments).source;
  };
  expect(legendOf('long')).not.toContain('Short entry');
  expect(legendOf('short')).toContain('Short entry');
});

describe('levels of detail', () => {
  it('survive packing with at least six significant digits', () => {
    const number = fc.double({ noNaN: true, min: 1e-4, max: 1e6 });
    const column = fc.array(fc.oneof(number, fc.constant(100), fc.constant(null)), {
      minLength: 1,
      maxLength: 60,
    });
    fc.assert(
      fc.property(column, (close) => {
        const candles = toCandles(randomWalk(close.length, 20, 1), close.length);
        const overview = packLevel({ candles, ranges: [{ close }], markers: [] });
        const chart = { symbol: 'X', indicators: [], overview, summary: '' };
        const level = unpackLevels(chart).overview;
        expect(level.candles).toEqual(candles);
        level.ranges[0]!.close.forEach((value, index) => {
          const given = close[index]!;
          if (given === null) expect(value).toBeNull();
          else expect(Math.abs(value! / given - 1)).toBeLessThan(5e-6);
        });
      }),
    );
  });

  it('survive packing whatever their numbers are', () => {
    const extremes = [1e-310, 5e-324, 2 ** 53, -1e16, 1.23e17, 1e60, -1e200, Number.MAX_VALUE, -0];
    const number = fc.oneof(
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.double({ noNaN: true, min: -1e17, max: 1e17 }),
      fc.constantFrom(...extremes, -Number.MAX_VALUE, 0),
    );
    fc.assert(
      fc.property(fc.array(fc.option(number), { maxLength: 40 }), (given) => {
        const most = Math.max(0, ...given.map((value) => Math.abs(value ?? 0)));
        const isSigned = given.some((value) => value !== null && value < 0);
        const unpacked = unpackColumn(packColumn(given));
        expect(unpacked.length).toBe(given.length);
        unpacked.forEach((value, index) => {
          const before = given[index]!;
          if (before === null) return expect(value).toBeNull();
          const size = isSigned ? most : Math.abs(before);
          const error = Math.abs(value! - before);
          expect(error).toBeLessThanOrEqual(5e-6 * size + 1e-14 * most + 1e-300);
        });
      }),
    );
  });

  it('survive packing with every opening instant, to the millisecond', () => {
    const start = fc.integer({ min: Date.UTC(1970), max: Date.UTC(2100) });
    const steps = fc.array(
      fc.oneof(fc.constantFrom(1, 1000, 60_000), fc.integer({ min: 1, max: DAY_MS })),
      { minLength: 1, maxLength: 40 },
    );
    fc.assert(
      fc.property(start, steps, (first, differences) => {
        let instant = first;
        const time = [first, ...differences.map((ms) => (instant += ms))].map((ms) => ms / 1000);
        const candles = { ...toCandles(randomWalk(time.length, 20, 1), time.length), time };
        const overview = packLevel({ candles, ranges: [], markers: [] });
        const chart = { symbol: 'X', indicators: [], overview, summary: '' };
        expect(unpackLevels(chart).overview.candles.time).toEqual(time);
      }),
    );
  });

  it('include, for a long run, the single bars around the trades with the largest profits and losses', () => {
    const run = syntheticRun({ steps: 30_000, stepMs: 60_000, tradeEvery: 1000 });
    const indicators = syntheticIndicators(run.instruments[0]!);
    const [chart] = priceCharts({ ...run, indicators }, false);
    const { overview, stretches } = unpackLevels(chart!);
    expect(overview.candles.barsPerCandle).toBeGreaterThan(1);
    expect(stretches).toHaveLength(run.result.trades.length);
    const { bars } = run.instruments[0]!;
    for (const [index, { entry_time, exit_time }] of run.result.trades.entries()) {
      const { candles, ranges, markers } = stretches[index]!;
      const [entry, exit] = [entry_time, exit_time].map((at) => candles.time.indexOf(at / 1000));
      expect(markers.map(([candle]) => candle)).toEqual(expect.arrayContaining([entry, exit]));
      const row = bars.time.indexOf(entry_time);
      expect(candles.open[entry!]).toBe(bars.open[row]);
      expect(ranges.map(({ close }) => close[entry!])).toEqual(
        indicators.flatMap(({ lines }) =>
          lines.map(({ values }) => expect.closeTo(values[row]!, 4) as number),
        ),
      );
    }
    expect(chart!.summary).toContain('Single bars are included around 29 of the trades');
  });
});
