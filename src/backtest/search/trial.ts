import { ServiceError } from '../../base/errors.ts';
import { readFigure } from '../../base/format-figure.ts';
import type { RUN_FIGURES } from '../../base/run-figures.ts';
import type { EngineConfig } from '../../engine/config.ts';
import type { EngineInstrument } from '../../engine/engine-setup.ts';
import type { EngineMemory } from '../../engine/memory.ts';
import type { Params, ParamValues } from '../../engine/params.ts';
import type { Signals } from '../../engine/model-signals.ts';
import type { SharedComputations } from '../../engine/series/shared-computations.ts';
import type { Strategy } from '../../engine/strategy.ts';
import { execute } from '../execute.ts';
import { returnsOf, sampleEquity } from '../returns.ts';
import { blockSumsOf, type ReturnBlocks } from '../robustness/block-sums.ts';
import { quickStatistics, type QuickStatistics } from '../statistics.ts';
import type { Conventions } from '../summary.ts';

/** One combination of parameters; `index` is its place in the grid. */
export interface Trial {
  readonly index: number;
  readonly params: ParamValues<Params>;
  /** Number of the permutation of the bars over which it runs; absent for the bars themselves. */
  readonly permutation?: number | undefined;
}

/** The figures that a sweep keeps of each run, in the order of the columns of `trials.csv`. */
export const TRIAL_FIGURES = [
  'sharpe',
  'total_return',
  'cagr',
  'annual_return',
  'volatility',
  'sortino',
  'calmar',
  'max_drawdown',
  'trades',
  'win_rate',
  'profit_factor',
  'fees',
  'exposure',
  'end_equity',
] as const;

type ValueAt<Path> = Path extends `${infer Block extends keyof QuickStatistics}.${infer Name}`
  ? Name extends keyof QuickStatistics[Block]
    ? QuickStatistics[Block][Name]
    : never
  : never;

export type TrialMetrics = {
  readonly [N in (typeof TRIAL_FIGURES)[number]]: ValueAt<(typeof RUN_FIGURES)[N]['path']>;
};

export function metricsFrom(
  read: (name: (typeof TRIAL_FIGURES)[number], place: number) => unknown,
): TrialMetrics {
  const entries = TRIAL_FIGURES.map((name, place) => [name, read(name, place)]);
  return Object.fromEntries(entries) as TrialMetrics;
}

/** Whether a trial that an earlier version wrote has all figures. */
export function isComplete(metrics: object): metrics is TrialMetrics {
  return TRIAL_FIGURES.every((name) => Object.hasOwn(metrics, name));
}

/** Figures of a run that has ended, with sums of its returns if the setup has `blocks`. */
export interface TrialFigures {
  readonly metrics: TrialMetrics;
  /** `blockSumsOf` its returns. */
  readonly sums?: Float64Array | undefined;
}

/** The figures of a trial, or the message of its error. */
export type TrialResult = Trial & (TrialFigures | { readonly error: string });

/** Inputs of all trials of a sweep. Plain data and shared memory, so that it can be sent to a worker. */
export interface TrialSetup {
  readonly instruments: readonly EngineInstrument[];
  readonly signals?: Signals | undefined;
  readonly config: EngineConfig;
  readonly conventions: Conventions;
  readonly timeoutMs: number;
  /** Blocks of returns for cross-validation. */
  readonly blocks?: ReturnBlocks | undefined;
  /** Decides the permutations of the bars, together with the number of each. */
  readonly permutationSeed?: number | undefined;
}

/** Memory and computations that successive trials of a thread reuse. */
export interface SharedByTrials {
  readonly memory: EngineMemory;
  readonly computations: SharedComputations;
}

/** Runs one trial. Its error becomes its result, so that the other trials continue. */
export async function runTrial(
  setup: TrialSetup,
  strategy: Strategy,
  trial: Trial,
  { memory, computations }: SharedByTrials,
): Promise<TrialResult> {
  const { instruments, signals, config, conventions, timeoutMs, blocks } = setup;
  const { params } = trial;
  try {
    const inputs = { instruments, signals, config, strategy, params };
    const request = { ...inputs, memory, computations, keepsEvents: false };
    const run = await execute(request, { timeoutMs });
    const figures = quickStatistics(run, conventions);
    const metrics = metricsFrom((name) => readFigure(figures, name));
    if (blocks === undefined) return { ...trial, metrics };
    const returns = returnsOf(sampleEquity(run, conventions.sampling));
    return { ...trial, metrics, sums: blockSumsOf(returns, blocks) };
  } catch (error) {
    // The time limit may have ended a computation halfway.
    if (error instanceof ServiceError && error.code === 'strategy_timeout') computations.clear();
    return { ...trial, error: error instanceof Error ? error.message : String(error) };
  }
}
