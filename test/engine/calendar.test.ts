/** Runs in the calendar of an exchange. */
import { describe, expect, it } from 'vitest';
import { pivots } from '../../src/engine/indicators/pivots.ts';
import { Vwap, vwap } from '../../src/engine/indicators/vwap.ts';
import type { EngineConfig } from '../../src/engine/config.ts';
import { EquityCurve } from '../../src/engine/equity-curve.ts';
import { DrawdownTracker } from '../../src/engine/risk/drawdown-tracker.ts';
import { Engine } from '../../src/engine/engine.ts';
import type { BarSeries } from '../../src/engine/series/declared-series.ts';
import { defineStrategy } from '../../src/engine/strategy.ts';
import { barsFromRows } from '../../src/market/bars.ts';
import type { Bars } from '../../src/market/bars.ts';
import { calendarOf } from '../../src/market/trading-calendar.ts';
import { ENGINE_DEFAULTS, play } from './market.ts';
import type { Scene, Script } from './market.ts';

const HOUR = 3_600_000;
const NEW_YORK = { timeframe: '1h', calendar: 'XNYS' } as const;

/** Hours with rising prices from each of these times on. */
function hours(...starts: readonly (readonly [from: string, count: number])[]): Bars {
  let price = 100;
  const rows = starts.flatMap(([from, count]) =>
    Array.from({ length: count }, (_, at) => {
      price += 1;
      return [
        Date.parse(from) + at * HOUR,
        price,
        price + 3,
        price - 1,
        price + 2,
        10 * at + 1,
      ] as const;
    }),
  );
  return barsFromRows(rows);
}

/** The half day after Thanksgiving ends at 18:00Z, and the sessions around it at 21:00Z. */
const AROUND_HALF_DAY = hours(
  ['2024-11-27T14:30Z', 7],
  ['2024-11-29T14:30Z', 4],
  ['2024-12-02T14:30Z', 7],
);

/** Ends of day orders that are never filled, placed at these steps: `[step, order, …]`. */
function endsOf(config: Partial<EngineConfig>, bars: Bars, ...steps: readonly number[]) {
  const place = { type: 'limit', limit: 1, timeInForce: 'day' } as const;
  const script: Script = Object.fromEntries(
    steps.map((step) => [step, ({ buy }: Scene) => buy(1, place)]),
  );
  const runs = ([3, 'as they come'] as const).map(
    (slice) => play({ bars, config, script, slice }).ends,
  );
  expect(runs[1]).toEqual(runs[0]);
  return runs[0];
}

describe('a day order', () => {
  const expired = (step: number, order: number) => [step, order, 'expired', 'day_ended'];

  it('ends with the last bar of its session, in history and as bars come', () => {
    expect(endsOf(NEW_YORK, AROUND_HALF_DAY, 0, 6, 7)).toEqual([
      expired(6, 1),
      expired(10, 2),
      expired(10, 3),
    ]);
  });

  it('ends with the next bar if the last one of its session is missing', () => {
    const bars = hours(['2024-11-27T14:30Z', 6], ['2024-11-29T14:30Z', 4]);
    expect(endsOf(NEW_YORK, bars, 0)).toEqual([expired(6, 1)]);
  });

  it('ends with the bar of its date if bars are daily', () => {
    const days = ['2024-11-27', '2024-11-29', '2024-12-02', '2024-12-03'];
    const bars = barsFromRows(days.map((day) => [Date.parse(day), 5, 5, 5, 5, 1]));
    expect(endsOf({ timeframe: '1d', calendar: 'XNYS' }, bars, 0)).toEqual([expired(1, 1)]);
    expect(endsOf({ timeframe: '1d' }, bars, 0)).toEqual([expired(2, 1)]);
  });

  it('without a calendar ends with the first bar of the next UTC day', () => {
    expect(endsOf({ timeframe: '1h' }, AROUND_HALF_DAY, 0)).toEqual([expired(7, 1)]);
  });
});

