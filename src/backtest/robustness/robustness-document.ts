import { holds, type Assertion } from '../assertion.ts';
import type { BacktestJob } from '../job.ts';
import type { Axis } from '../search/axes.ts';
import type { Trial } from '../search/trial.ts';
import type { Objective } from '../search/goal.ts';
import type { Search } from '../search/plan-search.ts';
import type { SearchMethod } from '../search/search-method.ts';
import type { Conventions, Gate, Holdout, Lock, Summary } from '../summary.ts';
import type { Overfitting } from './overfitting.ts';
import {
  explainFigures,
  type ExplainedFigure,
  type RobustnessFigureName,
  type RobustnessTests,
} from './robustness-figures.ts';

/** `robustness.json`, and the document that `backtest robustness --json` prints. */
export interface RobustnessDocument {
  readonly schema: 'service-local/robustness/v1';
  readonly bot: Summary['bot'];
  readonly version: string;
  readonly lock: Lock;
  readonly window: Summary['window'];
  /** Absent if no part of the data was held out. */
  readonly holdout?: Holdout | undefined;
  readonly conventions: Conventions;
  /** Seed of the permutations and resamples. */
  readonly seed: number;
  readonly axes: readonly Axis[];
  readonly search: SearchMethod;
  /** Figure by which the parameters were chosen. */
  readonly objective: Objective;
  readonly trials: { readonly total: number; readonly failed: number };
  /** The best trial, which all runs are compared with. */
  readonly chosen: Pick<Trial, 'params'> & { readonly metrics: RobustnessTests['chosen'] };
  /** The figures that gates can assert, with a sentence each. */
  readonly figures: Readonly<Record<RobustnessFigureName, ExplainedFigure>>;
  readonly overfitting: (Omit<Overfitting, 'logits'> & { readonly logits: Histogram }) | null;
  readonly permutations:
    | (Exclude<RobustnessTests['permutations'], string> & {
        /** Best objective of each permutation that has one. */
        readonly best: Histogram;
      })
    | null;
  readonly bootstrap: Exclude<RobustnessTests['bootstrap'], string> | null;
  readonly neighbors: RobustnessTests['neighbors'];
  readonly stresses: RobustnessTests['stresses'];
  readonly gates: readonly RobustnessGate[];
}

export interface RobustnessGate extends Omit<Gate, 'reason'> {
  /** One sentence about the figure. */
  readonly explanation: string;
}

/** Numbers of values in bins of equal width; the last bin includes its end. */
export interface Histogram {
  readonly from: number;
  readonly to: number;
  readonly counts: readonly number[];
}

export interface RobustnessResults {
  readonly tests: RobustnessTests;
  /** Best objective of each permutation, NaN if undefined. */
  readonly permuted: Float64Array;
  readonly chosen: Trial;
  readonly trials: RobustnessDocument['trials'];
  readonly search: Pick<Search, 'axes' | 'method'>;
  readonly conventions: Conventions;
  readonly seed: number;
}

export function robustnessDocument(
  job: BacktestJob,
  { tests, permuted, chosen, trials, search, conventions, seed }: RobustnessResults,
  assertions: readonly Assertion<RobustnessFigureName>[],
): RobustnessDocument {
  const { overfitting, permutations, bootstrap, neighbors, stresses } = tests;
  const times = job.instruments.map(({ bars }) => bars.time.subarray(0, bars.length));
  const figures = explainFigures(tests);
  return {
    schema: 'service-local/robustness/v1',
    bot: job.bot,
    version: job.lock.spec,
    lock: job.lock,
    window: {
      from: new Date(Math.min(...times.map((time) => time[0]!))).toISOString(),
      to: new Date(Math.max(...times.map((time) => time.at(-1)!))).toISOString(),
      bars: times.reduce((sum, { length }) => sum + length, 0),
    },
    conventions,
    seed,
    axes: search.axes,
    search: search.method,
    objective: tests.objective,
    trials,
    chosen: { params: chosen.params, metrics: tests.chosen },
    figures,
    overfitting:
      typeof overfitting === 'string'
        ? null
        : { ...overfitting, logits: histogramOf(overfitting.logits, 24) },
    permutations:
      typeof permutations === 'string'
        ? null
        : { ...permutations, best: histogramOf(permuted, 24) },
    bootstrap: typeof bootstrap === 'string' ? null : bootstrap,
    neighbors,
    stresses,
    gates: assertions.map((assertion) => {
      const { value, explanation } = figures[assertion.name];
      return { ...assertion, value, pass: value !== null && holds(value, assertion), explanation };
    }),
  };
}

function histogramOf(values: Float64Array, bins: number): Histogram {
  const defined = values.filter((value) => !Number.isNaN(value));
  const from = defined.reduce((least, value) => Math.min(least, value), Infinity);
  const to = defined.reduce((most, value) => Math.max(most, value), -Infinity);
  if (defined.length === 0) return { from: 0, to: 0, counts: [] };
  const counts = Array.from({ length: bins }, () => 0);
  for (const value of defined) {
    const share = to > from ? (value - from) / (to - from) : 0;
    counts[Math.min(bins - 1, Math.floor(share * bins))]!++;
  }
  return { from, to, counts };
}
