import { describe, expect, test } from 'vitest';

import { HOUR } from '../../src/base/durations.ts';
import { declaredIndicators } from '../../src/engine/declared-indicators.ts';
import { Engine } from '../../src/engine/engine.ts';
import type { Indicator } from '../../src/engine/indicators/indicator.ts';
import type { BarSeries, Series } from '../../src/engine/series/declared-series.ts';
import { barsOf, together, type WarmUp } from '../../src/engine/series/warm-up.ts';
import { stepsOf } from '../../src/engine/steps.ts';
import { defineStrategy, type IndicatorContext } from '../../src/engine/strategy.ts';
import { allocateBars, barsFromRows, sliceBars } from '../../src/market/bars.ts';
import { ENGINE_DEFAULTS } from './market.ts';

export interface Bar {
  /** Opening instant, milliseconds since the epoch. */
  readonly time: number;
  readonly open: number;
  readonly high: number;
  readonly low: number;
  readonly close: number;
  readonly volume: number;
}

/** Constructor arguments of an indicator and its documented properties. */
export interface IndicatorCase {
  readonly name: string;
  /** The bar at which it becomes ready, from 1; that of the second day, if it depends on the time. */
  readonly readyAt: number | 'second day';
  readonly start: () => RunningIndicator;
  /** The series of `value` and of the other lines. */
  readonly declare: (bars: BarSeries) => readonly Series[];
  /** Constructor calls that must throw, by the name of the invalid parameter. */
  readonly refused: readonly (readonly [parameter: string, construct: () => Indicator])[];
}

export interface RunningIndicator {
  readonly indicator: Indicator;
  step(bar: Bar): number;
  /** All lines but `value`. */
  lines(): number[];
}

/** Tests that every indicator must pass. */
export function indicatorContract(subject: IndicatorCase): void {
  const { name, readyAt, start, declare, refused } = subject;

  describe(`${name} keeps the contract of indicators`, () => {
    test.each([
      ['a random market', randomMarket(1, 400)],
      ['a market in cents with gaps and halts', centMarket(2, 400)],
      ['a flat market', flatMarket(400)],
    ])(
      'in %s every output is NaN before bar ' + readyAt + ' and a number from it on',
      (_, bars) => {
        const running = start();
        const first = readyAt === 'second day' ? 1 + bars.findIndex(isOnSecondDay) : readyAt;
        expect(running.indicator.ready).toBe(false);
        expect(outputs(running)).toSatisfy(allNaN);
        bars.forEach((bar, index) => {
          const answer = running.step(bar);
          expect(answer).toBe(running.indicator.value);
          expect(running.indicator.ready).toBe(index + 1 >= first);
          expect(outputs(running)).toSatisfy(running.indicator.ready ? allFinite : allNaN);
        });
      },
    );

    test('bars give the same outputs in chunks of any size, beside another instance at work', () => {
      const bars = centMarket(3, 300);
      const whole = record(start(), bars);

      const chunked = start();
      const other = start();
      const parts: number[][] = [];
      for (let from = 0, size = 1; from < bars.length; from += size, size = (size * 3) % 17) {
        parts.push(...record(chunked, bars.slice(from, from + size)));
        record(other, randomMarket(from, 7));
      }
      expect(parts).toEqual(whole);
    });

    test('a bar that is not a number changes nothing', () => {
      const bars = randomMarket(4, 120);
      const running = start();
      const seen: number[][] = [];
      for (const bar of bars) {
        for (const hole of [NaN, Infinity, -Infinity]) {
          const before = outputs(running);
          expect(running.step(barAt(bar.time, hole, hole))).toBe(running.indicator.value);
          expect(outputs(running)).toEqual(before);
        }
        seen.push(...record(running, [bar]));
      }
      expect(seen).toEqual(record(start(), bars));
    });

    test.each([
      ['a backtest', false],
      ['a live run', true],
    ])('declared, it has the same values in %s as by steps', (_, isLive) => {
      const bars = centMarket(5, 300);
      expect(runDeclared(declare, bars, isLive)).toEqual(record(start(), bars));
    });

    test('declared, it is ready after the bars that its declaration names, and not before', () => {
      const needed = barsOf(warmUpOf(declare).ready, HOUR);
      const bars = randomMarket(6, needed);
      expect(runDeclared(declare, bars, false, needed - 1)).toEqual([expect.toSatisfy(allFinite)]);
      if (needed === 1) return;
      const [first, second] = runDeclared(declare, bars, false, needed - 2);
      expect(first).toSatisfy(allNaN);
      expect(second).toSatisfy(allFinite);
    });

    test.each([
      ['a backtest', false],
      ['a live run', true],
    ])('declared, bars before %s continue in it', (_, isLive) => {
      const bars = centMarket(7, 200);
      const whole = runDeclared(declare, bars, false);
      expect(runDeclared(declare, bars, isLive, 61)).toEqual(whole.slice(61));
    });

    test('declared, bars before the ones that its declaration names hardly matter', () => {
      const settled = barsOf(warmUpOf(declare).settled, HOUR);
      if (settled === Infinity) return;
      // Both end with the same `settled` bars, the days of which begin at the same time.
      const bars = randomMarket(8, 48 + settled);
      const others = [...randomMarket(9, 48), ...bars.slice(48)];
      const [one, other] = [bars, others].map((market) =>
        runDeclared(declare, market, false).at(-1),
      );
      for (const [place, value] of one!.entries()) {
        expect(Math.abs(other![place]! - value)).toBeLessThanOrEqual(1e-8 * Math.abs(value) + 1e-8);
      }
    });

    test.each(refused)('an invalid %s is rejected by name', (parameter, construct) => {
      expect(construct).toThrow(RangeError);
      expect(construct).toThrow(new RegExp(`^${parameter} must be `));
    });
  });
}

