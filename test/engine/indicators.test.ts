import fc from 'fast-check';
import {
  ADX,
  ATR,
  BollingerBands,
  DonchianChannels,
  KeltnerChannels,
  MACD,
  OBV,
  RSI,
  SMA,
  StochasticOscillator,
  VWAP,
  WMA,
  getCorrelation,
  getStandardDeviation,
  getZScore,
} from 'trading-signals';
import { describe, expect, test } from 'vitest';

import * as api from '../../src/engine/api.ts';
import { Adx } from '../../src/engine/indicators/adx.ts';
import { Atr } from '../../src/engine/indicators/atr.ts';
import { Bollinger } from '../../src/engine/indicators/bollinger.ts';
import { Correlation } from '../../src/engine/indicators/correlation.ts';
import { Crossover } from '../../src/engine/indicators/crossover.ts';
import { Donchian } from '../../src/engine/indicators/donchian.ts';
import { Ema } from '../../src/engine/indicators/ema.ts';
import type { Indicator } from '../../src/engine/indicators/indicator.ts';
import { Keltner } from '../../src/engine/indicators/keltner.ts';
import { Macd } from '../../src/engine/indicators/macd.ts';
import { Obv } from '../../src/engine/indicators/obv.ts';
import { Rsi } from '../../src/engine/indicators/rsi.ts';
import { Sma } from '../../src/engine/indicators/sma.ts';
import {
  StandardDeviation,
  standardDeviation,
} from '../../src/engine/indicators/standard-deviation.ts';
import { Stochastic } from '../../src/engine/indicators/stochastic.ts';
import { Vwap } from '../../src/engine/indicators/vwap.ts';
import { WilderAverage } from '../../src/engine/indicators/wilder.ts';
import { Wma } from '../../src/engine/indicators/wma.ts';
import { ZScore } from '../../src/engine/indicators/z-score.ts';
import type { BarSeries } from '../../src/engine/series/declared-series.ts';
import {
  barAt,
  centMarket,
  flatMarket,
  indicatorContract,
  randomMarket,
  record,
  seededRandom,
} from './indicator-contract.ts';
import type { Bar, IndicatorCase, RunningIndicator } from './indicator-contract.ts';
import {
  closes,
  firstDifference,
  MeanSeededEma,
  refusedPeriods,
  run,
  seriesOf,
  windows,
} from './indicator-oracles.ts';
import type { Output } from './indicator-oracles.ts';

type OfClose = Indicator & { next(close: number): number };
type OfRange = Indicator & { next(high: number, low: number, close: number): number };
const onClose = (indicator: OfClose, bar: Bar): number => indicator.next(bar.close);
const onRange = (indicator: OfRange, bar: Bar): number =>
  indicator.next(bar.high, bar.low, bar.close);

const start = {
  sma: (period: number) => run(new Sma(period), onClose),
  ema: (period: number) => run(new Ema(period), onClose),
  wma: (period: number) => run(new Wma(period), onClose),
  wilder: (period: number) => run(new WilderAverage(period), onClose),
  rsi: (period: number) => run(new Rsi(period), onClose),
  macd: (fast: number, slow: number, signal: number) =>
    run(new Macd(fast, slow, signal), onClose, (it) => [it.macd, it.signal, it.histogram]),
  deviation: (period: number) => run(new StandardDeviation(period), onClose),
  bollinger: (period: number, k: number) =>
    run(new Bollinger(period, k), onClose, (it) => [it.upper, it.middle, it.lower]),
  zScore: (period: number) => run(new ZScore(period), onClose),
  correlation: (period: number) =>
    run(new Correlation(period), (it, bar) => it.next(bar.close, bar.volume)),
  atr: (period: number) => run(new Atr(period), onRange),
  adx: (period: number) => run(new Adx(period), onRange, (it) => [it.plusDi, it.minusDi]),
  stochastic: (k: number, smooth: number, d: number) =>
    run(new Stochastic(k, smooth, d), onRange, (it) => [it.k, it.d]),
  donchian: (period: number) =>
    run(
      new Donchian(period),
      (it, bar) => it.next(bar.high, bar.low),
      (it) => [it.upper, it.middle, it.lower],
    ),
  keltner: (period: number, atrPeriod: number, multiplier: number) =>
    run(new Keltner(period, atrPeriod, multiplier), onRange, (it) => [
      it.upper,
      it.middle,
      it.lower,
    ]),
  obv: () => run(new Obv(), (it, bar) => it.next(bar.close, bar.volume)),
  vwap: () =>
    run(new Vwap(), (it, bar) => it.next(bar.time, bar.high, bar.low, bar.close, bar.volume)),
};

