import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { normalCdf, normalQuantile } from '../../src/backtest/normal.ts';

/** Reference values computed with 40 digits. */
const CDF = [
  [-37, 5.725571222524577e-300],
  [-20, 2.7536241186062337e-89],
  [-8, 6.220960574271784e-16],
  [-5, 2.866515718791939e-7],
  [-2.5, 0.006209665325776135],
  [-2.4, 0.008197535924596131],
  [-1, 0.15865525393145705],
  [-0.1, 0.460172162722971],
  [0, 0.5],
  [0.5, 0.6914624612740131],
  [1.96, 0.9750021048517796],
  [2.6, 0.9953388119762813],
  [6, 0.9999999990134123],
] as const;

const QUANTILES = [
  [1e-300, -37.0470962993612],
  [1e-20, -9.262340089798407],
  [1e-9, -5.9978070150076865],
  [0.001, -3.0902323061678136],
  [0.025, -1.9599639845400543],
  [0.05, -1.6448536269514726],
  [0.25, -0.6744897501960817],
  [0.5, 0],
  [0.75, 0.6744897501960817],
  [0.999, 3.090232306167813],
] as const;

describe('the normal distribution', () => {
  it.each(CDF)('at %d has probability %d', (x, expected) => {
    expect(Math.abs(normalCdf(x) / expected - 1)).toBeLessThan(1e-13);
  });

  it.each(QUANTILES)('has probability %d at %d', (p, expected) => {
    expect(Math.abs(normalQuantile(p) - expected)).toBeLessThan(2e-14);
  });

  it('is 0 and 1 at infinity, and so is its inverse', () => {
    expect(normalCdf(-Infinity)).toBe(0);
    expect(normalCdf(Infinity)).toBe(1);
    expect(normalQuantile(0)).toBe(-Infinity);
    expect(normalQuantile(1)).toBe(Infinity);
    expect(normalQuantile(-0.1)).toBeNaN();
    expect(normalQuantile(1.1)).toBeNaN();
  });

  it('is symmetric, rises, and inverts its quantiles', () => {
    const p = fc.double({ min: 1e-12, max: 1 - 1e-12, noNaN: true });
    fc.assert(
      fc.property(p, p, (a, b) => {
        expect(Math.abs(normalCdf(normalQuantile(a)) / a - 1)).toBeLessThan(1e-13);
        const x = normalQuantile(a);
        expect(normalCdf(x) + normalCdf(-x)).toBeCloseTo(1, 14);
        if (b - a > 1e-12) expect(normalQuantile(b)).toBeGreaterThan(x);
      }),
    );
  });
});
