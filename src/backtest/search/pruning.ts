import { mergeTimes } from '../../engine/steps.ts';
import { sharpeAtLength } from '../deflated-sharpe.ts';
import type { BacktestJob } from '../job.ts';
import { windowOf } from '../windows/window-of.ts';
import type { Goal } from './goal.ts';
import { rankTrials } from './rank-trials.ts';
import type { TrialResults } from './trial-results.ts';
import type { TrialSetup } from './trial.ts';

/**
 * Parts of the bars over which the trials of a generation run first. After each part, the best third
 * continues. All trials finish a part before they are compared, so the result does not depend on the
 * number of workers. Synchronous successive halving: K. Jamieson and A. Talwalkar, "Non-stochastic
 * Best Arm Identification and Hyperparameter Optimization", AISTATS 2016.
 */
const PARTS = [1 / 9, 1 / 3] as const;
export const KEPT_SHARE = 1 / 3;

/** The job over the parts of its bars, of which each contains the one before. */
export function partsOf(job: BacktestJob): BacktestJob[] {
  const times = mergeTimes(job.instruments.map(({ bars }) => bars));
  // Each part has bars of every instrument.
  const start = Math.max(...job.instruments.map(({ bars }) => times.indexOf(bars.time[0]!)));
  return PARTS.map((part) => {
    const end = Math.min(times.length - 1, start + Math.ceil((times.length - start) * part));
    return windowOf(job, { to: times[end]! });
  });
}

/**
 * The trials that continue after a rung: the best third, and those that are as good as its last one.
 * A limit on the number of trades counts in proportion to the bars; other constraints count only over
 * all bars.
 *
 * @param indices trials with figures at this rung
 * @param share share of the bars in this rung
 */
export function survivorsOf(
  indices: Uint32Array,
  results: TrialResults,
  { rung, share, goal }: { readonly rung: number; readonly share: number; readonly goal: Goal },
): Uint32Array {
  const constraints = goal.constraints
    .filter(({ name }) => name === 'trades')
    .map((limit) => ({ ...limit, threshold: limit.threshold * share }));
  const { order, fronts } = rankTrials(
    indices,
    (index, figure) => results.figure(index, figure, rung),
    { ...goal, constraints },
  );
  const last = fronts[Math.ceil(order.length * KEPT_SHARE) - 1];
  return order.filter((_, i) => fronts[i]! <= last!).sort();
}

/** Number of bars of all instruments. */
export function barsOf({ instruments }: Pick<TrialSetup, 'instruments'>): number {
  return instruments.reduce((sum, { bars }) => sum + bars.length, 0);
}

interface Rungs {
  readonly setup: TrialSetup;
  readonly parts: readonly TrialSetup[];
}

/** Share of the bars over which the trials of a rung run. */
export function shareOfBars({ setup, parts }: Rungs, rung: number): number {
  return rung === parts.length ? 1 : barsOf(parts[rung]!) / barsOf(setup);
}

/**
 * Returns the Sharpe ratio of an ended trial for the variance between trials, from which the deflated
 * Sharpe ratio is computed (Bailey & López de Prado, 2014). The variance must not be that of trials
 * selected by their ratio. In a pruned search, only the best trials run over all bars, and their ratios
 * vary too little. The result is therefore the ratio at the first rung, converted to the length of all
 * bars.
 *
 * @returns null if it is undefined or the trial failed
 */
export function unselectedSharpe(
  search: Rungs & { readonly results: TrialResults },
  index: number,
): number | null {
  const { results } = search;
  const sharpe = results.hasFailed(index) ? Number.NaN : results.figure(index, 'sharpe', 0);
  return Number.isNaN(sharpe) ? null : sharpeAtLength(sharpe, shareOfBars(search, 0));
}
