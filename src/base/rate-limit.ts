/** How often somebody may do something. */
export interface RateLimit {
  /** One after the other, without waiting. */
  readonly burst: number;
  /** After that, one in so many milliseconds. */
  readonly intervalMs: number;
}

/** Beyond this, callers that have rested are forgotten first, then those that came longest ago. */
const MOST_KNOWN = 10_000;
const KEPT_THEN = 9000;

/**
 * Counts what somebody does, in this process and since its start.
 *
 * @param clock milliseconds since the Unix epoch.
 * @returns for how long he has to wait, in milliseconds; what is 0 or less is counted as done.
 */
export function createRateLimiter(
  clock: () => number,
  { burst, intervalMs }: RateLimit,
): (who: string) => number {
  /** When each will have as many as at first. */
  const restedAt = new Map<string, number>();
  return (who) => {
    const now = clock();
    const rested = Math.max(restedAt.get(who) ?? 0, now) + intervalMs;
    const waitMs = rested - now - burst * intervalMs;
    if (waitMs > 0) return waitMs;
    // In the order of their last turns.
    restedAt.delete(who);
    restedAt.set(who, rested);
    if (restedAt.size > MOST_KNOWN) forgetSome(restedAt, now);
    return waitMs;
  };
}

function forgetSome(restedAt: Map<string, number>, now: number): void {
  for (const [who, at] of restedAt) if (at <= now) restedAt.delete(who);
  for (const who of restedAt.keys()) {
    if (restedAt.size <= KEPT_THEN) return;
    restedAt.delete(who);
  }
}