/** The values of declared series at each bar of a run that begins after `warmUp` bars. */
function runDeclared(
  declare: IndicatorCase['declare'],
  market: readonly Bar[],
  isLive: boolean,
  warmUp = 0,
): number[][] {
  const rows = market.map(
    ({ time, open, high, low, close, volume }) => [time, open, high, low, close, volume] as const,
  );
  const all = barsFromRows(rows);
  const before = sliceBars(all, 0, warmUp);
  const history = [{ symbol: 'X', bars: sliceBars(all, warmUp, all.length), warmUp: before }];
  const seen: number[][] = [];
  const engine = new Engine({
    instruments: isLive ? [{ symbol: 'X', bars: allocateBars(0), warmUp: before }] : history,
    strategy: defineStrategy({
      name: 'reader',
      description: 'Reads declared series.',
      params: {},
      indicators: ({ instruments: [bars] }) => declare(bars),
      create: ({ indicators }) => ({
        onBar: () => seen.push(indicators.map(({ value }) => value)),
      }),
    }),
    params: {},
    config: ENGINE_DEFAULTS,
  });
  if (isLive) {
    for (const step of stepsOf(history)) {
      engine.append(step);
      engine.advance(1);
    }
  } else while (engine.advance(64));
  return seen;
}

function warmUpOf(declare: IndicatorCase['declare']): WarmUp {
  const indicators = ({ instruments: [bars] }: IndicatorContext) => declare(bars);
  const declared = declaredIndicators({ name: 'x', indicators }, {}, ['X'], {});
  return together(...declared.map(({ warmUp }) => warmUp));
}

/** All outputs after each bar. */
export function record(running: RunningIndicator, bars: readonly Bar[]): number[][] {
  return bars.map((bar) => {
    running.step(bar);
    return outputs(running);
  });
}

/** Hourly bars of a random walk in full precision, so that no two prices are equal. */
export function randomMarket(seed: number, length: number): Bar[] {
  const random = seededRandom(seed);
  let price = 100;
  return Array.from({ length }, (_, index) => {
    const open = price * (1 + 0.002 * (random() - 0.5));
    const close = open * (1 + 0.03 * (random() - 0.5));
    const high = Math.max(open, close) * (1 + 0.01 * random());
    const low = Math.min(open, close) * (1 - 0.01 * random());
    price = close;
    return { time: index * 3_600_000, open, high, low, close, volume: 1 + 1e6 * random() };
  });
}

/**
 * Realistic daily bars: prices in cents, whole volumes that are occasionally 30 times the usual, an opening
 * gap of 8 % every 60 bars, and halts of 8 bars without trades.
 */
export function centMarket(seed: number, length: number): Bar[] {
  const random = seededRandom(seed);
  const cents = (price: number): number => Math.round(price * 100) / 100;
  let price = 40;
  return Array.from({ length }, (_, index) => {
    const time = index * 86_400_000;
    if (index % 50 >= 40 && index % 50 < 48) return barAt(time, price, 0);
    const gap = index % 60 === 59 ? (index % 120 === 59 ? 1.08 : 0.92) : 1;
    const open = cents(price * gap * (1 + 0.01 * (random() - 0.5)));
    const close = cents(open * (1 + 0.04 * (random() - 0.5)));
    const high = cents(Math.max(open, close) * (1 + 0.01 * random()));
    const low = cents(Math.min(open, close) * (1 - 0.01 * random()));
    price = close;
    const volume = Math.round(1e5 * (0.5 + random()) * (random() < 0.03 ? 30 : 1));
    return { time, open, high, low, close, volume };
  });
}

export function flatMarket(length: number): Bar[] {
  return Array.from({ length }, (_, index) => barAt(index * 3_600_000, 100.1, 0));
}

export function barAt(time: number, price: number, volume: number): Bar {
  return { time, open: price, high: price, low: price, close: price, volume };
}

/** Mulberry32. */
export function seededRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function outputs(running: RunningIndicator): number[] {
  return [running.indicator.value, ...running.lines()];
}

const isOnSecondDay = ({ time }: Bar): boolean => time >= 86_400_000;
const allNaN = (values: readonly number[]): boolean => values.every(Number.isNaN);
const allFinite = (values: readonly number[]): boolean => values.every(Number.isFinite);