describe('max_daily_loss_pct', () => {
  const LATE = '2024-12-02T18:30Z';
  /** Three hours in a session, three after its close, and two on the next UTC day. */
  const prices = [100, 100, 91, 91, 91, 82, 82, 82];
  const bars = barsFromRows(
    prices.map((price, at) => [Date.parse(LATE) + at * HOUR, price, price, price, price, 1]),
  );
  /** Steps whose order is denied. */
  const deniedSteps = (config: Partial<EngineConfig>) => {
    const runs = ([3, 'as they come'] as const).map((slice) => {
      const denied: number[] = [];
      play({
        bars,
        config: { ...config, risk: { ...ENGINE_DEFAULTS.risk, max_daily_loss_pct: 0.08 } },
        slice,
        everyBar: ({ buy, step }) => {
          if (buy(step === 0 ? 1000 : 0.001).status === 'denied') denied.push(step);
        },
      });
      return denied;
    });
    expect(runs[1]).toEqual(runs[0]);
    return runs[0];
  };

  it('counts from the close of a session to the next, in history and as bars come', () => {
    expect(deniedSteps(NEW_YORK)).toEqual([2, 5, 6, 7]);
  });

  it('without a calendar counts from midnight UTC', () => {
    expect(deniedSteps({ timeframe: '1h' })).toEqual([2, 3, 4, 5]);
  });

  it.each([
    ['2024-12-02', 100_000],
    ['2024-12-03', 110_000],
  ])('continues with the loss of the session of %s only in that session', (day, start) => {
    const risk = new DrawdownTracker(100_000, calendarOf('XNYS'), {
      peak_equity: 110_000,
      day_start_equity: 110_000,
      day,
    });
    // After the close on 2 December, which belongs to the session of the next day.
    const times = Float64Array.of(Date.parse('2024-12-02T22:30Z'));
    const curve = new EquityCurve(100_000, times, new Float64Array(1));
    risk.follow(curve, 0);
    expect(risk.dayStart).toBe(start);
    expect(risk.state.day).toBe('2024-12-03');
  });
});

/** The values of declared series at each bar. */
function valuesOf(
  bars: Bars,
  declare: (asset: BarSeries) => readonly { readonly value: number }[],
): number[][] {
  const values: number[][] = [];
  const engine = new Engine({
    instruments: [{ symbol: 'X', bars }],
    strategy: defineStrategy({
      name: 'watcher',
      description: '',
      params: {},
      indicators: ({ instruments: [asset] }) => declare(asset),
      create: ({ indicators }) => ({
        onBar: () => values.push(indicators.map(({ value }) => value)),
      }),
    }),
    params: {},
    config: { ...ENGINE_DEFAULTS, ...NEW_YORK },
  });
  while (engine.advance(5));
  return values;
}

it('a daily bar is known at the last bar of its session, including a half day', () => {
  const closes = valuesOf(AROUND_HALF_DAY, (asset) => [asset.on('1d').close]).flat();
  const { close } = AROUND_HALF_DAY;
  expect(closes.slice(0, 6)).toEqual(Array.from({ length: 6 }, () => Number.NaN));
  expect(closes.slice(6, 10)).toEqual(Array.from({ length: 4 }, () => close[6]));
  expect(closes.slice(10, 17)).toEqual(Array.from({ length: 7 }, () => close[10]));
  expect(closes[17]).toBe(close[17]);
});

it('the pivots of hours are those of the session before', () => {
  const values = valuesOf(AROUND_HALF_DAY, (asset) => {
    const day = asset.on('1d');
    const { pivot, r1 } = pivots(asset);
    return [pivot, r1, day.high, day.low, day.close];
  });
  // At the first bar of a session, the newest daily bar is the one of the session before.
  for (const step of [7, 11]) {
    const [pivot, r1, high, low, close] = values[step]!;
    expect(pivot).toBe((high! + low! + close!) / 3);
    expect(r1).toBe(2 * pivot! - low!);
  }
});

it('vwap restarts with each session and ignores bars outside sessions', () => {
  const sessions = [
    ['2024-11-27T14:30Z', 7],
    ['2024-11-29T14:30Z', 4],
  ] as const;
  const evening = hours(sessions[0], ['2024-11-27T22:00Z', 3], sessions[1]);
  const values = valuesOf(evening, (asset) => [vwap(asset)]).flat();
  const own = new Vwap();
  const { time, high, low, close, volume } = evening;
  const expected = Array.from(time, (at, row) =>
    row >= 7 && row < 10
      ? own.value
      : own.next(at, high[row]!, low[row]!, close[row]!, volume[row]!),
  );
  expect(values).toEqual(expected);
});

it('vwap() rejects sessionStart if there is a calendar', () => {
  expect(() => valuesOf(AROUND_HALF_DAY, (asset) => [vwap(asset, 60)])).toThrow(
    'vwap: omit sessionStart, since universe.calendar is XNYS',
  );
});

it('a run in years that the calendar does not cover is rejected', () => {
  const bars = hours(['1980-01-02T14:30Z', 3]);
  expect(() => valuesOf(bars, (asset) => [asset.on('1d').close])).toThrow(
    'the calendar XNYS covers 1990 to 2035, not 1980-01-02',
  );
});
