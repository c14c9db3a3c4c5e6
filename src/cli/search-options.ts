import { parseAxis } from '../backtest/search/axes.ts';
import { HIGHEST_SHARPE, parseConstraint, parseObjective } from '../backtest/search/goal.ts';
import type { Constraint, Goal, Objective } from '../backtest/search/goal.ts';
import type { SearchRequest } from '../backtest/search/plan-search.ts';
import { SAMPLING_DEFAULTS, type SearchMethod } from '../backtest/search/search-method.ts';
import { ServiceError } from '../base/errors.ts';
import { parseCountIn } from './parse-count.ts';

/** Options of commands that search for parameters. */
export const SEARCH_OPTIONS = {
  param: {
    short: 'p',
    value: 'name=values',
    description: 'values of a parameter: FROM:TO:STEP, A,B,C, FROM:TO or FROM:TO:log',
    repeat: true,
    parse: parseAxis,
  },
  search: {
    value: 'method',
    description:
      'how combinations are chosen: all of them (grid), at random, or from earlier results (tpe)',
    choices: ['grid', 'random', 'tpe'],
    default: 'grid',
  },
  trials: {
    value: 'n',
    description: 'number of trials of --search random and tpe; 100 by default',
    parse: parseCountIn(1, 100_000),
  },
  seed: {
    value: 'n',
    description: 'seed of --search random and tpe; 1 by default',
    parse: parseCountIn(0, 2 ** 32 - 1),
  },
  objective: {
    value: 'figure',
    description:
      'figure by which trials are ranked, sharpe by default; repeat it for a Pareto front of several',
    repeat: true,
    parse: parseObjective,
  },
  where: {
    value: 'condition',
    description: "condition that a trial must meet, such as 'trades>=30'",
    repeat: true,
    parse: parseConstraint,
  },
} as const;

export const PRUNE_OPTION = {
  prune: { description: 'end trials early if they rank low over the first part of the bars' },
} as const;

interface SearchOptions {
  readonly param: SearchRequest['params'];
  readonly search: SearchMethod['kind'];
  readonly trials: number | undefined;
  readonly seed: number | undefined;
  readonly objective: readonly Objective[];
  readonly where: readonly Constraint[];
  readonly prune?: boolean;
}

/** @throws ServiceError `usage` for options that exclude each other, or without a parameter */
export function searchRequestOf(options: SearchOptions): SearchRequest {
  const { param, search, trials, seed, prune } = options;
  if (param.length === 0) {
    throw new ServiceError('usage', 'a search needs at least one --param', {
      remedy: 'Specify a parameter and its values, for example -p fast=5:50:5.',
    });
  }
  if (search === 'grid' && (trials ?? seed) !== undefined) {
    throw new ServiceError('usage', '--trials and --seed need --search random or tpe', {
      remedy: 'A grid runs every combination; choose another --search, or leave them out.',
    });
  }
  const method: SearchMethod =
    search === 'grid'
      ? { kind: search }
      : {
          kind: search,
          trials: trials ?? SAMPLING_DEFAULTS.trials,
          seed: seed ?? SAMPLING_DEFAULTS.seed,
        };
  return { params: param, method, goal: goalOf(options), prune };
}

export function goalOf({ objective, where }: Pick<SearchOptions, 'objective' | 'where'>): Goal {
  const [first = HIGHEST_SHARPE.objectives[0], ...others] = objective;
  return { objectives: [first, ...others], constraints: where };
}
