import { expect, it } from 'vitest';
import { formatMismatches } from '../../src/trading/holdings-check.ts';

it('mismatches are listed by symbol, and cash by its kind', () => {
  const mismatches = [
    { kind: 'cash', expected: 100, held: 90 },
    { kind: 'position', symbol: 'X', expected: 2, held: 1 },
  ] as const;
  expect(formatMismatches(mismatches)).toBe('cash: 90 of 100; X: 1 of 2');
});
