import { describe, expect, it } from 'vitest';
import { createRateLimiter } from '../../src/base/rate-limit.ts';
import { isAtLength } from '../length.ts';

describe('createRateLimiter', () => {
  const LIMIT = { burst: 2, intervalMs: 1000 };

  it('allows each caller a burst, and then one action per interval', () => {
    let now = 0;
    const waitMs = createRateLimiter(() => now, LIMIT);
    for (const who of ['a', 'b']) {
      expect([waitMs(who), waitMs(who)].every((ms) => ms <= 0)).toBe(true);
      expect(waitMs(who)).toBe(1000);
    }
    now = 1000;
    expect(waitMs('a')).toBeLessThanOrEqual(0);
    expect(waitMs('a')).toBe(1000);
  });

  it('remembers at most 10,000 callers, and forgets those first that acted longest ago', () => {
    const waitMs = createRateLimiter(() => 0, LIMIT);
    const isLimited = (who: string): boolean => waitMs(who) > 0;
    for (const who of ['old', 'old', 'busy', 'busy']) waitMs(who);
    for (let i = 0; i < 9000; i++) waitMs(`one ${i}`);
    expect([isLimited('old'), isLimited('busy')]).toEqual([true, true]);
    for (let i = 0; i < 3000; i++) waitMs(`two ${i}`);
    expect(isLimited('old')).toBe(false);
    waitMs('two 2999');
    expect(isLimited('two 2999')).toBe(true);
  });

  it.runIf(isAtLength)('takes less than 10 microseconds for each of 300,000 callers', () => {
    const waitMs = createRateLimiter(() => 0, LIMIT);
    const begun = process.cpuUsage();
    for (let i = 0; i < 300_000; i++) waitMs(String(i));
    const { user } = process.cpuUsage(begun);
    // Three seconds are ten times the usual time; scanning all callers each time would take an hour.
    expect(user).toBeLessThan(3_000_000);
  });
});
