export interface RateLimit {
  /** Number of actions without waiting. */
  readonly burst: number;
  /** Time per action after that, ms. */
  readonly intervalMs: number;
}

/** When more callers than this are known, callers with a full burst are dropped, then the oldest. */
const MAX_CALLERS = 10_000;
const CALLERS_KEPT = 9000;

/**
 * Limits the rate of each caller's actions within this process.
 *
 * @param clock milliseconds since the Unix epoch.
 * @returns a function that returns how long the caller must wait, ms. If that is 0 or less, the
 *   action counts.
 */
export function createRateLimiter(
  clock: () => number,
  { burst, intervalMs }: RateLimit,
): (caller: string) => number {
  /** Time at which each caller has a full burst again. */
  const fullAt = new Map<string, number>();
  return (caller) => {
    const now = clock();
    const full = Math.max(fullAt.get(caller) ?? 0, now) + intervalMs;
    const waitMs = full - now - burst * intervalMs;
    if (waitMs > 0) return waitMs;
    // Deleting first keeps the map in the order of the last action.
    fullAt.delete(caller);
    fullAt.set(caller, full);
    if (fullAt.size > MAX_CALLERS) forgetSome(fullAt, now);
    return waitMs;
  };
}

function forgetSome(fullAt: Map<string, number>, now: number): void {
  for (const [caller, at] of fullAt) if (at <= now) fullAt.delete(caller);
  for (const caller of fullAt.keys()) {
    if (fullAt.size <= CALLERS_KEPT) return;
    fullAt.delete(caller);
  }
}
