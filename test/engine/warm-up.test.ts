/** Declared indicators that begin before the run. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { declaredIndicators } from '../../src/engine/declared-indicators.ts';
import { Engine } from '../../src/engine/engine.ts';
import { earlierParts } from '../../src/engine/earlier-bars.ts';
import type { EngineInstrument } from '../../src/engine/engine-setup.ts';
import { correlation } from '../../src/engine/indicators/correlation.ts';
import { ema } from '../../src/engine/indicators/ema.ts';
import { macd } from '../../src/engine/indicators/macd.ts';
import { obv } from '../../src/engine/indicators/obv.ts';
import { pivots } from '../../src/engine/indicators/pivots.ts';
import { ratio } from '../../src/engine/indicators/arithmetic.ts';
import { rsi } from '../../src/engine/indicators/rsi.ts';
import type { RunState } from '../../src/engine/run-state.ts';
import { historyNeeds } from '../../src/engine/history-need.ts';
import { above, any, crossedAbove, crossing, every } from '../../src/engine/series/condition.ts';
import type { BarSeries } from '../../src/engine/series/declared-series.ts';
import { barsOf } from '../../src/engine/series/warm-up.ts';
import { defineStrategy } from '../../src/engine/strategy.ts';
import { stepsOf } from '../../src/engine/steps.ts';
import { allocateBars, barsFromRows, sliceBars, type Bars } from '../../src/market/bars.ts';
import { sma } from '../../src/engine/indicators/sma.ts';
import { collectGarbage } from '../collect-garbage.ts';
import { seededRandom } from './indicator-contract.ts';
import { DAY, ENGINE_DEFAULTS, START } from './market.ts';
import { isAtLength } from '../length.ts';

/** A random walk in which some days have no bar. */
function market(seed: number, days: number): Bars {
  const random = seededRandom(seed);
  let price = 50;
  const rows = Array.from({ length: days }, (_, day) => {
    price *= 1 + 0.06 * (random() - 0.5);
    const volume = Math.round(1000 * random());
    return [START + day * DAY, price, price * 1.01, price * 0.99, price, volume] as const;
  });
  return barsFromRows(rows.filter(() => random() < 0.8));
}

/** Orders where averages cross, or two markets move together, from `begin` on. */
function strategyFrom(begin: number, isWaking: boolean) {
  return defineStrategy({
    name: 'crosser',
    description: 'Trades from a given time on.',
    params: {},
    indicators: ({ instruments }) => {
      const [first] = instruments;
      const last = instruments.at(-1)!;
      return {
        fast: ema(rsi(first.close, 3), 2),
        slow: macd(first.close, 2, 4, 3).signal,
        balance: obv(first),
        likeness: correlation(first.close, ratio(first.close, last.open), 4),
      };
    },
    wakeOn: ({ fast, balance, likeness }) =>
      isWaking ? any(crossing(fast, 50), above(balance, 0), above(likeness, 0.5)) : every(1),
    create({ indicators: { fast, slow, balance, likeness }, instruments: [asset], broker }) {
      return {
        onBar() {
          if (asset.time < begin || !asset.fresh) return;
          if (crossedAbove(fast, 50)) broker.target(asset, slow.value > 0 ? 1 : 0.5);
          else if (likeness.value > 0.5 || balance.value > 0) broker.target(asset, 0);
        },
      };
    },
  });
}

interface Run {
  readonly lines: readonly string[];
  readonly equity: readonly number[];
}

function run(
  instruments: readonly EngineInstrument[],
  begin: number,
  { isWaking = false, isLive = false }: { isWaking?: boolean; isLive?: boolean } = {},
): Run {
  const strategy = strategyFrom(begin, isWaking);
  const setup = { strategy, params: {}, config: ENGINE_DEFAULTS };
  const engine = new Engine({
    ...setup,
    instruments: isLive
      ? instruments.map(({ symbol }) => ({ symbol, bars: allocateBars(0) }))
      : instruments,
  });
  if (isLive) {
    for (const part of earlierParts(instruments)) engine.warmUp(part);
    for (const step of stepsOf(instruments)) {
      engine.append(step);
      engine.advance(1);
    }
  } else while (engine.advance(11));
  const { journal, equity, time } = engine.result();
  const from = time.findIndex((at) => at >= begin);
  return {
    lines: [...journal.events()].map((event) => JSON.stringify(event)),
    equity: [...equity.subarray(from)],
  };
}

function cut(symbol: string, bars: Bars, begin: number): EngineInstrument {
  const first = bars.time.findIndex((time) => time >= begin);
  return {
    symbol,
    bars: sliceBars(bars, first, bars.length),
    warmUp: sliceBars(bars, 0, first),
  };
}

