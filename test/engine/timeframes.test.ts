/** Bars of longer timeframes in declared indicators. */
import { describe, expect, it } from 'vitest';
import { Engine } from '../../src/engine/engine.ts';
import { Ema, ema } from '../../src/engine/indicators/ema.ts';
import { correlation } from '../../src/engine/indicators/correlation.ts';
import { difference } from '../../src/engine/indicators/arithmetic.ts';
import { sma } from '../../src/engine/indicators/sma.ts';
import {
  above,
  any,
  below,
  crossedAbove,
  crossedBelow,
  crossing,
  crossingAbove,
} from '../../src/engine/series/condition.ts';
import type { Condition } from '../../src/engine/series/condition.ts';
import type { BarSeries, Series } from '../../src/engine/series/declared-series.ts';
import { stepsOf } from '../../src/engine/steps.ts';
import { defineStrategy } from '../../src/engine/strategy.ts';
import type { StrategyContext } from '../../src/engine/strategy.ts';
import { allocateBars, BAR_COLUMNS, barsFromRows, sliceBars } from '../../src/market/bars.ts';
import type { Bars } from '../../src/market/bars.ts';
import { bucketOf } from '../../src/market/periods.ts';
import { resample } from '../../src/market/resample.ts';
import { parseTimeframe } from '../../src/market/timeframe.ts';
import type { TimeframeName } from '../../src/market/timeframe.ts';
import { runs } from '../length.ts';
import { ENGINE_DEFAULTS, START } from './market.ts';
import { seededRandom } from './indicator-contract.ts';

const HOUR = 3_600_000;

/** Hours from a Monday on, some of which are missing. */
function hours(seed: number, length = 24 * 40, share = 0.8): Bars {
  const random = seededRandom(seed);
  const rows = Array.from({ length }, (_, index) => {
    const [open, close] = [50 + 10 * random(), 50 + 10 * random()];
    const [high, low] = [Math.max(open, close) + random(), Math.min(open, close) - random()];
    return [START + index * HOUR, open, high, low, close, Math.floor(9 * random())] as const;
  });
  return barsFromRows(rows.filter(() => random() < share));
}

interface Watch<I> {
  readonly markets: readonly Bars[];
  readonly isLive: boolean;
  /** Time of the first bar of the run; earlier bars only feed its indicators. */
  readonly from?: number;
  readonly declare: (instruments: readonly [BarSeries, ...BarSeries[]]) => I;
  readonly wakeOn?: (indicators: I) => Condition;
  readonly onBar: (context: StrategyContext<never, I>) => void;
}

/** Runs a strategy over hours, in slices or step by step. */
function watch<I>({ markets, isLive, from, declare, wakeOn, onBar }: Watch<I>): Engine {
  const instruments = markets.map((history, at) => {
    const first = from === undefined ? 0 : history.time.findIndex((time) => time >= from);
    return {
      symbol: 'ABC'.charAt(at),
      bars: sliceBars(history, first, history.length),
      warmUp: sliceBars(history, 0, first),
    };
  });
  const engine = new Engine({
    instruments: isLive
      ? instruments.map(({ symbol, warmUp }) => ({ symbol, warmUp, bars: allocateBars(0) }))
      : instruments,
    strategy: defineStrategy({
      name: 'watcher',
      description: '',
      params: {},
      indicators: (context) => declare(context.instruments),
      ...(wakeOn && { wakeOn }),
      create: (context) => ({ onBar: () => onBar(context as never) }),
    }),
    params: {},
    config: { ...ENGINE_DEFAULTS, timeframe: '1h' },
  });
  if (!isLive) while (engine.advance(100));
  else {
    for (const step of stepsOf(instruments)) {
      engine.append(step);
      engine.advance(1);
    }
  }
  return engine;
}

/** The last row of `longer` that is complete once `history` has reached `time`. */
function lastComplete(longer: Bars, name: TimeframeName, history: Bars, time: number) {
  const reached = history.time.findLast((one) => one <= time) ?? -Infinity;
  const at = longer.time.findLastIndex((start) => {
    const { end } = bucketOf(start, parseTimeframe(name));
    return end <= reached + HOUR;
  });
  return BAR_COLUMNS.map((column) => longer[column][at] ?? Number.NaN);
}

