/** The indicators that a strategy returned, as the chart of its run shows them. */
import { expect, it } from 'vitest';
import { Engine } from '../../src/engine/engine.ts';
import { adx } from '../../src/engine/indicators/adx.ts';
import { lag, ratio } from '../../src/engine/indicators/arithmetic.ts';
import { atr } from '../../src/engine/indicators/atr.ts';
import { bollinger } from '../../src/engine/indicators/bollinger.ts';
import { correlation } from '../../src/engine/indicators/correlation.ts';
import { ema } from '../../src/engine/indicators/ema.ts';
import { heikinAshi } from '../../src/engine/indicators/heikin-ashi.ts';
import { rsi } from '../../src/engine/indicators/rsi.ts';
import { sma } from '../../src/engine/indicators/sma.ts';
import { supertrend } from '../../src/engine/indicators/supertrend.ts';
import type { ReturnedIndicator } from '../../src/engine/series/returned-indicators.ts';
import { defineStrategy, type IndicatorContext } from '../../src/engine/strategy.ts';
import { bars, DAY, ENGINE_DEFAULTS, START } from './market.ts';

const rising = (from: number, length: number): ReturnType<typeof bars> =>
  bars(
    Array.from({ length }, (_, i) => [from + i, from + i + 1, from + i - 1, from + i] as const),
    START + from * DAY,
  );

function returned(
  indicators: (context: IndicatorContext) => unknown,
  symbols: readonly string[] = ['X'],
): readonly ReturnedIndicator[] {
  const engine = new Engine({
    instruments: symbols.map((symbol, index) => ({ symbol, bars: rising(index, 8) })),
    strategy: defineStrategy({
      name: 'x',
      description: '',
      params: {},
      indicators,
      create: () => ({ onBar() {} }),
    }),
    params: {},
    config: ENGINE_DEFAULTS,
  });
  while (engine.advance(3));
  return engine.indicators();
}

const scalesOf = (indicators: readonly ReturnedIndicator[]): string[] =>
  indicators.flatMap(({ lines }) => lines.map(({ name, scale }) => `${name}: ${scale}`));

it('a returned indicator has the name that the strategy gave it, and its parameters', () => {
  const found = returned(({ instruments: [x] }) => ({
    fast: sma(x.close, 3),
    bands: bollinger(x.close, 4, 1.5),
    rest: [ema(rsi(x.close, 3), 2), { range: atr(x, 5) }, adx(x).plusDi],
    smooth: atr(heikinAshi(x), 2),
    close: x.close,
  }));
  expect(found.map(({ kind, label }) => `${kind} ${label}`)).toEqual([
    'sma sma(close,3)',
    'bollinger bollinger(close,4,1.5)',
    'ema ema(rsi(close,3),2)',
    'atr atr(5)',
    'adx adx(14)',
    'atr atr(heikinAshi(),2)',
  ]);
  expect(found.flatMap(({ lines }) => lines.map(({ name, line }) => `${name} ${line}`))).toEqual([
    'fast value',
    'bands.middle middle',
    'bands.upper upper',
    'bands.lower lower',
    'rest.0 value',
    'rest.1.range value',
    'rest.2 plusDi',
    'smooth value',
  ]);
  const bare = returned(({ instruments: [x] }) => sma(x.close, 3));
  expect(bare[0]!.lines[0]!.name).toBe('');
});

it('an average is drawn on the scale of its input, and a direction is not drawn', () => {
  const found = returned(({ instruments: [x] }) => ({
    price: sma(x.high, 3),
    volume: sma(x.volume, 3),
    strength: rsi(x.close, 3),
    smooth: lag(ema(rsi(x.close, 3), 2), 1),
    trend: supertrend(x, 2, 1),
    hours: sma(x.time, 2),
  }));
  expect(scalesOf(found)).toEqual([
    'price: price',
    'volume: volume',
    'strength: rsi(0.close,3)',
    'smooth: rsi(0.close,3)',
    'trend.stop: price',
    'hours: sma(0.time,2)',
  ]);
});

it('an indicator has the bar of each of its instruments at each entry', () => {
  const found = returned(
    ({ instruments: [a, b] }) => ({
      both: correlation(a.close, b!.close, 2),
      second: sma(b!.close, 2),
      quotient: sma(ratio(a.close, b!.close), 2),
    }),
    ['A', 'B'],
  );
  expect(found.map(({ label }) => label)).toEqual([
    'correlation(A.close,B.close,2)',
    'sma(B.close,2)',
    'sma(ratio(A.close,B.close),2)',
  ]);
  const [both, second] = found;
  // B begins one day later.
  expect([...both!.bars]).toEqual([
    [0, { before: 0, rows: Int32Array.of(1, 2, 3, 4, 5, 6, 7) }],
    [1, { before: 0, rows: Int32Array.of(0, 1, 2, 3, 4, 5, 6) }],
  ]);
  expect([...second!.bars]).toEqual([[1, { before: 0 }]]);
  expect([...second!.lines[0]!.values]).toEqual([Number.NaN, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5]);
});

it('a strategy that declares nothing, or returns no series, has no returned indicators', () => {
  expect(returned(() => undefined)).toEqual([]);
  expect(returned(({ instruments: [x] }) => x)).toEqual([]);
});
