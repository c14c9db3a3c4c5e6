import { expect, it } from 'vitest';
import {
  checkHoldings,
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
