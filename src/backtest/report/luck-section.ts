import { formatCount, formatPercent, formatRatio } from '../../base/format.ts';
import { html, type Html, nothing } from '../../base/html.ts';
import type { RunDeflatedSharpe, Summary } from '../summary.ts';

/** Says how many trials have been run on the data of this run. */
export function luckSection({ deflated_sharpe: deflated }: Summary): Html {
  if (deflated === undefined) return nothing;
  return html`<p class="judgement">
    <strong>Trial ${formatCount(deflated.trials)} on these data.</strong> ${judgement(deflated)}
  </p>`;
}

function judgement({ trials, probability, expected_max_sharpe: luck }: RunDeflatedSharpe): string {
  if (probability === null || luck === null) {
    return 'Too few trials have a Sharpe ratio to compare this one with luck.';
  }
  return (
    `The expected Sharpe ratio of the best of ${formatCount(trials)} trials without skill is ` +
    `${formatRatio(luck)}; the probability that this run is truly better is ${formatPercent(probability)} ` +
    '(deflated Sharpe ratio).'
  );
}