/** The lines of a channel as `run` lists them. */
const CHANNEL = ['middle', 'upper', 'middle', 'lower'] as const;

const CASES: readonly IndicatorCase[] = [
  ...[1, 2, 10].map((period) => ({
    name: `Sma(${period})`,
    readyAt: period,
    start: () => start.sma(period),
    declare: (bars: BarSeries) => [api.sma(bars.close, period)],
    refused: refusedPeriods('period', (bad) => new Sma(bad)),
  })),
  ...[1, 10].map((period) => ({
    name: `Ema(${period})`,
    readyAt: period,
    start: () => start.ema(period),
    declare: (bars: BarSeries) => [api.ema(bars.close, period)],
    refused: refusedPeriods('period', (bad) => new Ema(bad)),
  })),
  ...[1, 10].map((period) => ({
    name: `Wma(${period})`,
    readyAt: period,
    start: () => start.wma(period),
    declare: (bars: BarSeries) => [api.wma(bars.close, period)],
    refused: refusedPeriods('period', (bad) => new Wma(bad)),
  })),
  {
    name: 'WilderAverage(10)',
    readyAt: 10,
    start: () => start.wilder(10),
    declare: (bars: BarSeries) => [api.wilder(bars.close, 10)],
    refused: refusedPeriods('period', (bad) => new WilderAverage(bad)),
  },
  ...[1, 14].map((period) => ({
    name: `Rsi(${period})`,
    readyAt: period + 1,
    start: () => start.rsi(period),
    declare: (bars: BarSeries) => [api.rsi(bars.close, period)],
    refused: refusedPeriods('period', (bad) => new Rsi(bad)),
  })),
  {
    name: 'Macd(12, 26, 9)',
    readyAt: 26 + 9 - 1,
    start: () => start.macd(12, 26, 9),
    declare: (bars: BarSeries) =>
      seriesOf(api.macd(bars.close), 'macd', 'macd', 'signal', 'histogram'),
    refused: [
      ...refusedPeriods('fast', (bad) => new Macd(bad, 26, 9)),
      ...refusedPeriods('slow', (bad) => new Macd(12, bad, 9)),
      ...refusedPeriods('signal', (bad) => new Macd(12, 26, bad)),
      ['fast', () => new Macd(26, 12, 9)],
      ['fast', () => new Macd(12, 12, 9)],
    ],
  },
  {
    name: 'StandardDeviation(20)',
    readyAt: 20,
    start: () => start.deviation(20),
    declare: (bars: BarSeries) => [standardDeviation(bars.close, 20)],
    refused: refusedPeriods('period', (bad) => new StandardDeviation(bad)),
  },
  {
    name: 'Bollinger(20, 2)',
    readyAt: 20,
    start: () => start.bollinger(20, 2),
    declare: (bars: BarSeries) => seriesOf(api.bollinger(bars.close), ...CHANNEL),
    refused: [
      ...refusedPeriods('period', (bad) => new Bollinger(bad, 2)),
      ['period', () => new Bollinger(1, 2)],
      ['k', () => new Bollinger(20, 0)],
      ['k', () => new Bollinger(20, NaN)],
    ],
  },
  {
    name: 'ZScore(20)',
    readyAt: 20,
    start: () => start.zScore(20),
    declare: (bars: BarSeries) => [api.zScore(bars.close, 20)],
    refused: [
      ...refusedPeriods('period', (bad) => new ZScore(bad)),
      ['period', () => new ZScore(1)],
    ],
  },
  {
    name: 'Correlation(20)',
    readyAt: 20,
    start: () => start.correlation(20),
    declare: (bars: BarSeries) => [api.correlation(bars.close, bars.volume, 20)],
    refused: [
      ...refusedPeriods('period', (bad) => new Correlation(bad)),
      ['period', () => new Correlation(1)],
    ],
  },
  {
    name: 'Atr(14)',
    readyAt: 14,
    start: () => start.atr(14),
    declare: (bars: BarSeries) => [api.atr(bars)],
    refused: refusedPeriods('period', (bad) => new Atr(bad)),
  },
  ...[1, 14].map((period) => ({
    name: `Adx(${period})`,
    readyAt: 2 * period,
    start: () => start.adx(period),
    declare: (bars: BarSeries) => seriesOf(api.adx(bars, period), 'adx', 'plusDi', 'minusDi'),
    refused: refusedPeriods('period', (bad) => new Adx(bad)),
  })),
  {
    name: 'Stochastic(14, 3, 5)',
    readyAt: 14 + 3 + 5 - 2,
    start: () => start.stochastic(14, 3, 5),
    declare: (bars: BarSeries) => seriesOf(api.stochastic(bars, 14, 3, 5), 'k', 'k', 'd'),
    refused: [
      ...refusedPeriods('k', (bad) => new Stochastic(bad, 3, 5)),
      ...refusedPeriods('smooth', (bad) => new Stochastic(14, bad, 5)),
      ...refusedPeriods('d', (bad) => new Stochastic(14, 3, bad)),
    ],
  },
  ...[1, 20].map((period) => ({
    name: `Donchian(${period})`,
    readyAt: period,
    start: () => start.donchian(period),
    declare: (bars: BarSeries) => seriesOf(api.donchian(bars, period), ...CHANNEL),
    refused: refusedPeriods('period', (bad) => new Donchian(bad)),
  })),
  ...(
    [
      [20, 10],
      [10, 20],
    ] as const
  ).map(([period, atrPeriod]) => ({
    name: `Keltner(${period}, ${atrPeriod}, 2)`,
    readyAt: 20,
    start: () => start.keltner(period, atrPeriod, 2),
    declare: (bars: BarSeries) => seriesOf(api.keltner(bars, period, atrPeriod, 2), ...CHANNEL),
    refused: [
      ...refusedPeriods('period', (bad) => new Keltner(bad, 10, 2)),
      ...refusedPeriods('atrPeriod', (bad) => new Keltner(20, bad, 2)),
      ['multiplier', () => new Keltner(20, 10, -1)] as const,
    ],
  })),
  {
    name: 'Obv',
    readyAt: 1,
    start: start.obv,
    declare: (bars) => [api.obv(bars)],
    refused: [],
  },
  {
    name: 'Vwap',
    readyAt: 1,
    start: start.vwap,
    declare: (bars) => [api.vwap(bars)],
    refused: [],
  },
];

