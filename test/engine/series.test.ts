/** Indicators that a strategy declares. */
import { describe, expect, it } from 'vitest';
import { Engine } from '../../src/engine/engine.ts';
import { Correlation, correlation } from '../../src/engine/indicators/correlation.ts';
import { Ema, ema } from '../../src/engine/indicators/ema.ts';
import { macd } from '../../src/engine/indicators/macd.ts';
import { Rsi, rsi } from '../../src/engine/indicators/rsi.ts';
import { Sma, sma } from '../../src/engine/indicators/sma.ts';
import { difference, lag, log, ratio } from '../../src/engine/indicators/arithmetic.ts';
import { crossedAbove, crossedBelow, crossing } from '../../src/engine/series/condition.ts';
import type { BarSeries, Series } from '../../src/engine/series/declared-series.ts';
import { mergeTimes } from '../../src/engine/steps.ts';
import { SharedComputations } from '../../src/engine/series/shared-computations.ts';
import { stepsOf } from '../../src/engine/steps.ts';
import { defineStrategy } from '../../src/engine/strategy.ts';
import type { Params } from '../../src/engine/params.ts';
import type { IndicatorContext, StrategyContext, StrategyRun } from '../../src/engine/strategy.ts';
import { allocateBars, barsFromRows } from '../../src/market/bars.ts';
import type { Bars } from '../../src/market/bars.ts';
import { bars, DAY, ENGINE_DEFAULTS, flat, START } from './market.ts';
import { Crossover } from '../../src/engine/indicators/crossover.ts';
import { seededRandom } from './indicator-contract.ts';

interface Script<I> {
  readonly markets: Readonly<Record<string, Bars>>;
  readonly indicators: (context: IndicatorContext) => I;
  readonly create: (context: StrategyContext<Params, I>) => StrategyRun;
  readonly isLive?: boolean;
  readonly computations?: SharedComputations;
}

function run<I>({ markets, indicators, create, isLive = false, computations }: Script<I>): void {
  const histories = Object.entries(markets).map(([symbol, history]) => ({ symbol, bars: history }));
  const engine = new Engine({
    instruments: isLive
      ? histories.map(({ symbol }) => ({ symbol, bars: allocateBars(0) }))
      : histories,
    strategy: defineStrategy({ name: 'x', description: '', params: {}, indicators, create }),
    params: {},
    config: ENGINE_DEFAULTS,
    computations,
  });
  if (!isLive) while (engine.advance(7));
  else {
    for (const step of stepsOf(histories)) {
      engine.append(step);
      engine.advance(1);
    }
  }
}

/** A market in which some steps have no bar. */
function market(seed: number, length: number): Bars {
  const random = seededRandom(seed);
  const rows = Array.from({ length }, (_, index) => {
    const price = 10 + random();
    return [START + index * DAY, price, price, price, price, 1] as const;
  });
  return barsFromRows(rows.filter(() => random() < 0.7));
}

/** Returns the results of `read`, one for each step. */
function seen<I, T>(
  script: Omit<Script<I>, 'create'>,
  read: (context: StrategyContext<Params, I>) => T,
): T[] {
  const values: T[] = [];
  run({ ...script, create: (context) => ({ onBar: () => values.push(read(context)) }) });
  return values;
}

const rising = bars(Array.from({ length: 20 }, (_, i) => [i, i, i, i, 1] as const));

