import { formatCount, formatCountOf } from '../../base/format.ts';

/** Number of trials of each outcome. */
export interface TrialCounts {
  readonly total: number;
  /** Trials that have ended, pruned and failed ones included. */
  readonly done: number;
  readonly failed: number;
  readonly pruned: number;
  /** Finished trials that violate a constraint. They are not among the results. */
  readonly excluded: number;
  /** Combinations that the strategy does not accept. */
  readonly skipped: number;
}

/** `90 of 184 trials, 60 pruned` */
export function describeTrials(trials: TrialCounts): string {
  const { total, done, failed, pruned, excluded, skipped } = trials;
  return [
    `${formatCount(done)} of ${formatCount(total)} trials`,
    ...(skipped > 0 ? [`${formatCountOf(skipped, 'invalid combination')} skipped`] : []),
    ...(pruned > 0 ? [`${formatCount(pruned)} pruned`] : []),
    ...(excluded > 0 ? [`${formatCount(excluded)} excluded by --where`] : []),
    ...(failed > 0 ? [`${formatCount(failed)} failed`] : []),
  ].join(', ');
}

interface RankedTrials {
  readonly trials: TrialCounts;
  readonly best: { readonly metrics: { readonly sharpe?: number | null } } | null;
}

/** Reason why a sweep has no deflated Sharpe ratio. */
export function whyNotDeflated({ trials, best }: RankedTrials): string {
  if (trials.done < trials.total) return 'not all trials are done';
  return typeof best?.metrics.sharpe !== 'number'
    ? 'the best trial has no Sharpe ratio'
    : 'too few trials have a Sharpe ratio, or the best one has too few returns';
}
