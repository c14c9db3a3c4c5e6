/** How often somebody may do something. */
export interface Pace {
  /** One after the other, without waiting. */
  readonly atOnce: number;
  /** After that, one in so many milliseconds. */
  readonly everyMs: number;
}

/** With more than that, those are forgotten who have done nothing for a while. */
const MOST_KNOWN = 10_000;

/**
 * Counts what somebody does, in this process and since its start.
 *
 * @param clock milliseconds since the Unix epoch.
 * @returns for how long he has to wait, in milliseconds; what is 0 or less is counted as done.
 */
export function countPace(clock: () => number, { atOnce, everyMs }: Pace): (who: string) => number {
  /** When each will have as many as at first. */
  const restedAt = new Map<string, number>();
  return (who) => {
    const now = clock();
    const rested = Math.max(restedAt.get(who) ?? 0, now) + everyMs;
    const waitMs = rested - now - atOnce * everyMs;
    if (waitMs > 0) return waitMs;
    restedAt.set(who, rested);
    if (restedAt.size > MOST_KNOWN) {
      for (const [one, at] of restedAt) if (at <= now) restedAt.delete(one);
    }
    return waitMs;
  };
}
