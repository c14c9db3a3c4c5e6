import canonicalize from 'canonicalize';
import type { Peaks } from './peaks.ts';
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
  const reasons: string[] = [];
  for (const part of [...new Set([...Object.keys(result.lock), ...Object.keys(lock)])].sort()) {
    if (canonicalize(result.lock[part]) !== canonicalize(lock[part])) {
      reasons.push(`${part} has changed since the test`);
    }
  }
  // The load in the pass with limits does not show what the bot can withstand.
  const pass = result.passes.find(({ limits }) => limits === 'lifted');
  for (const { class: of, window_s, M, peak_ts } of livePeaks.messages) {
    const reached = pass?.reached.find((one) => one.class === of && one.window_s === window_s);
    const tested = reached?.achieved ?? 0;
    if (M > SHARE * tested) {
      reasons.push(
        `live peak: ${M} messages (${of}) in ${window_s} s at ${peak_ts}, more than half of the tested ${tested}`,
      );
    }
  }
  for (const { measure, of, window_s, M, peak_ts } of livePeaks.volume) {
    const reached = pass?.volume.find(
      (one) => one.measure === measure && one.of === of && one.window_s === window_s,
    );
    const tested = reached?.achieved ?? 0;
    if (M > SHARE * tested) {
      const named = of === null ? measure : `${measure} of ${of}`;
      reasons.push(
        `live peak: ${named} ${M} in ${window_s} s at ${peak_ts}, more than half of the tested ${tested}`,
      );
    }
  }
  const due = new Date(result.peaks.window.to);
  due.setUTCFullYear(due.getUTCFullYear() + 1);
  if (now >= due.getTime()) reasons.push('the test is twelve months old');
  return { stale: reasons.length > 0, reasons };
}
