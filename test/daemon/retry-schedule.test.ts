import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  earliestRequest,
  MOST_REQUESTS_PER_HOUR,
  retryDelayMs,
  type Failure,
} from '../../daemon/retry-schedule.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const chances = fc.double({ min: 0, max: 1, noNaN: true });
const counts = fc.integer({ min: 1, max: 1000 });
/** The shortest, the middle and the longest wait. */
const waits = (failure: Partial<Failure>, left = DAY): number[] =>
  [0, 0.5, 1].map((chance) => retryDelayMs({ count: 1, denied: false, ...failure }, left, chance));

test('waits grow with each failure, at random from half a minute', () => {
  expect(waits({ count: 1 })).toEqual([MINUTE / 2, 0.75 * MINUTE, MINUTE]);
  expect(waits({ count: 2 })).toEqual([MINUTE / 2, 1.25 * MINUTE, 2 * MINUTE]);
  const longest = [3, 7, 100].map((count) => waits({ count })[2]);
  expect(longest).toEqual([4 * MINUTE, HOUR, HOUR]);
});

test('a wait lasts at most an eighth of the time left, or five minutes if that is longer', () => {
  const longest = (left: number) => waits({ count: 100 }, left)[2]! / MINUTE;
  const left = [30 * DAY, 8 * HOUR, 4 * HOUR, 40 * MINUTE, MINUTE, 1];
  expect(left.map(longest)).toEqual([60, 60, 30, 5, 5, 5]);
  expect([0, -DAY].map(longest), 'without a valid lease').toEqual([30, 30]);
});

test('the daemon notices a server that is back before the lease ends, with time to spare', () => {
  const losses = fc.record({
    left: fc.integer({ min: MINUTE, max: 30 * DAY }),
    down: fc.double({ min: 0, max: 1, noNaN: true }),
  });
  const lots = fc.infiniteStream(chances);
  fc.assert(
    fc.property(losses, lots, ({ left, down }, rolls) => {
      const back = left * down;
      let now = 0;
      for (let count = 1; now < back; count += 1) {
        const chance = rolls.next().value as number;
        now += retryDelayMs({ count, denied: false }, left - now, chance);
      }
      expect(now).toBeLessThanOrEqual(Math.ceil(back + Math.max(5 * MINUTE, (left - back) / 8)));
    }),
  );
});

test('a wait follows Retry-After within bounds, with random spread', () => {
  const after = (retryAfterSeconds: number): number[] => waits({ retryAfterSeconds });
  expect(after(1)).toEqual(waits({}));
  expect(after(600)).toEqual([10 * MINUTE, 10.5 * MINUTE, 11 * MINUTE]);
  const [shortest, middle, longest] = after(86_400 * 365);
  expect(longest).toBe(HOUR);
  expect(middle).toBeLessThan(longest!);
  expect(shortest).toBeGreaterThan(54 * MINUTE);
});

test('retries are rare after a denial', () => {
  fc.assert(
    fc.property(counts, chances, (count, chance) => {
      const wait = retryDelayMs({ count, denied: true }, DAY, chance);
      expect(wait).toBeGreaterThanOrEqual(4.5 * HOUR);
      expect(wait).toBeLessThanOrEqual(7.5 * HOUR);
    }),
  );
});

test('at most 30 requests are sent in any hour', () => {
  const anyWait = fc.oneof(
    fc.constant(0),
    fc.nat({ max: 2 * HOUR }),
    fc
      .record({ count: counts, left: fc.integer({ min: -DAY, max: DAY }), chance: chances })
      .map(({ count, left, chance }) => retryDelayMs({ count, denied: false }, left, chance)),
  );
  const earlier = fc.array(fc.integer({ min: -DAY, max: DAY }), { maxLength: 60 });
  fc.assert(
    fc.property(
      fc.array(anyWait, { minLength: 200, maxLength: 200 }),
      earlier,
      (decided, before) => {
        const sent: number[] = [];
        let now = 0;
        for (const wait of decided) {
          now = Math.max(now + wait, earliestRequest([...sent, ...before], now));
          sent.push(now);
        }
        const spans = sent.slice(MOST_REQUESTS_PER_HOUR).map((at, i) => at - sent[i]!);
        expect(Math.min(...spans)).toBeGreaterThanOrEqual(HOUR);
      },
    ),
  );
});

test('the wait after a clock was ahead lasts at most an hour', () => {
  const clockAhead = Array.from({ length: 30 }, (_, i) => 30 * DAY + i * MINUTE);
  expect(earliestRequest(clockAhead, 0)).toBe(Number.NEGATIVE_INFINITY);
  expect(earliestRequest(clockAhead, clockAhead.at(-1)!)).toBe(30 * DAY + HOUR);
  const times = fc.integer({ min: -DAY, max: DAY });
  fc.assert(
    fc.property(fc.array(times), times, (sent, now) => {
      expect(earliestRequest(sent, now)).toBeLessThanOrEqual(now + HOUR);
    }),
  );
});
