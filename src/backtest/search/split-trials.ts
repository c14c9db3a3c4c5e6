import type { Goal } from './goal.ts';
import { rankTrials, scoresOf, type FigureOf } from './rank-trials.ts';
import type { TrialResults } from './trial-results.ts';

/** Share of the trials that are good, at most `MAX_GOOD`. */
const GOOD_SHARE = 0.15;
const MAX_GOOD = 25;

/**
 * Splits ended trials into good ones and others. With several objectives, whole fronts are good, and of
 * the front that fits only in part the trials with the greatest distance to their neighbors. Y. Ozaki et
 * al., "Multiobjective Tree-Structured Parzen Estimator for Computationally Expensive Optimization
 * Problems", GECCO 2020, which measures the last front by its hypervolume instead.
 *
 * Trials that were pruned follow those that ran longer, and failed ones come last.
 *
 * @param count number of trials, all of which have ended
 */
export function splitTrials(
  results: TrialResults,
  count: number,
  goal: Goal,
): { readonly good: readonly number[]; readonly others: readonly number[] } {
  const wanted = Math.min(MAX_GOOD, Math.ceil(GOOD_SHARE * count));
  const ranked: number[] = [];
  for (let rung = results.lastRung; rung >= 0; rung--) {
    const indices = results.endedAt(rung).filter((index) => index < count);
    const figureOf: FigureOf = (index, figure) => results.figure(index, figure, rung);
    const { order, fronts } = rankTrials(indices, figureOf, goal);
    for (let from = 0; from < order.length && ranked.length < wanted;) {
      const next = fronts.findIndex((front) => front > fronts[from]!);
      const front = order.subarray(from, next < 0 ? order.length : next);
      ranked.push(...spreadOf(front, figureOf, goal));
      from += front.length;
    }
  }
  const good = ranked.slice(0, wanted);
  const isGood = new Set(good);
  const others = Array.from({ length: count }, (_, index) => index).filter((i) => !isGood.has(i));
  return { good, others };
}

/**
 * Trials of a front, those with the greatest crowding distance first: the sum over all objectives of
 * the distance between the neighbors on both sides, infinite at the ends (Deb et al. 2002, III.B).
 */
function spreadOf(front: Uint32Array, figureOf: FigureOf, goal: Goal): number[] {
  const { objectives } = goal;
  const scores = scoresOf(front, figureOf, goal);
  const distances = new Float64Array(front.length);
  for (const [k] of objectives.entries()) {
    const scoreOf = (place: number): number => scores[place * objectives.length + k]!;
    const places = Array.from(front, (_, place) => place).toSorted(
      (a, b) => scoreOf(a) - scoreOf(b) || 0,
    );
    const range = scoreOf(places.at(-1)!) - scoreOf(places[0]!);
    if (!(range > 0 && range < Infinity)) continue;
    places.forEach((place, i) => {
      const isEnd = i === 0 || i === places.length - 1;
      distances[place]! += isEnd
        ? Infinity
        : (scoreOf(places[i + 1]!) - scoreOf(places[i - 1]!)) / range;
    });
  }
  return Array.from(front, (_, place) => place)
    .toSorted((a, b) => distances[b]! - distances[a]! || 0)
    .map((place) => front[place]!);
}
