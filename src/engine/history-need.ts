import { followedBy, sliceBars, type Bars } from '../market/bars.ts';
import { parseTimeframe } from '../market/timeframe.ts';
import { CoarseBars, type BarKind } from './series/coarse-bars.ts';
import type { DeclaredIndicator } from './series/series-graph.ts';
import { barsOf } from './series/warm-up.ts';

/** Bars of an instrument in a window, and those before it. */
export interface History {
  readonly bars: Bars;
  readonly before: Bars;
}

/** Bars of one timeframe that declared indicators need before a window, and those that exist. */
export interface HistoryNeed {
  /** Empty for the bars of the run. */
  readonly timeframe: string;
  /** Bars with which all indicators are ready at the first bar of the window. */
  readonly needed: number;
  /** By symbol: bars before the window, and longer bars that are complete at its first bar. */
  readonly given: Readonly<Record<string, number>>;
}

/**
 * Counts the bars before a window as the engine does, for each timeframe of the indicators. The bars of
 * the run come first.
 *
 * @param barMs length of the bars of the run
 * @param histories by symbol
 * @throws ServiceError `invalid_data` if the bars do not form longer ones.
 */
export function historyNeeds(
  declared: readonly DeclaredIndicator[],
  kind: BarKind,
  barMs: number,
  histories: Readonly<Record<string, History>>,
): HistoryNeed[] {
  const needs = new Map([['', 0]]);
  for (const { timeframe, warmUp } of declared) {
    const ready = barsOf(warmUp.ready, lengthOf(timeframe, barMs), kind.calendar);
    needs.set(timeframe, Math.max(needs.get(timeframe) ?? 0, ready));
  }
  return [...needs].map(([timeframe, needed]) => {
    const given = Object.entries(histories).map(([symbol, { bars, before }]): [string, number] => {
      if (timeframe === '') return [symbol, before.length];
      const known = followedBy(before, sliceBars(bars, 0, 1));
      return [symbol, coarseBars(known, kind, timeframe).countAt(known.length - 1)];
    });
    return { timeframe, needed, given: Object.fromEntries(given) };
  });
}

/** Length of the bars of a declared indicator, ms. */
export function lengthOf(timeframe: string, barMs: number): number {
  return timeframe === '' ? barMs : parseTimeframe(timeframe).ms;
}

/**
 * Returns the time of the earliest bar at which a window can begin so that the indicators have the bars
 * that they need; undefined if no such bar exists.
 */
export function earliestStart(
  needs: readonly HistoryNeed[],
  kind: BarKind,
  histories: readonly History[],
): number | undefined {
  let start = -Infinity;
  for (const { bars, before } of histories) {
    const all = followedBy(before, bars);
    for (const { timeframe, needed } of needs) {
      const first = firstReady(all, kind, timeframe, needed);
      if (first >= all.length) return undefined;
      start = Math.max(start, all.time[first]!);
    }
  }
  return start;
}

/** Index of the bar of the run; infinite if the bars are too few. */
function firstReady(bars: Bars, kind: BarKind, timeframe: string, needed: number): number {
  if (timeframe === '' || needed === 0) return needed;
  const coarse = coarseBars(bars, kind, timeframe);
  const isEnough = coarse.countAt(bars.length - 1) >= needed;
  return isEnough ? coarse.completedAt[needed - 1]! : Infinity;
}

function coarseBars(bars: Bars, kind: BarKind, timeframe: string): CoarseBars {
  const coarse = new CoarseBars(kind, timeframe);
  coarse.extend(bars, bars.length);
  return coarse;
}
