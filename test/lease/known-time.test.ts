import { describe, expect, test } from 'vitest';
import { isRunningTime, knownTime, runningTime } from '../../src/lease/known-time.ts';

const BEFORE = { lease_id: 'a', seconds: 60, boot_id: 'one', uptime_seconds: 1000 };
const boot = (boot_id: string, uptime_seconds: number) => ({ boot_id, uptime_seconds });

describe('the running time', () => {
  test('the running time grows with the uptime of one boot', () => {
    const now = boot('one', 1030);
    expect(runningTime(BEFORE, 'a', now)).toEqual({ lease_id: 'a', seconds: 90, ...now });
  });

  test.each([
    ['another boot, or another machine, that is up for longer', boot('two', 5_000_000)],
    ['another boot that began just now', boot('two', 10)],
    ['an uptime that went back', boot('one', 10)],
  ])('adds nothing by %s, and goes on from there', (_, now) => {
    const then = runningTime(BEFORE, 'a', now);
    expect(then).toEqual({ lease_id: 'a', seconds: 60, ...now });
    const later = { ...now, uptime_seconds: now.uptime_seconds + 5 };
    expect(runningTime(then, 'a', later)).toMatchObject({ seconds: 65 });
  });

  test('the running time of another lease does not count', () => {
    expect(runningTime(BEFORE, 'b', boot('one', 1030))).toMatchObject({ seconds: 0 });
    const issued_at = '2026-01-05T09:30:00Z';
    expect(knownTime({ lease_id: 'b', issued_at }, BEFORE)).toBe(issued_at);
    expect(knownTime({ lease_id: 'a', issued_at }, BEFORE)).toBe('2026-01-05T09:31:00Z');
  });
});

test.each<[isOne: boolean, change: object]>([
  [true, {}],
  [true, { seconds: 0, uptime_seconds: 0.5 }],
  [false, { seconds: -1 }],
  [false, { seconds: 1e15 }],
  [false, { uptime_seconds: 1e300 }],
  [false, { seconds: '60' }],
  [false, { seconds: null }],
  [false, { boot_id: undefined }],
  [false, { lease_id: 7 }],
])('whether what was read is a running time: %s with %j', (isOne, change) => {
  expect(isRunningTime({ ...BEFORE, ...change })).toBe(isOne);
});
