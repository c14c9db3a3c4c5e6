import { describe, expect, it } from 'vitest';
import { createRateLimiter } from '../../src/base/rate-limit.ts';

describe('createRateLimiter', () => {
  const PACE = { burst: 2, intervalMs: 1000 };

  it('allows a number at once and then one per interval, each on its own', () => {
    let now = 0;
    const waitMs = createRateLimiter(() => now, PACE);
    for (const who of ['a', 'b']) {
      expect([waitMs(who), waitMs(who)].every((ms) => ms <= 0)).toBe(true);
      expect(waitMs(who)).toBe(1000);
    }
    now = 1000;
    expect(waitMs('a')).toBeLessThanOrEqual(0);
    expect(waitMs('a')).toBe(1000);
  });

  it('keeps at most 10,000, and forgets those first who came longest ago', () => {
    const waitMs = createRateLimiter(() => 0, PACE);
    const isLimited = (who: string): boolean => waitMs(who) > 0;
    for (const who of ['old', 'old', 'busy', 'busy']) waitMs(who);
    for (let i = 0; i < 9000; i++) waitMs(`one ${i}`);
    expect([isLimited('old'), isLimited('busy')]).toEqual([true, true]);
    for (let i = 0; i < 3000; i++) waitMs(`two ${i}`);
    expect(isLimited('old')).toBe(false);
    waitMs('two 2999');
    expect(isLimited('two 2999')).toBe(true);
  });

  it('takes little time for each of many', () => {
    const waitMs = createRateLimiter(() => 0, PACE);
    const begun = process.cpuUsage();
    for (let i = 0; i < 300_000; i++) waitMs(String(i));
    const { user } = process.cpuUsage(begun);
    // Three seconds are ten times what it takes; going through all for each would be an hour.
    expect(user).toBeLessThan(3_000_000);
  });
});