CASES.forEach(indicatorContract);

/** Reference for each indicator: `value` first, then its lines. */
const THEIRS: readonly [
  name: string,
  ours: () => RunningIndicator,
  theirs: (bars: readonly Bar[]) => Output[],
][] = [
  ['Sma', () => start.sma(10), (bars) => new SMA(10).updates(closes(bars))],
  [
    'Ema, theirs started from a mean',
    () => start.ema(10),
    (bars) => new MeanSeededEma(10).updates(closes(bars)),
  ],
  ['Wma', () => start.wma(10), (bars) => new WMA(10).updates(closes(bars))],
  ['Rsi', () => start.rsi(14), (bars) => new RSI(14).updates(closes(bars))],
  [
    'Macd, theirs with averages started from a mean',
    () => start.macd(12, 26, 9),
    (bars) => {
      const theirs = new MACD(new MeanSeededEma(12), new MeanSeededEma(26), new MeanSeededEma(9));
      return theirs
        .updates(closes(bars))
        .map((it) => it && [it.macd, it.macd, it.signal, it.histogram]);
    },
  ],
  [
    'StandardDeviation',
    () => start.deviation(20),
    (bars) => windows(closes(bars), 20).map((window) => window && getStandardDeviation(window)),
  ],
  [
    'Bollinger',
    () => start.bollinger(20, 2),
    (bars) => new BollingerBands(20, 2).updates(closes(bars)).map(channel),
  ],
  [
    'ZScore',
    () => start.zScore(20),
    (bars) => windows(closes(bars), 20).map((window) => window && getZScore(window)),
  ],
  [
    'Correlation',
    () => start.correlation(20),
    (bars) =>
      windows(bars, 20).map(
        (window) =>
          window &&
          getCorrelation(
            closes(window),
            window.map((bar) => bar.volume),
          ),
      ),
  ],
  ['Atr', () => start.atr(14), (bars) => new ATR(14).updates(bars)],
  [
    'Stochastic',
    () => start.stochastic(14, 3, 5),
    (bars) => {
      const theirs = new StochasticOscillator({ kPeriod: 14, kSlowingPeriod: 3, dPeriod: 5 });
      return theirs.updates(bars).map((it) => it && [it.stochK, it.stochK, it.stochD]);
    },
  ],
  [
    'Donchian',
    () => start.donchian(20),
    (bars) => new DonchianChannels(20).updates(bars).map(channel),
  ],
  [
    // trading-signals starts the average with the first close, whose weight decays by 19/21 per bar.
    'Keltner, once their other start has faded',
    () => start.keltner(20, 10, 2),
    (bars) => {
      const theirs = new KeltnerChannels({ emaInterval: 20, atrInterval: 10, multiplier: 2 });
      return theirs.updates(bars).map((it, index) => (index < 300 ? null : channel(it)));
    },
  ],
  ['Obv', start.obv, (bars) => new OBV(2).updates(bars)],
  [
    'Vwap, theirs begun anew each UTC day',
    start.vwap,
    (bars) => {
      let theirs = new VWAP();
      return bars.map((bar, index) => {
        if (utcDate(bar) !== utcDate(bars[index - 1])) theirs = new VWAP();
        return theirs.add(bar);
      });
    },
  ],
];

