import { describe, expect, it, test } from 'vitest';
import { Bollinger } from '../../../src/engine/indicators/bollinger.ts';
import { Ema } from '../../../src/engine/indicators/ema.ts';
import {
  featureFaults,
  featureOf,
  INDICATOR_NAMES,
  usesVolume,
  type Feature,
} from '../../../src/bots/models/features.ts';

const BARS = Array.from({ length: 40 }, (_, i) => {
  const close = 100 + 10 * Math.sin(i / 3) + i / 4;
  return { open: close - 0.5, high: close + 1, low: close - 2, close, volume: 1000 + 7 * i };
});

const HOUR = 3_600_000;
const valuesOf = (feature: Feature): number[] => {
  const machine = featureOf(feature);
  return BARS.map((bar, i) => machine(bar, i * HOUR));
};

const PARAMS: Readonly<Record<string, number>> = {
  period: 5,
  fast: 3,
  slow: 6,
  signal: 2,
  k: 3,
  smooth: 2,
  d: 2,
  atrPeriod: 4,
  multiplier: 2,
};

/** Adds all parameters of an indicator, as named by the reported faults. */
function wholeFeature(indicator: Feature['indicator']): Feature {
  const missing = featureFaults({ indicator }).map(({ at }) => at.at(-1)!);
  return { indicator, params: Object.fromEntries(missing.map((name) => [name, PARAMS[name]!])) };
}

test.each(INDICATOR_NAMES)(
  '%s is NaN until it has enough bars, and a number from then on',
  (name) => {
    const feature = wholeFeature(name);
    expect(featureFaults(feature)).toEqual([]);
    const values = valuesOf(feature);
    const ready = values.findIndex(Number.isFinite);
    expect(ready).toBeGreaterThanOrEqual(0);
    expect(values.slice(0, ready).every(Number.isNaN)).toBe(true);
    expect(values.slice(ready).every(Number.isFinite)).toBe(true);
  },
);

test('a feature is the indicator of the given column and line, divided by the given column', () => {
  const ema = new Ema(4);
  expect(valuesOf({ indicator: 'ema', params: { period: 4 }, of: 'high', over: 'low' })).toEqual(
    BARS.map(({ high, low }) => ema.next(high) / low),
  );
  const bands = new Bollinger(5, 2);
  const upper = BARS.map(({ close }) => {
    bands.next(close);
    return bands.upper;
  });
  const params = { k: 2, period: 5 };
  expect(valuesOf({ indicator: 'bollinger', params, line: 'upper' })).toEqual(upper);
  expect(valuesOf({ column: 'volume' })).toEqual(BARS.map(({ volume }) => volume));
  const changes = valuesOf({ indicator: 'return', params: { period: 3 } });
  expect(changes.slice(0, 4)).toEqual([NaN, NaN, NaN, BARS[3]!.close / BARS[0]!.close - 1]);
});

test('features that need volume are recognized', () => {
  expect(usesVolume({ column: 'close' })).toBe(false);
  expect(usesVolume({ indicator: 'obv' })).toBe(true);
  expect(usesVolume({ indicator: 'sma', params: { period: 2 }, of: 'volume' })).toBe(true);
  expect(usesVolume({ column: 'close', over: 'volume' })).toBe(true);
});

describe('featureFaults', () => {
  const cases: readonly (readonly [Feature, string, string])[] = [
    [{}, 'indicator', 'missing_field'],
    [{ column: 'close', indicator: 'sma' }, 'column', 'conflicting_fields'],
    [{ column: 'close', params: {} }, 'params', 'conflicting_fields'],
    [{ column: 'close', of: 'high' }, 'of', 'conflicting_fields'],
    [{ indicator: 'sma' }, 'params/period', 'missing_field'],
    [{ indicator: 'sma', params: { period: 2, perod: 1 } }, 'params/perod', 'unknown_field'],
    [{ indicator: 'sma', params: { period: 1.5 } }, 'params', 'invalid_value'],
    [{ indicator: 'macd', params: { fast: 5, slow: 2, signal: 2 } }, 'params', 'invalid_value'],
    [{ indicator: 'sma', params: { period: 2 }, line: 'upper' }, 'line', 'invalid_value'],
    [{ indicator: 'atr', params: { period: 2 }, of: 'close' }, 'of', 'conflicting_fields'],
  ];
  it.each(cases)('finds the fault of %j', (feature, at, code) => {
    expect(featureFaults(feature).map((fault) => [fault.at.join('/'), fault.code])).toEqual([
      [at, code],
    ]);
  });
});
