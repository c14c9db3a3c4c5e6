import { csvCell } from '../result-csv.ts';
import type { Search } from './plan-search.ts';
import { barsOf } from './pruning.ts';
import { TRIAL_FIGURES } from './trial-figures.ts';
import type { TrialResult } from './trial.ts';

/**
 * Lines of `trials.csv`: the parameters, figures and error of each trial that has ended. A search in
 * generations adds the number of the generation; pruning adds the bars after which a trial was pruned. A
 * pruned trial has no figures there, since they are not comparable.
 */
export function* trialLines({ results, trials, parts }: Search): Generator<string> {
  const metrics = results.failed < results.done ? TRIAL_FIGURES : [];
  const { generationSize } = trials;
  const isPruning = results.lastRung > 0;
  let params: readonly string[] | undefined;
  for (const result of results.inOrder()) {
    if (params === undefined) {
      params = Object.keys(result.params);
      const names = [
        ...(generationSize === undefined ? [] : ['generation']),
        ...params,
        ...metrics,
        ...(isPruning ? ['pruned_after_bars'] : []),
        'error',
      ];
      yield `${names.map(csvCell).join(',')}\n`;
    }
    const prunedAt = rungOfPruned(result, results.lastRung);
    const cells = [
      ...(generationSize === undefined ? [] : [Math.floor(result.index / generationSize) + 1]),
      ...params.map((name) => result.params[name]),
      ...metrics.map((name) =>
        'metrics' in result && prunedAt === undefined ? result.metrics[name] : null,
      ),
      ...(isPruning ? [prunedAt === undefined ? null : barsOf(parts[prunedAt]!)] : []),
      'error' in result ? result.error : null,
    ];
    yield `${cells.map((cell) => csvCell(cell ?? '')).join(',')}\n`;
  }
  if (params === undefined) yield 'error\n';
}

function rungOfPruned({ rung }: TrialResult, lastRung: number): number | undefined {
  return rung !== undefined && rung < lastRung ? rung : undefined;
}
