import { HIGHEST_SHARPE, parseConstraint, parseObjective } from '../../backtest/search/goal.ts';
import { parseAxis } from '../../backtest/search/axes.ts';
import type { SearchRequest } from '../../backtest/search/plan-search.ts';
import { SAMPLING_DEFAULTS, type SearchMethod } from '../../backtest/search/search-method.ts';
import type { WindowOptions } from '../../backtest/windows/plan-windows.ts';
import { parseSpan } from '../../base/calendar-span.ts';
import { ServiceError } from '../../base/errors.ts';
import type { AnalysisKind } from './analysis-kinds.ts';

/** Settings of an analysis, in the notation of the command options. */
export interface Analysis {
  /** Such as `fast=5:50:5`. */
  readonly parameters?: readonly string[] | undefined;
  readonly method?: SearchMethod['kind'] | undefined;
  readonly trials?: number | undefined;
  readonly seed?: number | undefined;
  readonly objectives?: readonly string[] | undefined;
  /** Such as `trades>=30`. */
  readonly where?: readonly string[] | undefined;
  readonly prune?: boolean | undefined;
  /** Length of a training window of a walk-forward analysis, such as `3y`. */
  readonly train?: string | undefined;
  readonly test?: string | undefined;
  readonly anchored?: boolean | undefined;
  readonly embargo?: string | undefined;
  readonly permutations?: number | undefined;
  readonly blocks?: number | undefined;
}

/** @throws ServiceError `invalid_request` */
export function searchOf(kind: AnalysisKind, asked: Analysis): SearchRequest {
  const { parameters = [], method: of = 'grid', trials, seed, prune } = asked;
  if (parameters.length === 0 && kind !== 'robustness') {
    throw new ServiceError('invalid_request', 'parameters names no parameter to search', {
      remedy: 'Name at least one with its values, such as fast=5:50:5.',
    });
  }
  const sampled = { ...SAMPLING_DEFAULTS, ...defined({ trials, seed }) };
  return asRequestFault(() => {
    const [first = HIGHEST_SHARPE.objectives[0], ...others] = (asked.objectives ?? []).map((one) =>
      parseObjective(one),
    );
    return {
      params: parameters.map((one) => parseAxis(one)),
      method: of === 'grid' ? { kind: of } : { kind: of, ...sampled },
      goal: {
        objectives: [first, ...others],
        constraints: (asked.where ?? []).map((one) => parseConstraint(one)),
      },
      prune,
    };
  });
}

function defined<T extends object>(values: T): { [K in keyof T]?: NonNullable<T[K]> } {
  const given = Object.entries(values).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given) as never;
}

/** @throws ServiceError `invalid_request` */
export function windowsOf({ train, test, anchored = false, embargo }: Analysis): WindowOptions {
  if (train === undefined || test === undefined) {
    throw new ServiceError('invalid_request', 'a walk-forward analysis needs train and test', {
      remedy: 'Set the lengths of the windows, such as train 3y and test 1y.',
    });
  }
  return asRequestFault(() => ({
    train: parseSpan(train),
    test: parseSpan(test),
    embargo: embargo === undefined ? undefined : parseSpan(embargo),
    anchored,
  }));
}

/** Converts an error about a command option to one about a request. */
export function asRequestFault<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code !== 'usage') throw error;
    const { message, remedy } = error;
    throw new ServiceError('invalid_request', message, remedy === undefined ? {} : { remedy });
  }
}