describe.each([
  ['a random market', randomMarket(11, 3000)],
  ['a market in cents with gaps and halts', centMarket(12, 3000)],
])('in %s', (_, bars) => {
  test.each(THEIRS)('%s has the outputs of trading-signals', (_name, ours, theirs) => {
    expect(firstDifference(record(ours(), bars), theirs(bars))).toBeUndefined();
  });
});

describe('Sma', () => {
  test('is the exact mean, rounded once, for any earlier values', () => {
    const price = fc.double({ min: 1, max: 1e4, noNaN: true });
    const series = fc
      .tuple(fc.array(price, { maxLength: 60 }), fc.array(price, { minLength: 1, maxLength: 60 }))
      .map(([before, after]) => [...before, ...before.map((x) => x * 1e4), ...after]);
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 40 }), series, (period, values) => {
        const sma = new Sma(period);
        values.forEach((value, index) => {
          sma.next(value);
          if (index + 1 < period) return;
          const window = values.slice(index + 1 - period, index + 1);
          expect(relativeErrorOfMean(sma.value, window)).toBeLessThan(2 ** -53 * 1.000001);
        });
      }),
    );
  });

  test('does not drift over a million values with jumps of a million to one', () => {
    const values = jumpySeries(1_000_000);
    const sma = new Sma(37);
    values.forEach((value, index) => {
      sma.next(value);
      if (index < 37 || index % 997 !== 0) return;
      const window = [...values.subarray(index - 36, index + 1)];
      expect(relativeErrorOfMean(sma.value, window)).toBeLessThan(1e-15);
    });
  });

  test('equals the price in a flat window, to the last bit', () => {
    const price = fc.double({ min: 1e-3, max: 1e6, noNaN: true });
    fc.assert(
      fc.property(price, fc.array(price), fc.integer({ min: 1, max: 300 }), (x, before, period) => {
        const averages = [new Sma(period), new Wma(period)];
        for (const average of averages) {
          for (const value of before) average.next(value);
          for (let i = 0; i < period; i++) average.next(x);
          expect(average.value).toBe(x);
        }
      }),
    );
  });

  test('never crosses another average in a flat market', () => {
    const random = seededRandom(5);
    const [fast, slow, crossover] = [new Sma(10), new Sma(49), new Crossover()];
    const step = (price: number): number => crossover.next(fast.next(price), slow.next(price));
    const lively = Array.from({ length: 1000 }, () => step(90 + 20 * random()));
    expect(lively).toContain(1);
    for (let i = 0; i < 49; i++) step(100.1);
    const atRest = Array.from({ length: 1000 }, () => step(100.1));
    expect(new Set(atRest)).toEqual(new Set([0]));
  });
});

describe('Wma', () => {
  test('does not drift over a million values with jumps of a million to one', () => {
    const values = jumpySeries(1_000_000);
    const wma = new Wma(37);
    values.forEach((value, index) => {
      wma.next(value);
      if (index < 37 || index % 997 !== 0) return;
      const window = values.subarray(index - 36, index + 1);
      const direct = window.reduce((sum, x, age) => sum + x * (age + 1), 0) / ((37 * 38) / 2);
      expect(Math.abs(wma.value / direct - 1)).toBeLessThan(1e-14);
    });
  });
});