const NAMES = ['2h', '4h', '1d', '1w', '1mo'] as const;

describe.each([
  ['in a backtest', false],
  ['live', true],
])('%s, the bars of a longer timeframe', (_, isLive) => {
  it('are those of resampled data that are complete, for several symbols with missing bars', () => {
    for (let seed = 0; seed < runs(3); seed += 1) {
      const markets = [hours(seed, 960, 0.8), hours(seed + 1000, 960, 0.3)];
      const longer = markets.map((history) =>
        NAMES.map((name) => resample(history, parseTimeframe(name))),
      );
      const seen: number[][][][] = [];
      const expected: number[][][][] = [];
      watch({
        markets,
        isLive,
        declare: (instruments) => instruments.map((one) => NAMES.map((name) => one.on(name))),
        onBar({ indicators, instruments }) {
          const now = Math.max(...instruments.map(({ time }) => (time > 0 ? time : 0)));
          seen.push(
            indicators.map((coarse) => coarse.map((bar) => BAR_COLUMNS.map((c) => bar[c].value))),
          );
          expected.push(
            markets.map((history, index) =>
              NAMES.map((name, at) => lastComplete(longer[index]![at]!, name, history, now)),
            ),
          );
        },
      });
      expect(seen.length).toBeGreaterThan(500);
      expect(seen).toEqual(expected);
    }
  });

  it('continue from the bars before the run', () => {
    const from = START + 500 * HOUR;
    const script = {
      markets: [hours(21), hours(22)],
      isLive,
      declare: (instruments: readonly [BarSeries, ...BarSeries[]]) =>
        instruments.map((one) => ema(one.on('1d').close, 3)),
    };
    const valuesFrom = (start?: number): number[][] => {
      const values: number[][] = [];
      watch({
        ...script,
        ...(start !== undefined && { from: start }),
        onBar: ({ indicators }) => values.push(indicators.map(({ value }) => value)),
      });
      return values;
    };
    const values = valuesFrom(from);
    expect(values.length).toBeGreaterThan(400);
    expect(values).toEqual(valuesFrom().slice(-values.length));
  });

  it('feed indicators that equal those over resampled data', () => {
    const history = hours(7);
    const daily = resample(history, parseTimeframe('1d'));
    const own = new Ema(5);
    const expected = Array.from(daily.close, (close) => own.next(close));
    const values: number[] = [];
    watch({
      markets: [history],
      isLive,
      declare: ([asset]) => ema(asset.on('1d').close, 5),
      onBar: ({ indicators: trend }) => values.push(trend.value),
    });
    const distinct = values.filter((value, at) => value > 0 && value !== values[at - 1]);
    const ready = expected.filter((value) => value > 0);
    expect(distinct.length).toBeGreaterThan(30);
    expect([ready, ready.slice(0, -1)]).toContainEqual(distinct);
  });

  it('combine several instruments by the times of the longer bars', () => {
    const markets = [hours(3), hours(4, 960, 0.1)];
    const values: number[] = [];
    watch({
      markets,
      isLive,
      declare: ([a, b]) => difference(a.on('1d').close, b!.on('1d').close),
      onBar: ({ indicators: spread }) => values.push(spread.value),
    });
    const [a, b] = markets.map((history) => resample(history, parseTimeframe('1d')));
    const expected = [...a!.time].flatMap((time, at) => {
      const other = b!.time.indexOf(time);
      return other < 0 ? [] : [a!.close[at]! - b!.close[other]!];
    });
    const seen = values.filter((value, at) => !Number.isNaN(value) && value !== values[at - 1]);
    expect(seen.length).toBeGreaterThan(20);
    expect(seen).toEqual(expected.slice(0, seen.length));
    expect(expected.length - seen.length).toBeLessThan(2);
  });
});

type Three = readonly [close: Series, fast: Series, slow: Series];

