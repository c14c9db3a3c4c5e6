import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { closest } from '../../src/base/closest.ts';

describe('closest', () => {
  const names = ['sharpe', 'sortino', 'calmar', 'max_drawdown', 'win_rate'];

  it.each([
    ['sharp', 'sharpe'],
    ['Sharpe', 'sharpe'],
    ['shrape', 'sharpe'],
    ['max_drawdwon', 'max_drawdown'],
    ['maxdrawdown', 'max_drawdown'],
    ['winrate', 'win_rate'],
  ])('%s suggests %s', (typed, meant) => {
    expect(closest(typed, names)).toBe(meant);
  });

  it('suggests nothing if no candidate is close', () => {
    expect(closest('zebra', names)).toBeUndefined();
    expect(closest('', names)).toBeUndefined();
    expect(closest('sharpe', [])).toBeUndefined();
  });

  it('counts a swap of two neighbors as one step, and returns the first of equally close candidates', () => {
    expect(closest('abc', ['bac', 'xbx'])).toBe('bac');
    expect(closest('cat', ['bat', 'hat'])).toBe('bat');
  });

  it('prefers the same case among equally close candidates', () => {
    expect(closest('emma', ['Ema', 'ema'])).toBe('ema');
    expect(closest('Emma', ['ema', 'Ema'])).toBe('Ema');
  });

  it('finds each candidate itself among any others', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.stringMatching(/^[a-z_]{1,12}$/), { minLength: 1 }),
        (words) => {
          for (const word of words) expect(closest(word, words)).toBe(word);
        },
      ),
    );
  });
});
