import { expect, test } from 'vitest';
import { isAtLength } from '../length.ts';
import { simulateDay } from './simulate.ts';

const SEEDS = Array.from({ length: isAtLength ? 1000 : 25 }, (_, i) => i + 1);

test(`${SEEDS.length} days keep the invariants of trading through all faults`, async () => {
  const failures: string[] = [];
  for (const seed of SEEDS) {
    const { violations } = await simulateDay(seed);
    if (violations.length === 0) continue;
    failures.push(
      `npm run simulate:day -- ${seed}: ${violations.map(({ what }) => what).join('; ')}`,
    );
  }
  expect(failures).toEqual([]);
});

test('the same seed gives the same day again', async () => {
  const first = await simulateDay(3);
  const again = await simulateDay(3);
  expect(again.traceHash).toBe(first.traceHash);
  expect(first.orders).toBeGreaterThan(0);
  expect((await simulateDay(4)).traceHash).not.toBe(first.traceHash);
});