describe('a rolling indicator depends only on its window', () => {
  test.each([
    ['Sma', () => start.sma(20)],
    ['Wma', () => start.wma(20)],
    ['StandardDeviation', () => start.deviation(20)],
    ['Bollinger', () => start.bollinger(20, 2)],
    ['ZScore', () => start.zScore(20)],
    ['Correlation', () => start.correlation(20)],
    ['Donchian', () => start.donchian(20)],
  ])('%s has the same values after a later start', (_, begin) => {
    const bars = randomMarket(21, 20_000);
    const [old, young] = [begin(), begin()];
    record(old, bars.slice(0, -40));
    const last = bars.slice(-40);
    expect(firstDifference(record(old, last), record(young, last), 1e-14)).toBeUndefined();
  });
});

describe('StandardDeviation', () => {
  test('is precise if the level is ten orders of magnitude above the spread', () => {
    // Eighths around 1e9 are exact, so subtracting the level loses no precision.
    const random = seededRandom(6);
    const offsets = Array.from({ length: 2000 }, () => Math.round(8 * random()) / 8);
    const deviation = new StandardDeviation(20);
    const ours = offsets.map((offset) => [deviation.next(1e9 + offset)]);
    const exact = windows(offsets, 20).map((window) => window && getStandardDeviation(window));
    expect(firstDifference(ours, exact)).toBeUndefined();
  });

  test('recovers from an outlier of a million to one', () => {
    const random = seededRandom(7);
    const deviation = new StandardDeviation(20);
    for (let i = 0; i < 100; i++) deviation.next(i === 50 ? 1e8 : 100 + random());
    const calm = Array.from({ length: 100 }, () => 100 + 1e-3 * random());
    const ours = calm.map((value) => [deviation.next(value)]);
    const direct = windows(calm, 20).map((window) => window && getStandardDeviation(window));
    expect(firstDifference(ours, direct)).toBeUndefined();
    for (let i = 0; i < 20; i++) deviation.next(100.1);
    expect(deviation.value).toBe(0);
  });
});

describe('Adx', () => {
  // trading-signals counts the first bar as a zero move, whose weight decays by 13/14 per bar, and a
  // move as far up as down in both directions, which does not occur in full-precision prices.
  test('agrees with trading-signals once the different start has no effect', () => {
    const bars = randomMarket(11, 3000);
    const theirs = new ADX(14);
    const settled = bars.map((bar, index) => {
      const adx = theirs.add(bar);
      return index < 600 ? null : [adx!, 100 * theirs.pdi!, 100 * theirs.mdi!];
    });
    expect(firstDifference(record(start.adx(14), bars), settled)).toBeUndefined();
  });

  test('follows the sums in Wilder’s book from the first bar on', () => {
    const bars = centMarket(13, 500);
    expect(firstDifference(record(start.adx(14), bars), adxByTheBook(bars, 14))).toBeUndefined();
  });

  test('has no direction if a move is as far up as down', () => {
    const adx = new Adx(1);
    adx.next(10, 9, 9.5);
    adx.next(11, 8, 9.5);
    expect([adx.value, adx.plusDi, adx.minusDi]).toEqual([0, 0, 0]);
  });

  test('is entirely positive for a steady rise', () => {
    const adx = new Adx(5);
    for (let i = 0; i < 10; i++) adx.next(10 + i, 9 + i, 10 + i);
    expect([adx.value, adx.plusDi, adx.minusDi]).toEqual([100, 100, 0]);
  });
});

