import { formatCount, formatCountOf, formatPercent, formatRatio } from '../../base/format.ts';
import { formatTime } from '../../market/bar-time.ts';
import type { Holdout, RunDeflatedSharpe, Summary } from '../summary.ts';

/** Sentences on how likely luck explains a result, for the terminal and the report. */
export function describeLuck({
  deflated_sharpe,
  holdout,
}: Pick<Summary, 'deflated_sharpe' | 'holdout'>): string[] {
  return [
    ...(deflated_sharpe === undefined ? [] : [describeTrials(deflated_sharpe)]),
    ...(holdout === undefined ? [] : [describeHoldout(holdout)]),
  ];
}

function describeTrials({
  trials,
  probability,
  expected_max_sharpe: luck,
}: RunDeflatedSharpe): string {
  const trial = `Trial ${formatCount(trials)} on these data`;
  if (probability === null || luck === null) {
    return `${trial}: too few trials have a Sharpe ratio to compare this one with luck.`;
  }
  return (
    `${trial}: the best of ${formatCount(trials)} trials without skill would have a Sharpe ratio of about ${formatRatio(luck)}. ` +
    `The probability that this run is truly better is ${formatPercent(probability)} (deflated Sharpe ratio).`
  );
}

function describeHoldout({ period, from, to, is_open, opened, trials }: Holdout): string {
  const [first, last] = [from, to].map((time) => formatTime(Date.parse(time)));
  const state = is_open ? 'is part of this run' : 'is held out and not part of this run';
  const holdout = `The last ${period}, ${first} to ${last}, ${state}`;
  if (opened === null || trials === null) return `${holdout}.`;
  const openings = opened === 0 ? 'never opened' : `opened ${formatCountOf(opened, 'time')}`;
  return `${holdout}. It was ${openings}, and ${formatCountOf(trials, 'earlier trial')} ran over its bars.`;
}