it('a run with earlier bars equals a run over all bars that does not trade before its start', () => {
  let fills = 0;
  fc.assert(
    fc.property(fc.nat(), fc.integer({ min: 0, max: 40 }), fc.boolean(), (seed, days, isPair) => {
      const markets = [market(seed, 80), ...(isPair ? [market(seed + 1, 80)] : [])];
      const whole = markets.map((bars, index) => ({ symbol: `S${index}`, bars }));
      const begin = START + days * DAY;
      const parts = whole.map(({ symbol, bars }) => cut(symbol, bars, begin));
      const idle = run(whole, begin);
      fills += idle.lines.length;
      expect(run(parts, begin)).toEqual(idle);
      expect(run(parts, begin, { isWaking: true })).toEqual(idle);
      expect(run(parts, begin, { isLive: true })).toEqual(idle);
      expect(run(parts, begin, { isLive: true, isWaking: true })).toEqual(idle);
    }),
  );
  expect(fills).toBeGreaterThan(100);
});

it.runIf(isAtLength)(
  'a run releases its copy of the bars before it at its first step',
  async () => {
    const { bars, warmUp } = cut('X', market(1, 20), START + 9 * DAY);
    const engine = new Engine({
      instruments: [{ symbol: 'X', bars: allocateBars(0) }],
      strategy: strategyFrom(0, false),
      params: {},
      config: ENGINE_DEFAULTS,
    });
    engine.warmUp({ bars: { X: warmUp! } });
    const copy = new WeakRef((engine.run as RunState).withWarmUp[0]!.time);
    for (const step of [...stepsOf([{ symbol: 'X', bars }])].slice(0, 2)) {
      engine.append(step);
      engine.advance(1);
    }
    await collectGarbage();
    expect(copy.deref()).toBeUndefined();
  },
);

it('bars before the run are rejected after its first step', () => {
  const { bars, warmUp } = cut('X', market(1, 20), START + 9 * DAY);
  const engine = new Engine({
    instruments: [{ symbol: 'X', bars }],
    strategy: strategyFrom(0, false),
    params: {},
    config: ENGINE_DEFAULTS,
  });
  expect(() => engine.warmUp({ bars: { X: warmUp! } })).toThrow(RangeError);
});

it.each([
  ['24/7', 1 + 24 * 60, 1 + 2 * 24],
  ['XNYS', 1 + 390, 1 + 2 * 7],
] as const)(
  'a day of the calendar %s needs no more bars than it has',
  (calendar, minutes, hours) => {
    const indicators = ({ instruments: [asset] }: { instruments: readonly BarSeries[] }) => [
      pivots(asset!),
      pivots(asset!.on('1h')),
    ];
    const kind = { timeframe: '1m', calendar } as const;
    const declared = declaredIndicators({ name: 'x', indicators }, {}, ['A'], kind);
    const needs = historyNeeds(declared, kind, 60_000, {});
    expect(needs.map(({ needed }) => needed)).toEqual([minutes, 1 + (hours - 1) / 2]);
    const [, ofHours] = declared;
    expect(barsOf(ofHours!.warmUp.settled, 3_600_000, calendar)).toBe(hours);
  },
);

it('an indicator of an indicator needs the bars of both, and only the outer one is listed', () => {
  const indicators = ({ instruments: [a, b] }: { instruments: readonly BarSeries[] }) => [
    ema(rsi(a!.close, 14), 5),
    ratio(a!.close, b!.close),
    macd(a!.close).signal,
    obv(a!),
  ];
  const declared = declaredIndicators({ name: 'x', indicators }, {}, ['A', 'B'], {});
  expect(declared.map(({ label, warmUp: { ready, settled } }) => [label, ready, settled])).toEqual([
    ['ema(rsi(A.close,14),5)', { entries: 19, days: 0 }, { entries: 351, days: 0 }],
    ['ratio(A.close,B.close)', { entries: 1, days: 0 }, { entries: 1, days: 0 }],
    ['macd(A.close,12,26,9)', { entries: 34, days: 0 }, { entries: 397, days: 0 }],
    ['obv(A)', { entries: 1, days: 0 }, { entries: Infinity, days: 0 }],
  ]);
});

it('bars of a longer timeframe that no indicator reads are listed, since they need bars, too', () => {
  const indicators = ({ instruments: [a, b] }: { instruments: readonly BarSeries[] }) => ({
    range: [a!.on('1d').high, a!.on('1d').low],
    average: sma(b!.on('1d').close, 3),
  });
  const kind = { timeframe: '1h' } as const;
  const declared = declaredIndicators({ name: 'x', indicators }, {}, ['A', 'B'], kind);
  expect(
    declared.map(({ label, timeframe, barsPerEntry, warmUp: { ready } }) => [
      label,
      timeframe,
      barsPerEntry,
      ready.entries,
    ]),
  ).toEqual([
    ["A.on('1d')", '1d', 24, 1],
    ["sma(B.on('1d').close,3)", '1d', 24, 3],
  ]);
});
