/** Indicators that chart programs offer, each with the implementation that it is compared with. */
import {
  AD,
  Aroon as TheirAroon,
  CCI,
  CMF,
  IchimokuCloud,
  LinearRegression as TheirRegression,
  MFI,
  ROC,
  SuperTrend,
  VWAP,
  WilliamsR as TheirWilliamsR,
} from 'trading-signals';
import { HeikinAshi as TheirHeikinAshi, PSAR, TRIX } from 'technicalindicators';
import { describe, expect, test } from 'vitest';
import * as api from '../../src/engine/api.ts';
import type { Indicator } from '../../src/engine/indicators/indicator.ts';
import {
  barAt,
  centMarket,
  indicatorContract,
  randomMarket,
  record,
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

interface ComparedCase extends IndicatorCase {
  readonly oracle: string;
  readonly theirs: (bars: readonly Bar[]) => Output[];
}

type OfClose = Indicator & { next(close: number): number };
type OfRange = Indicator & { next(high: number, low: number, close: number): number };
type OfVolume = Indicator & {
  next(high: number, low: number, close: number, volume: number): number;
};
const ofClose = (indicator: OfClose): RunningIndicator =>
  run(indicator, (it, bar) => it.next(bar.close));
const ofRange = (indicator: OfRange): RunningIndicator =>
  run(indicator, (it, bar) => it.next(bar.high, bar.low, bar.close));
const ofVolume = (indicator: OfVolume): RunningIndicator =>
  run(indicator, (it, bar) => it.next(bar.high, bar.low, bar.close, bar.volume));

/** `values` at the end of as many bars, with null before. */
function atEnd(bars: readonly Bar[], values: readonly Output[]): Output[] {
  return [...Array<null>(bars.length - values.length).fill(null), ...values];
}

const columnsOf = (bars: readonly Bar[]) => ({
  open: bars.map((bar) => bar.open),
  high: bars.map((bar) => bar.high),
  low: bars.map((bar) => bar.low),
  close: closes(bars),
});

const CASES: readonly ComparedCase[] = [
  {
    name: 'RateOfChange(12)',
    readyAt: 13,
    start: () => ofClose(new api.RateOfChange(12)),
    declare: (bars) => [api.rateOfChange(bars.close, 12)],
    refused: refusedPeriods('period', (bad) => new api.RateOfChange(bad)),
    oracle: 'trading-signals',
    theirs: (bars) =>
      new ROC(12).updates(closes(bars)).map((share) => (share === null ? null : 100 * share)),
  },
  {
    name: 'WilliamsR(14)',
    readyAt: 14,
    start: () => ofRange(new api.WilliamsR(14)),
    declare: (bars) => [api.williamsR(bars)],
    refused: refusedPeriods('period', (bad) => new api.WilliamsR(bad)),
    oracle: 'trading-signals',
    theirs: (bars) => new TheirWilliamsR(14).updates(bars),
  },
  {
    name: 'Cci(20)',
    readyAt: 20,
    start: () => ofRange(new api.Cci(20)),
    declare: (bars) => [api.cci(bars)],
    refused: [
      ...refusedPeriods('period', (bad) => new api.Cci(bad)),
      ['period', () => new api.Cci(1)],
    ],
    oracle: 'trading-signals',
    // In a flat window, rounding errors divided by rounding errors.
    theirs: (bars) => new CCI(20).updates(bars).map((x) => (Math.abs(x ?? 1) < 1e-9 ? 0 : x)),
  },
  {
    name: 'Mfi(14)',
    readyAt: 15,
    start: () => ofVolume(new api.Mfi(14)),
    declare: (bars) => [api.mfi(bars)],
    refused: refusedPeriods('period', (bad) => new api.Mfi(bad)),
    oracle: 'trading-signals',
    theirs: (bars) => new MFI(14).updates(bars),
  },
  {
    name: 'Aroon(25)',
    readyAt: 26,
    start: () =>
      run(
        new api.Aroon(25),
        (it, bar) => it.next(bar.high, bar.low),
        (it) => [it.up, it.down],
      ),
    declare: (bars) => seriesOf(api.aroon(bars), 'oscillator', 'up', 'down'),
    refused: refusedPeriods('period', (bad) => new api.Aroon(bad)),
    oracle: 'trading-signals',
    theirs: (bars) =>
      new TheirAroon(25)
        .updates(bars)
        .map((it) => it && [it.aroonUp - it.aroonDown, it.aroonUp, it.aroonDown]),
  },
  {
    name: 'Ichimoku(9, 26, 52)',
    readyAt: 52,
    start: () =>
      run(
        new api.Ichimoku(9, 26, 52),
        (it, bar) => it.next(bar.high, bar.low),
        (it) => [it.base, it.spanA, it.spanB],
      ),
    declare: (bars) => seriesOf(api.ichimoku(bars), 'conversion', 'base', 'spanA', 'spanB'),
    refused: [
      ...refusedPeriods('conversion', (bad) => new api.Ichimoku(bad, 26, 52)),
      ...refusedPeriods('base', (bad) => new api.Ichimoku(9, bad, 52)),
      ...refusedPeriods('span', (bad) => new api.Ichimoku(9, 26, bad)),
    ],
    oracle: 'trading-signals',
    theirs: (bars) =>
      new IchimokuCloud()
        .updates(bars)
        .map((it) => it && [it.conversion, it.base, it.spanA, it.spanB]),
  },
  {
    name: 'Supertrend(10, 3)',
    readyAt: 10,
    start: () =>
      run(
        new api.Supertrend(10, 3),
        (it, bar) => it.next(bar.high, bar.low, bar.close),
        (it) => [it.direction],
      ),
    declare: (bars) => seriesOf(api.supertrend(bars), 'stop', 'direction'),
    refused: [
      ...refusedPeriods('period', (bad) => new api.Supertrend(bad, 3)),
      ['multiplier', () => new api.Supertrend(10, 0)],
    ],
    oracle: 'trading-signals',
    theirs: (bars) =>
      new SuperTrend({ interval: 10, multiplier: 3 })
        .updates(bars)
        .map((it) => it && [it.supertrend, it.trend === 'BULLISH' ? 1 : -1]),
  },
  {
    name: 'ParabolicSar(0.02, 0.2)',
    readyAt: 2,
    start: () =>
      run(
        new api.ParabolicSar(0.02, 0.2),
        (it, bar) => it.next(bar.high, bar.low),
        (it) => [it.direction],
      ),
    declare: (bars) => seriesOf(api.parabolicSar(bars), 'stop', 'direction'),
    refused: [
      ['step', () => new api.ParabolicSar(0, 0.2)],
      ['step', () => new api.ParabolicSar(0.3, 0.2)],
      ['maximum', () => new api.ParabolicSar(0.02, Number.NaN)],
    ],
    // It assumes that the market rises at first, which has no effect after reversals.
    oracle: 'technicalindicators, after the first bars',
    theirs: (bars) => {
      const { high, low } = columnsOf(bars);
      const stops = PSAR.calculate({ high, low, step: 0.02, max: 0.2 });
      return atEnd(bars, stops).map((stop, at) => (at < 200 ? null : stop));
    },
  },
  {
    name: 'Pivots',
    readyAt: 'second day',
    start: () =>
      run(
        new api.Pivots(),
        (it, bar) => it.next(bar.time, bar.high, bar.low, bar.close),
        (it) => [it.r1, it.s1, it.r2, it.s2],
      ),
    declare: (bars) => seriesOf(api.pivots(bars), 'pivot', 'r1', 's1', 'r2', 's2'),
    refused: [],
    oracle: 'the definition',
    theirs: (bars) =>
      bars.map(({ time }) => {
        const day = Math.floor(time / 86_400_000);
        const before = bars.filter((bar) => Math.floor(bar.time / 86_400_000) === day - 1);
        if (before.length === 0) return null;
        const high = Math.max(...before.map((bar) => bar.high));
        const low = Math.min(...before.map((bar) => bar.low));
        const pivot = (high + low + before.at(-1)!.close) / 3;
        return [pivot, 2 * pivot - low, 2 * pivot - high, pivot + high - low, pivot - high + low];
      }),
  },
  {
    name: 'HeikinAshi',
    readyAt: 1,
    start: () =>
      run(
        new api.HeikinAshi(),
        (it, bar) => it.next(bar.open, bar.high, bar.low, bar.close),
        (it) => [it.open, it.high, it.low],
      ),
    declare: (bars) => seriesOf(api.heikinAshi(bars), 'close', 'open', 'high', 'low'),
    refused: [],
    oracle: 'technicalindicators',
    theirs: (bars) => {
      const { open, high, low, close } = TheirHeikinAshi.calculate(columnsOf(bars));
      return bars.map((_, at) => [close![at]!, open![at]!, high![at]!, low![at]!]);
    },
  },
  {
    name: 'LinearRegression(20)',
    readyAt: 20,
    start: () =>
      run(
        new api.LinearRegression(20),
        (it, bar) => it.next(bar.close),
        (it) => [it.slope],
      ),
    declare: (bars) => seriesOf(api.linearRegression(bars.close, 20), 'end', 'slope'),
    refused: [
      ...refusedPeriods('period', (bad) => new api.LinearRegression(bad)),
      ['period', () => new api.LinearRegression(1)],
    ],
    // Their prediction is for the next bar.
    oracle: 'trading-signals',
    theirs: (bars) =>
      new TheirRegression(20)
        .updates(closes(bars))
        .map((it) => it && [it.prediction - it.slope, it.slope]),
  },
  {
    name: 'Trix(9)',
    readyAt: 26,
    start: () => ofClose(new api.Trix(9)),
    declare: (bars) => [api.trix(bars.close, 9)],
    refused: refusedPeriods('period', (bad) => new api.Trix(bad)),
    oracle: 'technicalindicators',
    theirs: (bars) => atEnd(bars, TRIX.calculate({ values: closes(bars), period: 9 })),
  },
  {
    name: 'ChaikinMoneyFlow(20)',
    readyAt: 20,
    start: () => ofVolume(new api.ChaikinMoneyFlow(20)),
    declare: (bars) => [api.chaikinMoneyFlow(bars)],
    refused: refusedPeriods('period', (bad) => new api.ChaikinMoneyFlow(bad)),
    oracle: 'trading-signals',
    theirs: (bars) => new CMF(20).updates(bars),
  },
  {
    name: 'ChaikinOscillator(3, 10)',
    readyAt: 10,
    start: () => ofVolume(new api.ChaikinOscillator(3, 10)),
    declare: (bars) => [api.chaikinOscillator(bars)],
    refused: [
      ...refusedPeriods('fast', (bad) => new api.ChaikinOscillator(bad, 10)),
      ...refusedPeriods('slow', (bad) => new api.ChaikinOscillator(3, bad)),
      ['fast', () => new api.ChaikinOscillator(10, 10)],
    ],
    oracle: 'trading-signals, with averages started from a mean',
    theirs: (bars) => {
      const line = new AD().updates(bars) as number[];
      const slow = new MeanSeededEma(10).updates(line);
      const fast = new MeanSeededEma(3).updates(line);
      return slow.map((value, at) => (value === null ? null : fast[at]! - value));
    },
  },
  {
    name: 'PercentileRank(30)',
    readyAt: 31,
    start: () => ofClose(new api.PercentileRank(30)),
    declare: (bars) => [api.percentileRank(bars.close, 30)],
    refused: refusedPeriods('period', (bad) => new api.PercentileRank(bad)),
    oracle: 'the definition',
    theirs: (bars) =>
      windows(closes(bars), 31).map(
        (window) => window && window.slice(0, -1).filter((x) => x <= window.at(-1)!).length / 0.3,
      ),
  },
  {
    name: 'Hurst(64)',
    readyAt: 65,
    start: () => ofClose(new api.Hurst(64)),
    declare: (bars) => [api.hurst(bars.close, 64)],
    refused: [
      ...refusedPeriods('period', (bad) => new api.Hurst(bad)),
      ['period', () => new api.Hurst(15)],
    ],
    oracle: 'the definition',
    theirs: (bars) =>
      windows(closes(bars), 65).map((window) => window && rescaledRangeSlope(window)),
  },
  {
    name: 'Kalman(0.1, 2)',
    readyAt: 1,
    start: () => ofClose(new api.Kalman(0.1, 2)),
    declare: (bars) => [api.kalman(bars.close, 0.1, 2)],
    refused: [
      ['process', () => new api.Kalman(0, 1)],
      ['measurement', () => new api.Kalman(1, -1)],
    ],
    oracle: 'the exponential average that it becomes',
    theirs: (bars) => {
      // The steady gain is the root of gain² / (1 − gain) = process / measurement.
      const ratio = 0.1 / 2;
      const gain = (Math.sqrt(ratio * ratio + 4 * ratio) - ratio) / 2;
      let level = bars[0]!.close;
      return bars.map(({ close }, at) => {
        level += gain * (close - level);
        return at < 400 ? null : level;
      });
    },
  },
  {
    name: 'Vwap(570)',
    readyAt: 1,
    start: () =>
      run(new api.Vwap(570), (it, bar) =>
        it.next(bar.time, bar.high, bar.low, bar.close, bar.volume),
      ),
    declare: (bars) => [api.vwap(bars, 570)],
    refused: [-1, 1440, Number.NaN].map((bad) => ['sessionStart', () => new api.Vwap(bad)]),
    oracle: 'trading-signals, restarted at 09:30 of each day',
    theirs: (bars) => {
      const dayOf = (bar: Bar | undefined): number =>
        Math.floor((bar?.time ?? -1) / 86_400_000 - 570 / 1440);
      let theirs = new VWAP();
      return bars.map((bar, at) => {
        if (dayOf(bar) !== dayOf(bars[at - 1])) theirs = new VWAP();
        return theirs.add(bar);
      });
    },
  },
];

CASES.forEach(indicatorContract);

describe.each([
  ['a random market', randomMarket(11, 1000)],
  ['a market in cents with gaps and halts', centMarket(12, 1000)],
])('in %s', (_, bars) => {
  test.each(CASES)('$name has the outputs of $oracle', ({ start, theirs }) => {
    expect(firstDifference(record(start(), bars), theirs(bars))).toBeUndefined();
  });
});

/** Hurst exponent of the changes of `values`, straight from its definition. */
function rescaledRangeSlope(values: readonly number[]): number {
  const changes = values.slice(1).map((x, at) => x - values[at]!);
  const points: [number, number][] = [];
  for (let length = changes.length; length >= 8; length = Math.floor(length / 2)) {
    const ranges: number[] = [];
    for (let end = changes.length; end >= length; end -= length) {
      const stretch = changes.slice(end - length, end);
      const mean = stretch.reduce((sum, x) => sum + x, 0) / length;
      const path = [0];
      for (const x of stretch) path.push(path.at(-1)! + x - mean);
      const variance = stretch.reduce((sum, x) => sum + (x - mean) ** 2, 0) / length;
      if (variance > 0) ranges.push((Math.max(...path) - Math.min(...path)) / Math.sqrt(variance));
    }
    const average = ranges.reduce((sum, x) => sum + x, 0) / ranges.length;
    if (ranges.length > 0) points.push([Math.log(length), Math.log(average)]);
  }
  return slopeOf(points);
}

/** Slope of the line through the points with the least squares. */
function slopeOf(points: readonly (readonly [number, number])[]): number {
  const [x, y] = [0, 1].map((i) => points.reduce((sum, p) => sum + p[i]!, 0) / points.length);
  const covariance = points.reduce((sum, p) => sum + (p[0] - x!) * (p[1] - y!), 0);
  return covariance / points.reduce((sum, p) => sum + (p[0] - x!) ** 2, 0);
}

describe('Kalman', () => {
  // Annual flow of the Nile at Aswan, 1871 to 1970, 10⁸ m³.
  const NILE = [
    1120, 1160, 963, 1210, 1160, 1160, 813, 1230, 1370, 1140, 995, 935, 1110, 994, 1020, 960, 1180,
    799, 958, 1140, 1100, 1210, 1150, 1250, 1260, 1220, 1030, 1100, 774, 840, 874, 694, 940, 833,
    701, 916, 692, 1020, 1050, 969, 831, 726, 456, 824, 702, 1120, 1100, 832, 764, 821, 768, 845,
    864, 862, 698, 845, 744, 796, 1040, 759, 781, 865, 845, 944, 984, 897, 822, 1010, 771, 676, 649,
    846, 812, 742, 801, 1040, 860, 874, 848, 890, 744, 749, 838, 1050, 918, 986, 797, 923, 975, 815,
    1020, 906, 901, 1170, 912, 746, 919, 718, 714, 740,
  ];

  test('has the published levels of the Nile', () => {
    const filter = new api.Kalman(1469.1, 15_099);
    const levels = NILE.map((flow) => filter.next(flow));
    expect(levels.slice(0, 2).map((level) => level.toFixed(1))).toEqual(['1120.0', '1140.9']);
    expect(levels.at(-1)!.toFixed(2)).toBe('798.37');
  });
});

describe('published results', () => {
  test('Hurst has the exponent of the logistic map in the manual of pracma 2.4', () => {
    const values = [0.1];
    while (values.length < 1024) values.push(4 * values.at(-1)! * (1 - values.at(-1)!));
    const indicator = new api.Hurst(1024);
    let sum = 0;
    indicator.next(sum);
    for (const value of values) indicator.next((sum += value));
    // `hurstexp` divides by the standard deviation of a sample, which raises each length by a known factor.
    const lengths = Array.from({ length: 8 }, (_, halved) => 1024 / 2 ** halved);
    const raised = slopeOf(lengths.map((n) => [Math.log(n), Math.log((n - 1) / n) / 2]));
    expect((indicator.value + raised).toFixed(7)).toBe('0.5067766');
  });

  test('Pivots has the levels of MarketTechnicals.jl after 1970-01-02 of the S&P 500', () => {
    const pivots = new api.Pivots();
    pivots.next(0, 93.54, 91.79, 93);
    pivots.next(86_400_000, 93.25, 92.53, 93.04);
    const { pivot, r1, s1, r2, s2 } = pivots;
    const published = [
      92.77666666666669, 93.76333333333336, 92.01333333333336, 94.52666666666669, 91.02666666666669,
    ];
    for (const [at, level] of [pivot, r1, s1, r2, s2].entries()) {
      expect(level).toBeCloseTo(published[at]!, 11);
    }
  });

  test('PercentileRank has the ranks of scipy.stats.percentileofscore', () => {
    const ranksOf = (values: readonly number[], period: number): number[] => {
      const indicator = new api.PercentileRank(period);
      return values.map((value) => indicator.next(value)).slice(period);
    };
    // The example of its manual for kind="weak".
    expect(ranksOf([1, 2, 3, 3, 4, 3], 5)).toEqual([80]);
    // Computed with scipy 1.17.1.
    const values = Array.from({ length: 30 }, (_, at) => (7 * at * at) % 11);
    expect(ranksOf(values, 8)).toEqual([
      75, 37.5, 50, 0, 62.5, 37.5, 87.5, 25, 100, 100, 25, 75, 37.5, 50, 0, 62.5, 37.5, 87.5, 25,
      100, 100, 25,
    ]);
  });
});

describe('by definition,', () => {
  test('the Hurst exponent of a flat market is 0.5', () => {
    const flat = new api.Hurst(16);
    for (let at = 0; at < 20; at++) flat.next(100);
    expect(flat.value).toBe(0.5);
  });

  test('Pivots are those of the last day with bars', () => {
    const pivots = new api.Pivots();
    const day = 86_400_000;
    for (const bar of [barAt(0, 9, 1), barAt(1, 12, 1), barAt(2, 9, 1), barAt(3 * day, 50, 1)]) {
      pivots.next(bar.time, bar.high, bar.low, bar.close);
    }
    const { pivot, r1, s1, r2, s2 } = pivots;
    expect([pivot, r1, s1, r2, s2]).toEqual([10, 11, 8, 13, 7]);
  });

  test('WilliamsR is −50 in a window without range', () => {
    const indicator = new api.WilliamsR(3);
    for (let at = 0; at < 3; at++) indicator.next(7, 7, 7);
    expect(indicator.value).toBe(-50);
  });

  test('Mfi is 50 and ChaikinMoneyFlow 0 without volume', () => {
    const [mfi, flow] = [new api.Mfi(2), new api.ChaikinMoneyFlow(2)];
    for (const price of [1, 2, 3]) {
      mfi.next(price, price, price, 0);
      flow.next(price + 1, price, price, 0);
    }
    expect([mfi.value, flow.value]).toEqual([50, 0]);
  });
});
