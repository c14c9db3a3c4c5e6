import { expect, test, type TestContext } from 'vitest';
import { isAtLength } from '../length.ts';
import { simulateDay, type Day } from './simulate.ts';

const SEEDS = Array.from({ length: isAtLength ? 1000 : 1 }, (_, i) => i + 1);
const days = new Map<number, Day>();

/** A test that times out ends once the day has restored the time. */
async function simulate(seed: number, { signal, onTestFinished }: TestContext): Promise<Day> {
  const day = simulateDay(seed, signal);
  onTestFinished(async () => void (await Promise.allSettled([day])));
  days.set(seed, await day);
  return day;
}

test.for(SEEDS)(
  'day %i keeps the invariants of trading through all faults',
  async (seed, test_) => {
    const { violations } = await simulate(seed, test_);
    expect(violations, `npm run simulate:day -- ${seed} prints the day`).toEqual([]);
  },
);

test.runIf(isAtLength)('the same seed gives the same day again', async (test_) => {
  const first = days.get(2) ?? (await simulate(2, test_));
  const other = days.get(1) ?? (await simulate(1, test_));
  const again = await simulate(2, test_);
  expect(again.traceHash).toBe(first.traceHash);
  expect(first.orders).toBeGreaterThan(0);
  expect(other.traceHash).not.toBe(first.traceHash);
});

test('a day that is aborted restores the time', async () => {
  const { setTimeout: before, Date: clock } = globalThis;
  const { now } = clock;
  const abort = new AbortController();
  const day = simulateDay(1, abort.signal);
  while (globalThis.setTimeout === before) await Promise.resolve();
  abort.abort(new Error('no time is left'));
  await expect(day).rejects.toThrow('no time is left');
  expect(globalThis.setTimeout).toBe(before);
  expect(Date.now).toBe(now);
});
