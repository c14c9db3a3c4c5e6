/** Internal thresholds, except for `alertMs`, which Article 16(5) prescribes. */
export const BOUNDS = {
  killSentMs: 1000,
  killConfirmedMs: 5000,
  drainMs: 30_000,
  /** Maximum ratio of p99 under load to p99 before the load. */
  slowerTimes: 3,
  /** Shorter waits pass, because noise of the machine dominates them. */
  noiseMs: 50,
  /** Maximum growth of memory in use, bytes per 1,000 messages. */
  heapPerThousand: 4 * 2 ** 20,
  /** Number of messages below which memory growth is not judged. */
  heapMessages: 5000,
  alertMs: 5000,
} as const;