describe('by definition,', () => {
  test('Rsi is 100 on gains alone, 0 on losses alone and 50 without movement', () => {
    const after = (prices: readonly number[]): number => {
      const rsi = new Rsi(3);
      prices.forEach((close) => rsi.next(close));
      return rsi.value;
    };
    expect(after([1, 2, 3, 3.5])).toBe(100);
    expect(after([4, 3, 2, 1])).toBe(0);
    expect(after([7, 7, 7, 7, 7])).toBe(50);
    expect(after([1, 2, 1, 1])).toBe(50);
  });

  test('Stochastic is 50 in a window without range', () => {
    const stochastic = start.stochastic(3, 2, 2);
    expect(record(stochastic, flatMarket(5)).at(-1)).toEqual([50, 50, 50]);
  });

  test('ZScore and Correlation are 0 in a flat window, also just after an outlier', () => {
    const [zScore, correlation] = [new ZScore(5), new Correlation(5)];
    const random = seededRandom(8);
    for (const close of [1, 2, 1e5, 3, 0.1, 0.1, 0.1, 0.1, 0.1]) {
      zScore.next(close);
      correlation.next(close, random());
    }
    expect([zScore.value, correlation.value]).toEqual([0, 0]);
  });

  test('Obv starts at 0 and ignores bars with an unchanged close', () => {
    const obv = new Obv();
    const steps = [
      [10, 500],
      [11, 100],
      [11, 70],
      [10, 30],
    ] as const;
    expect(steps.map(([close, volume]) => obv.next(close, volume))).toEqual([0, 100, 100, 70]);
  });

  test('Vwap restarts at midnight UTC and equals the price until the first volume', () => {
    const vwap = start.vwap();
    const midnight = Date.UTC(2024, 0, 2);
    const bars = [
      barAt(midnight - 2, 10, 1),
      barAt(midnight - 1, 20, 3),
      barAt(midnight, 30, 0),
      barAt(midnight + 1, 31, 0),
      barAt(midnight + 2, 40, 2),
      barAt(midnight + 3, 60, 2),
    ];
    expect(record(vwap, bars).flat()).toEqual([10, 17.5, 30, 31, 40, 50]);
  });

  test('Atr extends a range to the previous close', () => {
    const atr = new Atr(1);
    expect(atr.next(10, 9, 9)).toBe(1);
    expect(atr.next(15, 13, 14)).toBe(6);
    expect(atr.next(12, 11, 11)).toBe(3);
  });

  test('an indicator of another starts when the other becomes ready', () => {
    const [rsi, average] = [new Rsi(3), new Sma(2)];
    const chained = [1, 2, 1, 2, 1, 2].map((close) => average.next(rsi.next(close)));
    expect(chained.map(Number.isNaN)).toEqual([true, true, true, true, false, false]);
  });
});

describe('bounds', () => {
  const price = fc.integer({ min: 1, max: 1e8 }).map((cents) => cents / 100);
  const barsOf = fc
    .array(fc.tuple(price, price, price, fc.double({ min: 0, max: 1e9, noNaN: true })), {
      minLength: 1,
      maxLength: 120,
    })
    .map((tuples) =>
      tuples.map(([a, b, c, volume], index): Bar => {
        const [low, close, high] = [a, b, c].sort((x, y) => x - y) as [number, number, number];
        return { time: index * 3_600_000, open: close, high, low, close, volume };
      }),
    );
  const period = fc.integer({ min: 2, max: 30 });

  test.each([
    ['Rsi', 0, 100, start.rsi],
    ['Adx', 0, 100, start.adx],
    ['Stochastic', 0, 100, (n: number) => start.stochastic(n, 3, 2)],
    ['Correlation', -1, 1, start.correlation],
    ['StandardDeviation', 0, 1e6, start.deviation],
  ])('%s stays within %d and %d', (_, min, max, begin) => {
    fc.assert(
      fc.property(barsOf, period, (bars, n) => {
        for (const output of record(begin(n), bars).flat()) {
          expect(Number.isNaN(output) || (output >= min && output <= max)).toBe(true);
        }
      }),
    );
  });

  test('ZScore stays within the root of the period less one', () => {
    fc.assert(
      fc.property(barsOf, period, (bars, n) => {
        const bound = Math.sqrt(n - 1) * (1 + 1e-6);
        record(start.zScore(n), bars).forEach(([output], index) => {
          const window = bars.slice(Math.max(0, index + 1 - n), index + 1).map((bar) => bar.close);
          // The difference of nearly equal prices is mostly rounding.
          const differ = Math.max(...window) - Math.min(...window) > 1e-6 * Math.max(...window);
          expect(differ && Math.abs(output!) > bound).toBe(false);
        });
      }),
    );
  });

  test('Donchian is the highest high and the lowest low, including the newest bar', () => {
    fc.assert(
      fc.property(barsOf, period, (bars, n) => {
        const donchian = new Donchian(n);
        bars.forEach((bar, index) => {
          donchian.next(bar.high, bar.low);
          if (index + 1 < n) return;
          const window = bars.slice(index + 1 - n, index + 1);
          expect(donchian.upper).toBe(Math.max(...window.map((it) => it.high)));
          expect(donchian.lower).toBe(Math.min(...window.map((it) => it.low)));
          expect(donchian.upper >= bar.close && bar.close >= donchian.lower).toBe(true);
        });
      }),
    );
  });

  test('Correlation of a series with a multiple of itself is 1 or −1', () => {
    fc.assert(
      fc.property(fc.array(price, { minLength: 30, maxLength: 30 }), (values) => {
        fc.pre(values.at(-1) !== values.at(-2));
        const [same, opposite] = [new Correlation(5), new Correlation(5)];
        for (const value of values) {
          same.next(value, 2 * value);
          opposite.next(value, -value);
        }
        expect(same.value).toBeCloseTo(1, 9);
        expect(opposite.value).toBeCloseTo(-1, 9);
      }),
    );
  });
});

