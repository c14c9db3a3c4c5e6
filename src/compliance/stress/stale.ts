/** When a stress test says nothing of today any more. */
import canonicalize from 'canonicalize';
import type { Peaks } from './peaks.ts';
import type { StressResult } from './run.ts';

/** What was tested, part by part: JSON values by name. */
export type TestedLock = Readonly<Record<string, unknown>>;

export interface Staleness {
  readonly stale: boolean;
  /** In words; empty where it is not stale. */
  readonly reasons: readonly string[];
}

/** Of what was reached, a peak may be so much: Article 10 wants twice the peak. */
const SHARE = 0.5;

/**
 * Whether a stress test has to be run again: for any part of its lock that is another one now (the
 * triggers of RTS 6 Article 6), for a live peak above half of what it reached, and after twelve months.
 * RTS 7 Article 11(3) has venues look again at a new peak; for firms that is a house rule.
 *
 * @param result its own end of the six months is when it was made. @param now ms since the epoch.
 * @param livePeaks of production as of now, of the scope of the test; see `readHistory`.
 * @param lock of what would be tested now.
 */
export function stressStaleness(
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
      reasons.push(`${part} is not what was tested`);
    }
  }
  // What the limits let through says nothing of what it can bear.
  const pass = result.passes.find(({ limits }) => limits === 'lifted');
  for (const { class: of, window_s, M, peak_ts } of livePeaks.messages) {
    const reached = pass?.reached.find((one) => one.class === of && one.window_s === window_s);
    const tested = reached?.achieved ?? 0;
    if (M > SHARE * tested) {
      reasons.push(
        `live peak: ${M} messages (${of}) in ${window_s} s at ${peak_ts}, more than half of the ${tested} that were tested`,
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
        `live peak: ${named} ${M} in ${window_s} s at ${peak_ts}, more than half of the ${tested} that was tested`,
      );
    }
  }
  const due = new Date(result.peaks.window.to);
  due.setUTCFullYear(due.getUTCFullYear() + 1);
  if (now >= due.getTime()) reasons.push('it is twelve months old');
  return { stale: reasons.length > 0, reasons };
}
