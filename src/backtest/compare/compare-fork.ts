import type { RunResult } from '../../engine/run-result.ts';
import { curveStatistics } from '../curve-statistics.ts';
import { conventionsFor, statistics } from '../statistics.ts';
import { NOTHING_DIFFERS } from './comparability.ts';
import { compareCurves, compareFigures, type ComparedFigure } from './compare-runs.ts';
import { overlayCurves, type OverlaidCurves } from './overlaid-curves.ts';
import { cutTo } from './shared-window.ts';

/** A session and its fork. Values are in this order. */
export interface ForkComparison {
  /** Over the whole session. */
  readonly figures: readonly ComparedFigure[];
  /** Over the bars after the fork; empty if a run has none. */
  readonly after: readonly ComparedFigure[];
  readonly curves: OverlaidCurves;
}

/** Instants of the chart, which limit the document to some 200 kB. */
const MAX_POINTS = 2000;

/**
 * @param until time of the last bars before the fork, ms since the epoch.
 * @param barMs length of a bar, ms.
 */
export function compareFork(
  runs: readonly [session: RunResult, fork: RunResult],
  { until, barMs }: { readonly until: number; readonly barMs: number },
): ForkComparison {
  const conventions = conventionsFor(runs[0].time, { barMs });
  const parts = runs.map((run) => cutTo(run, { from: until + 1, to: Infinity }));
  const hasBars = parts.every(({ time }) => time.length > 0);
  return {
    figures: compareFigures(
      runs.map((run) => statistics(run, conventions)),
      NOTHING_DIFFERS,
    ),
    after: hasBars
      ? compareCurves(
          parts.map((part) => curveStatistics(part, conventions)),
          NOTHING_DIFFERS,
        )
      : [],
    curves: overlayCurves(runs, undefined, MAX_POINTS),
  };
}