describe('Crossover', () => {
  test.each([
    ['above from below', [1, 3], [2, 2], [0, 1]],
    ['above from equal', [2, 3], [2, 2], [0, 1]],
    ['below from above', [3, 1], [2, 2], [0, -1]],
    ['below from equal', [2, 1], [2, 2], [0, -1]],
    ['a touch is no crossing, leaving it again is one', [3, 2, 3], [2, 2, 2], [0, 0, 1]],
    ['staying above', [3, 4], [2, 2], [0, 0]],
    ['above on the first step', [3], [2], [0]],
    ['above on the first step at which both are numbers', [1, 3], [NaN, 2], [0, 0]],
    ['a missing step in between', [1, NaN, 3, 1], [2, 2, 2, 2], [0, 0, 0, -1]],
  ])('reports crossings and nothing else: %s', (_, a, b, expected) => {
    const crossover = new Crossover();
    expect(a.map((value, index) => crossover.next(value, b[index]!))).toEqual(expected);
  });
});

const channel = (it: { upper: number; middle: number; lower: number } | null): Output =>
  it && [it.middle, it.upper, it.middle, it.lower];

const utcDate = (bar: Bar | undefined): string | undefined =>
  bar && new Date(bar.time).toISOString().slice(0, 10);

/** Distance of `mean` from the exact mean of positive values, computed with integers. */
function relativeErrorOfMean(mean: number, values: readonly number[]): number {
  const whole = (x: number): bigint => BigInt(x * 2 ** 80);
  const sum = values.reduce((total, x) => total + whole(x), 0n);
  return Math.abs(Number(whole(mean) * BigInt(values.length) - sum)) / Number(sum);
}

/** Positive values near 1, with stretches that are a million times higher. */
function jumpySeries(length: number): Float64Array {
  const random = seededRandom(9);
  return Float64Array.from({ length }, (_, index) => {
    const level = index % 1000 < 100 ? 1e6 : 1;
    return level * (0.5 + random());
  });
}

/** Wilder's sums: each step subtracts a `period`-th and adds the new value. */
function adxByTheBook(bars: readonly Bar[], period: number): Output[] {
  let [range, plus, minus, adx] = [0, 0, 0, 0];
  const indices: number[] = [];
  return bars.map((bar, index) => {
    const before = bars[index - 1];
    if (before === undefined) return null;
    const up = bar.high - before.high;
    const down = before.low - bar.low;
    const decay = index <= period ? 1 : 1 - 1 / period;
    range =
      range * decay +
      Math.max(
        bar.high - bar.low,
        Math.abs(bar.high - before.close),
        Math.abs(bar.low - before.close),
      );
    plus = plus * decay + (up > down && up > 0 ? up : 0);
    minus = minus * decay + (down > up && down > 0 ? down : 0);
    if (index < period) return null;
    const [plusDi, minusDi] = [(100 * plus) / range, (100 * minus) / range];
    const dx = (100 * Math.abs(plusDi - minusDi)) / (plusDi + minusDi);
    indices.push(dx);
    if (indices.length < period) return null;
    adx =
      indices.length === period
        ? indices.reduce((sum, each) => sum + each, 0) / period
        : (adx * (period - 1) + dx) / period;
    return [adx, plusDi, minusDi];
  });
}