describe.each([
  ['in a backtest', false],
  ['live', true],
])('%s', (_, isLive) => {
  it('an indicator of an indicator has the values of two in a chain', () => {
    const history = market(1, 100);
    const script = {
      markets: { X: history },
      isLive,
      indicators: ({ instruments: [x] }: IndicatorContext) => ema(rsi(x.close, 14), 5),
    };
    const [strength, average] = [new Rsi(14), new Ema(5)];
    const expected = Array.from(history.close, (close) => average.next(strength.next(close)));
    expect(seen(script, ({ indicators }) => indicators.value)).toEqual(expected);
  });

  it('entries that are not finite do not count in an average', () => {
    const history = market(9, 200);
    const holes = history.volume.map((__, at) => (at % 50 < 30 ? 1 : at % 3));
    history.volume.set(holes);
    const script = {
      markets: { X: history },
      isLive,
      indicators: ({ instruments: [x] }: IndicatorContext) => sma(ratio(x.close, x.volume), 3),
    };
    const average = new Sma(3);
    const expected = Array.from(history.close, (close, at) => average.next(close / holes[at]!));
    expect(holes).toContain(0);
    expect(seen(script, ({ indicators }) => indicators.value)).toEqual(expected);
  });

  it('arithmetic on series is that of their entries', () => {
    const history = market(10, 20);
    const script = {
      markets: { X: history },
      isLive,
      indicators: ({ instruments: [{ close, time }] }: IndicatorContext) => [
        ratio(close, time),
        difference(close, time),
        log(close),
        lag(close, 3),
      ],
    };
    const { close, time } = history;
    const expected = Array.from(close, (price, at) => [
      price / time[at]!,
      price - time[at]!,
      Math.log(price),
      close[at - 3] ?? Number.NaN,
    ]);
    const values = seen(script, ({ indicators }) => indicators.map(({ value }) => value));
    expect(values).toEqual(expected);
  });

  it('an indicator of two instruments has an entry where both have a bar, and keeps it otherwise', () => {
    const markets = { A: market(2, 100), B: market(3, 100), C: market(4, 100) };
    const script = {
      markets,
      isLive,
      indicators: ({ instruments: [a, b] }: IndicatorContext) => correlation(a.close, b!.close, 5),
    };
    const own = new Correlation(5);
    const expected: number[] = [];
    seen(script, ({ instruments: [a, b] }) => {
      if (a.fresh && b!.fresh) own.next(a.close, b!.close);
      expected.push(own.value);
    });
    expect(expected.filter((value) => !Number.isNaN(value)).length).toBeGreaterThan(50);
    expect(seen(script, ({ indicators }) => indicators.value)).toEqual(expected);
  });

  it('indicators on different steps can be combined again', () => {
    const markets = { A: market(2, 60), B: market(3, 60), C: market(4, 60) };
    const script = {
      markets,
      isLive,
      indicators: ({ instruments: [a, b, c] }: IndicatorContext) =>
        correlation(correlation(a.close, b!.close, 3), c!.close, 3),
    };
    const [first, second] = [new Correlation(3), new Correlation(3)];
    const expected = seen(script, ({ instruments: [a, b, c] }) => {
      if (a.fresh && b!.fresh) first.next(a.close, b!.close);
      if (a.fresh && b!.fresh && c!.fresh) second.next(first.value, c!.close);
      return second.value;
    });
    expect(expected.at(-1)).not.toBeNaN();
    expect(seen(script, ({ indicators }) => indicators.value)).toEqual(expected);
  });

  it('indicators that combine the same instruments in another order are independent', () => {
    const script = {
      markets: { A: market(2, 60), B: market(3, 60), C: market(4, 60) },
      isLive,
      indicators: ({ instruments: [a, b, c] }: IndicatorContext) => [
        difference(difference(a.close, b!.close), c!.close),
        difference(a.close, difference(b!.close, c!.close)),
      ],
    };
    const latest = [Number.NaN, Number.NaN];
    const expected = seen(script, ({ instruments: [a, b, c] }) => {
      if (a.fresh && b!.fresh && c!.fresh) {
        latest[0] = a.close - b!.close - c!.close;
        latest[1] = a.close - (b!.close - c!.close);
      }
      return [...latest];
    });
    expect(expected.at(-1)).not.toContain(Number.NaN);
    expect(seen(script, ({ indicators }) => indicators.map(({ value }) => value))).toEqual(
      expected,
    );
  });

  it('crossings are those of Crossover, which gets the newest values at every step', () => {
    const script = {
      markets: { A: market(5, 200), B: market(6, 200) },
      isLive,
      indicators: ({ instruments }: IndicatorContext) =>
        instruments.map((one) => sma(one.close, 3)) as [Series, Series],
    };
    const crossover = new Crossover();
    const expected = seen(script, ({ indicators: [a, b] }) => crossover.next(a.value, b.value));
    expect(new Set(expected)).toEqual(new Set([-1, 0, 1]));
    const actual = seen(script, ({ indicators: [a, b] }) => {
      if (crossedAbove(a, b)) return 1;
      return crossedBelow(a, b) ? -1 : 0;
    });
    expect(actual).toEqual(expected);
  });
});

it('a series is NaN in create and until its indicator is ready', () => {
  const values: unknown[] = [];
  run({
    markets: { X: rising },
    indicators: ({ instruments: [x] }) => ({ close: x.close, average: sma(x.close, 3) }),
    create({ indicators: { close, average } }) {
      const read = (): unknown => values.push([close.value, average.value, average.ready]);
      read();
      return { onBar: read };
    },
  });
  expect(values.slice(0, 5)).toEqual([
    [Number.NaN, Number.NaN, false],
    [0, Number.NaN, false],
    [1, Number.NaN, false],
    [2, 1, true],
    [3, 2, true],
  ]);
});

