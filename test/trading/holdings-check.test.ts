import { expect, it } from 'vitest';
import {
  checkHoldings,
  type CheckedHoldings,
  formatMismatches,
  newHoldingsCheck,
} from '../../src/trading/holdings-check.ts';

it('mismatches are listed by symbol, and cash by its kind', () => {
  const mismatches = [
    { kind: 'cash', expected: 100, held: 90 },
    { kind: 'position', symbol: 'X', expected: 2, held: 1 },
  ] as const;
  expect(formatMismatches(mismatches)).toBe('cash: 90 of 100; X: 1 of 2');
});

it.each([
  ['latch a session that has traded', true],
  ['do not latch a new session, whose account began with too little', false],
])('holdings that are missing from the first comparison on %s', (_, hasSteps) => {
  const found = [{ kind: 'cash', expected: 100, held: 50 }] as const;
  const comparison = { found, share: 0.5, hasSteps };
  const first = checkHoldings(newHoldingsCheck(0), { ...comparison, isFirst: true });
  const second = checkHoldings(first.after, { ...comparison, isFirst: false });
  expect([first.isLatchedNow, second.isLatchedNow]).toEqual([false, hasSteps]);
});

/** Comparisons of a session that has traded, in which these amounts of cash were held of 100. */
function compareCash(held: readonly number[]): CheckedHoldings[] {
  let before = checkHoldings(newHoldingsCheck(0), {
    found: [],
    share: 0,
    hasSteps: true,
    isFirst: true,
  }).after;
  return held.map((cash) => {
    const found = cash < 100 ? [{ kind: 'cash', expected: 100, held: cash } as const] : [];
    const comparison = { found, share: 1 - cash / 100, hasSteps: true, isFirst: false };
    const checked = checkHoldings(before, comparison);
    before = checked.after;
    return checked;
  });
}

it('an account that another trader changes before every comparison is reported and latched', () => {
  const checked = compareCash([90, 80, 85, 70, 60]);
  expect(checked.map(({ hasNews }) => hasNews)).toEqual([false, false, false, false, true]);
  expect(checked.at(-1)).toMatchObject({ isLatchedNow: true, next: 'recheck' });
});

it('fills that look like mismatches are not reported while comparisons between them find none', () => {
  const checked = compareCash([90, 80, 85, 70, 100, 60, 90, 80, 70, 100]);
  expect(checked.map(({ hasNews, isLatchedNow }) => hasNews || isLatchedNow)).not.toContain(true);
});
