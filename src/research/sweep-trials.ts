import { hash } from 'node:crypto';
import { deflatedSharpe } from '../backtest/deflated-sharpe.ts';
import { returnsOf, sampleEquity } from '../backtest/returns.ts';
import type { EarlierTrials, Summary } from '../backtest/summary.ts';
import { ServiceError } from '../base/errors.ts';
import type { RunFigure } from '../base/run-figure.ts';
import { RUN_FIGURES } from '../base/run-figures.ts';
import { at, ifExists, LONGEST_FILE, read, type Ask } from './call-api.ts';
import { parseCsv } from './parse-csv.ts';

/** Most combinations of parameters in one sweep. */
export const MOST_COMBINATIONS = 50;

type Value = number | boolean | string;
export type Params = Readonly<Record<string, Value>>;

export type Grid = Readonly<Record<string, readonly Value[]>>;

/** A random sample of a grid. */
export interface Sample {
  /** At most `MOST_COMBINATIONS`. */
  readonly trials: number;
  readonly seed: number;
}

/**
 * Lists the combinations of the values, or a sample of them without repetition; the last parameter varies
 * fastest.
 *
 * @throws ServiceError `invalid_request` with the reason `too_many_combinations`.
 */
export function combinationsOf(grid: Grid, sample: Sample | undefined): Params[] {
  const axes = Object.entries(grid).map(([name, all]) => [name, [...new Set(all)]] as const);
  const count = axes.reduce((product, [, all]) => product * all.length, 1);
  if (sample === undefined && count > MOST_COMBINATIONS) {
    throw new ServiceError(
      'invalid_request',
      `the grid has ${count} combinations; a sweep runs at most ${MOST_COMBINATIONS}`,
      {
        reason: 'too_many_combinations',
        remedy: 'Give fewer values for some parameters, or set sample to run some combinations.',
      },
    );
  }
  if (sample !== undefined && count > MOST_SAMPLED) {
    throw new ServiceError(
      'invalid_request',
      `the grid has ${count} combinations, but a sample can be drawn from at most ${MOST_SAMPLED}`,
      { reason: 'too_many_combinations', remedy: 'Give fewer values for some parameters.' },
    );
  }
  return placesOf(count, sample).map((place) => {
    let rest = place;
    const chosen = axes.toReversed().map(([name, all]) => {
      const value = all[rest % all.length]!;
      rest = Math.floor(rest / all.length);
      return [name, value] as const;
    });
    return Object.fromEntries(chosen.toReversed());
  });
}

/** From more combinations, the remainder of a 48-bit number would not draw all equally often. */
const MOST_SAMPLED = 2 ** 32;

/** Places in a grid in ascending order: all of them without a sample, or if it is as large as the grid. */
function placesOf(count: number, sample: Sample | undefined): number[] {
  if (sample === undefined || sample.trials >= count) {
    return Array.from({ length: count }, (_, place) => place);
  }
  const places = new Set<number>();
  for (let draw = 0; places.size < sample.trials; draw += 1) {
    const digest = hash('sha256', `${sample.seed} ${draw}`);
    places.add(Number.parseInt(digest.slice(0, 12), 16) % count);
  }
  return [...places].toSorted((a, b) => a - b);
}

/** One combination of a sweep. */
export interface Trial {
  readonly task_id: string;
  readonly params: Params;
  readonly status: string;
  readonly figures?: Readonly<Record<string, number>>;
  readonly started_at: string | null;
  readonly ended_at: string | null;
  /** Trials in the ledger of the server when the run started. */
  readonly earlier?: EarlierTrials | undefined;
}

/** Paths of the figures for which a lower value is better. */
const LOWER_IS_BETTER: ReadonlySet<string> = new Set(
  Object.values(RUN_FIGURES).flatMap((figure: RunFigure) =>
    figure.better === 'lower' ? [figure.path] : [],
  ),
);

/** Sorts trials by the metric, best first; trials without the metric come last. */
export function ranked(trials: readonly Trial[], metric: string): Trial[] {
  const sign = LOWER_IS_BETTER.has(metric) ? -1 : 1;
  const worth = ({ figures }: Trial): number => {
    const value = figures?.[metric];
    return value === undefined ? -Infinity : sign * value;
  };
  return trials.toSorted((a, b) => worth(b) - worth(a) || 0);
}

/**
 * Returns the trials in the ledger at the start of the run that found most of them, and the trials of
 * the sweep that were not yet in the ledger, such as that run itself. A repeated trial that ran at the
 * same time counts twice.
 */
function countedTrials(trials: readonly Trial[]): {
  readonly earlier?: EarlierTrials | undefined;
  readonly others: readonly Trial[];
} {
  // In the order of their ids, so that the figures do not depend on the order of the trials.
  const last = trials
    .toSorted((a, b) => (a.task_id < b.task_id ? -1 : 1))
    .reduce((a, b) => ((b.earlier?.count ?? -1) > (a.earlier?.count ?? -1) ? b : a));
  const { earlier, started_at } = last;
  if (earlier === undefined || started_at === null) return { others: trials };
  const others = trials.filter(
    (trial) => trial === last || (trial.ended_at !== null && trial.ended_at > started_at),
  );
  return { earlier, others };
}

/**
 * Computes the deflated Sharpe ratio of the trial with the highest Sharpe ratio, from the equity of its
 * run and all trials on these data in the ledger of the server.
 *
 * @param trials all trials of the sweep, after each has ended.
 * @returns null if no trial has a Sharpe ratio, or the run is too long to read its equity.
 */
export async function deflatedSharpeOf(
  ask: Ask,
  trials: readonly Trial[],
  signal: AbortSignal,
): Promise<(ReturnType<typeof deflatedSharpe> & { readonly task_id: string }) | null> {
  const [best] = ranked(trials, SHARPE);
  if (best?.figures?.[SHARPE] === undefined) return null;
  const { task_id } = best;
  const path = at`/tasks/${task_id}/files/equity.csv`;
  const file = await ifExists(read<string>(ask, path, signal));
  if (file === undefined || file.length >= LONGEST_FILE) return null;
  const rows = parseCsv(file);
  const { equity, conventions } = await read<Pick<Summary, 'equity' | 'conventions'>>(
    ask,
    at`/tasks/${task_id}/result`,
    signal,
  );
  const curve = {
    time: Float64Array.from(rows, (row) => Date.parse(row['time']!)),
    equity: Float64Array.from(rows, (row) => Number(row['equity'])),
    initialCash: equity.start,
  };
  const { earlier, others } = countedTrials(trials);
  const judged = deflatedSharpe(
    returnsOf(sampleEquity(curve, conventions.sampling)),
    others.map(({ figures }) => figures?.[SHARPE] ?? null),
    conventions.periods_per_year,
    earlier,
  );
  return judged === undefined ? null : { task_id, ...judged };
}

const SHARPE = 'risk.sharpe';
