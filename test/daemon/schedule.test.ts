import fc from 'fast-check';
import { expect, test } from 'vitest';
import { earliestRequest, MOST_REQUESTS_PER_HOUR, retryDelayMs } from '../../daemon/schedule.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const chances = fc.double({ min: 0, max: 1, noNaN: true });

test('waits longer and longer, from half a minute to an hour', () => {
  const longest = [1, 2, 3, 7, 100].map((count) => retryDelayMs({ count, denied: false }, 1));
  expect(longest).toEqual([MINUTE, 2 * MINUTE, 4 * MINUTE, HOUR, HOUR]);
  expect(retryDelayMs({ count: 100, denied: false }, 0)).toBe(MINUTE / 2);
});

test('does as Retry-After says, unless that is absurd', () => {
  const wait = (retryAfterSeconds: number): number =>
    retryDelayMs({ count: 1, denied: false, retryAfterSeconds }, 0);
  expect([0, 1, 600, 86_400 * 365].map(wait)).toEqual([MINUTE / 2, MINUTE / 2, 10 * MINUTE, HOUR]);
});

test('asks rarely after a denial', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 1000 }), chances, (count, chance) => {
      const wait = retryDelayMs({ count, denied: true }, chance);
      expect(wait).toBeGreaterThanOrEqual(4.5 * HOUR);
      expect(wait).toBeLessThanOrEqual(7.5 * HOUR);
    }),
  );
});

test('sends no more than 30 requests in any hour, whatever chance has it', () => {
  fc.assert(
    fc.property(fc.array(chances, { minLength: 200, maxLength: 200 }), (rolls) => {
      const sent: number[] = [];
      let now = 0;
      for (const [i, chance] of rolls.entries()) {
        const wait = retryDelayMs({ count: (i % 3) + 1, denied: false }, chance);
        now = Math.max(now + wait, earliestRequest(sent));
        sent.push(now);
      }
      const spans = sent.slice(MOST_REQUESTS_PER_HOUR).map((at, i) => at - sent[i]!);
      expect(Math.min(...spans)).toBeGreaterThanOrEqual(HOUR);
    }),
  );
});
