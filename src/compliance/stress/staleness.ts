import canonicalize from 'canonicalize';
import { findMessages, nameVolume, type Peaks } from './peaks.ts';
import type { StressResult } from './run.ts';

/** The tested parts: JSON values by name. */
export type TestedLock = Readonly<Record<string, unknown>>;

export interface Staleness {
  readonly stale: boolean;
  /** Empty unless the test is stale. */
  readonly reasons: readonly string[];
}

/** Maximum live peak as a share of the tested load: Article 10 requires a test at twice the peak. */
const SHARE = 0.5;

/**
 * Checks whether a stress test must be run again: if any part of its lock differs (the triggers of RTS 6
 * Article 6), if a live peak exceeds half of the reached load, and after twelve months. RTS 7 Article 11(3)
 * requires venues to reassess at a new peak; for firms this is an internal rule.
 *
 * @param result the test was made at the end of its six months. @param now ms since the epoch.
 * @param livePeaks production peaks as of now, with the scope of the test; see `readHistory`.
 * @param lock the parts that a new test would use.
 */
export function checkStaleness(
  result: Pick<StressResult, 'passes'> & {
    readonly peaks: Pick<StressResult['peaks'], 'window'>;
    readonly lock: TestedLock;
  },
  now: number,
  livePeaks: Peaks,
  lock: TestedLock,
): Staleness {
  const parts = [...new Set([...Object.keys(result.lock), ...Object.keys(lock)])].sort();
  const changed = parts.filter(
    (part) => canonicalize(result.lock[part]) !== canonicalize(lock[part]),
  );
  // The load in the pass with limits does not show what the bot can withstand.
  const { reached = [], volume = [] } =
    result.passes.find(({ limits }) => limits === 'lifted') ?? {};
  const high = [
    ...livePeaks.messages.map((peak) => ({
      ...peak,
      what: `${peak.M} messages (${peak.class})`,
      tested: findMessages(reached, peak.class, peak.window_s)?.achieved ?? 0,
    })),
    ...livePeaks.volume.map((peak) => ({
      ...peak,
      what: `${nameVolume(peak)} ${peak.M}`,
      tested:
        volume.find((one) => nameVolume(one) === nameVolume(peak) && one.window_s === peak.window_s)
          ?.achieved ?? 0,
    })),
  ].filter(({ M, tested }) => M > SHARE * tested);
  const due = new Date(result.peaks.window.to);
  due.setUTCFullYear(due.getUTCFullYear() + 1);
  const reasons = [
    ...changed.map((part) => `${part} has changed since the test`),
    ...high.map(
      ({ what, window_s, peak_ts, tested }) =>
        `live peak: ${what} in ${window_s} s at ${peak_ts}, more than half of the tested ${tested}`,
    ),
    ...(now >= due.getTime() ? ['the test is twelve months old'] : []),
  ];
  return { stale: reasons.length > 0, reasons };
}