/** Conditions on series of longer timeframes, and whether they hold at the current step. */
const CONDITIONS: readonly [string, (series: Three) => Condition, (series: Three) => boolean][] = [
  [
    'crossings of daily averages',
    ([, fast, slow]) => crossing(fast, slow),
    ([, fast, slow]) => crossedAbove(fast, slow) || crossedBelow(fast, slow),
  ],
  [
    'a close that crosses a daily average',
    ([close, , slow]) => crossingAbove(close, slow),
    ([close, , slow]) => crossedAbove(close, slow),
  ],
  [
    'days above a level, or closes below it',
    ([close, fast]) => any(above(fast, 56), below(close, 52)),
    ([close, fast]) => fast.value > 56 || close.value < 52,
  ],
];

describe.each(CONDITIONS)('a strategy that wakes on %s', (_, wakeOn, holds) => {
  it.each([
    ['in a backtest', 1, false],
    ['live', 1, true],
    ['in a backtest of two symbols', 2, false],
    ['live with two symbols', 2, true],
  ])('is called at exactly these bars %s', (__, count, isLive) => {
    const markets = [hours(11), hours(12)].slice(0, count);
    const script = {
      markets,
      isLive,
      declare: ([asset]: readonly [BarSeries, ...BarSeries[]]): Three => [
        asset.close,
        sma(asset.on('1d').close, 2),
        sma(asset.on('1d').close, 5),
      ],
    };
    const from = START + 200 * HOUR;
    const timeOf = ({ instruments }: Pick<StrategyContext, 'instruments'>): number =>
      Math.max(...instruments.map(({ time }) => (time > 0 ? time : 0)));
    const expected: number[] = [];
    watch({
      ...script,
      onBar: (context) => holds(context.indicators) && expected.push(timeOf(context)),
    });
    const calls: number[] = [];
    watch({ ...script, wakeOn, onBar: (context) => calls.push(timeOf(context)) });
    expect(calls.length).toBeGreaterThan(3);
    expect(calls).toEqual(expected);
    const later: number[] = [];
    watch({ ...script, from, wakeOn, onBar: (context) => later.push(timeOf(context)) });
    expect(later).toEqual(expected.filter((time) => time >= from));
  });
});

it('a condition on days wakes a strategy at the bar that completes the day', () => {
  const history = hours(5, 24 * 20, 1);
  const calls: number[] = [];
  watch({
    markets: [history],
    isLive: false,
    declare: ([asset]) => asset.on('1d').close,
    wakeOn: (close) => crossing(close, 55),
    onBar: ({ instruments: [asset] }) => calls.push(new Date(asset.time).getUTCHours()),
  });
  expect(calls.length).toBeGreaterThan(2);
  expect(new Set(calls)).toEqual(new Set([23]));
});

describe('a timeframe is rejected', () => {
  const declaring = (declare: Watch<unknown>['declare']) => () =>
    watch({ markets: [hours(1, 10)], isLive: false, declare, onBar: () => {} });

  it.each([
    ['30m', /30m does not consist of whole bars of 1h; use a longer timeframe/],
    ['1y', /^on: unknown timeframe "1y"\. Use one of 1m, /],
    ['1week', /^on: unknown timeframe "1week"\. Did you mean 1w\?$/],
  ])('%s', (name, message) => {
    expect(declaring(([asset]) => asset.on(name as TimeframeName))).toThrow(message);
  });

  it('if another input of the same indicator has a different one', () => {
    expect(declaring(([asset]) => correlation(asset.close, asset.on('1d').close, 3))).toThrow(
      'an indicator has inputs of different timeframes',
    );
  });

  it('if the strategy first requests it during the run', () => {
    expect(() =>
      watch({
        markets: [hours(1, 10)],
        isLive: false,
        declare: ([asset]) => asset,
        onBar: ({ indicators: asset }) => asset.on('1d'),
      }),
    ).toThrow("on('1d') must be called in indicators(), before the run");
  });
});

it('on() returns the same series for the timeframe of the run, and for one declared before', () => {
  const declared: BarSeries[] = [];
  watch({
    markets: [hours(1, 10)],
    isLive: false,
    declare: ([asset]) =>
      declared.push(asset, asset.on('1h'), asset.on('1d'), asset.on('4h').on('1d')),
    onBar: () => {},
  });
  const [asset, own, day, dayOfHours] = declared;
  expect(own).toBe(asset);
  expect(dayOfHours).toBe(day);
  expect([asset!.timeframe, day!.timeframe]).toEqual(['1h', '1d']);
});