it('ago() reads back to the first bar and never ahead', () => {
  const script = {
    markets: { X: rising },
    indicators: ({ instruments: [x] }: IndicatorContext) => x.close,
  };
  const values = seen(script, ({ indicators: close }) => [0, 1, 5].map((n) => close.ago(n)));
  expect(values[0]).toEqual([0, Number.NaN, Number.NaN]);
  expect(values[9]).toEqual([9, 8, 4]);
  for (const count of [-1, 0.5, Number.NaN]) {
    expect(() => seen(script, ({ indicators }) => indicators.ago(count))).toThrow(
      `ago: entries must be a whole number of at least 0, not ${count}`,
    );
  }
});

it('equal declarations are one series', () => {
  seen(
    {
      markets: { X: rising, Y: rising },
      indicators: ({ instruments: [x, y] }) => {
        expect(ema(sma(x.close, 3), 4)).toBe(ema(sma(x.close, 3), 4));
        expect(macd(x.close).signal).toBe(macd(x.close, 12, 26, 9).signal);
        const close = [x.open, y!.close, x.close].map((one) => sma(one, 3));
        expect(new Set([...close, sma(x.close, 4), ema(x.close, 3)]).size).toBe(5);
      },
    },
    () => {},
  );
});

it('runs over the same bars share their computations, also after a run that ended early', () => {
  const computations = new SharedComputations();
  const [x, y] = [market(7, 100), market(8, 100)];
  const script = (period: number, shared?: SharedComputations) => ({
    markets: { X: x, Y: y },
    ...(shared && { computations: shared }),
    indicators: ({ instruments: [first, second] }: IndicatorContext) => [
      sma(first.close, 3),
      sma(first.close, period),
      correlation(first.close, second!.close, period),
    ],
  });
  const values = (period: number, shared?: SharedComputations): number[][] =>
    seen(script(period, shared), ({ indicators }) => indicators.map(({ value }) => value));
  let steps = 0;
  expect(() =>
    seen(script(5, computations), () => {
      steps += 1;
      if (steps === 30) throw new Error('early');
    }),
  ).toThrow('early');
  const times = computations.timesOf([x, y]);
  expect(times).toEqual(mergeTimes([x, y]));
  expect(values(5, computations)).toEqual(values(5));
  expect(computations.timesOf([x, y])).toBe(times);
  const { bytes } = computations;
  expect(values(6, computations)).toEqual(values(6));
  // Two more columns; that of the correlation has as many entries as the shorter history.
  expect(computations.bytes - bytes).toBe(8 * (x.length + Math.min(x.length, y.length)));
});

it('a run drops the oldest columns of earlier runs beyond a bound, and computes them again', () => {
  const history = market(7, 100);
  const three = 3 * 8 * history.length;
  const computations = new SharedComputations(three);
  const values = (periods: readonly number[], shared?: SharedComputations): number[][] =>
    seen(
      {
        markets: { X: history },
        ...(shared && { computations: shared }),
        indicators: ({ instruments: [x] }) => periods.map((period) => sma(x.close, period)),
      },
      ({ indicators }) => indicators.map(({ value }) => value),
    );
  for (const periods of [[2, 3], [3, 4], [5], [2, 3], [2, 3, 4, 5, 6]]) {
    expect(values(periods, computations)).toEqual(values(periods));
    expect(computations.bytes).toBeLessThanOrEqual(three);
  }
  const known = [4, 5, 6].map((period) => computations.find(`sma(0.close,${period})`));
  expect(known).not.toContain(undefined);
});

describe('a declaration is rejected', () => {
  it('with parameters out of range, as by the class of the indicator', () => {
    const indicators = ({ instruments: [x] }: IndicatorContext): Series => sma(x.close, 0);
    expect(() => seen({ markets: { X: rising }, indicators }, () => {})).toThrow(
      'period must be a whole number of at least 1, not 0',
    );
  });

  it('in the run', () => {
    const indicators = ({ instruments: [x] }: IndicatorContext): BarSeries => x;
    expect(() =>
      seen({ markets: { X: rising }, indicators }, ({ indicators: x }) => sma(x.close, 3)),
    ).toThrow('sma must be declared in indicators(), before the run');
  });

  it('in the run, if it is a condition', () => {
    const indicators = ({ instruments: [x] }: IndicatorContext): Series => x.close;
    expect(() =>
      seen({ markets: { X: rising }, indicators }, ({ indicators: close }) => crossing(close, 3)),
    ).toThrow('conditions belong in wakeOn(); in the run, compare values or use crossedAbove()');
  });

  it('with inputs of another run', () => {
    const closes: Series[] = [];
    const indicators = ({ instruments: [x] }: IndicatorContext): Series[] => {
      closes.push(x.close);
      return [correlation(closes.at(-1)!, closes[0]!, 3)];
    };
    const script = { markets: { X: bars(flat(3)) }, indicators };
    seen(script, () => {});
    expect(() => seen(script, () => {})).toThrow('an indicator has inputs of another run');
  });
});
