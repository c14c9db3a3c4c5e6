import { ServiceError } from '../../base/errors.ts';
import { readFigure } from '../../base/format-figure.ts';
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
import { quickStatistics, type RunFigures } from '../statistics.ts';
import type { Conventions } from '../summary.ts';
import { metricsFrom, type TrialMetrics } from './trial-figures.ts';

/** One combination of parameters; `index` is its place in the order of trials. */
export interface Trial {
  readonly index: number;
  readonly params: ParamValues<Params>;
  /** Number of the permutation of the bars over which it runs; absent for the bars themselves. */
  readonly permutation?: number | undefined;
  /** Part of the bars over which it runs, all of them if absent; see `pruning.ts`. */
  readonly rung?: number | undefined;
}

/** Trials by index, which are made when they are needed. */
export interface Trials {
  /** Maximum number of trials. */
  readonly capacity: number;
  /** Number of trials so far. */
  readonly count: number;
  trial(index: number): Trial;
}

/** Figures of a run that has ended, with sums of its returns if the setup has `blocks`. */
export interface TrialFigures {
  readonly metrics: TrialMetrics;
  /** `blockSumsOf` its returns. */
  readonly sums?: Float64Array | undefined;
}

/** The figures of a trial, or the message of its error. */
export type TrialResult = Trial & (TrialFigures | { readonly error: string });

/** Inputs of all trials of a search: plain data and shared memory, which can be sent to a worker. */
export interface TrialSetup {
  readonly instruments: readonly EngineInstrument[];
  readonly signals?: Signals | undefined;
  readonly config: EngineConfig;
  readonly conventions: Conventions;
  readonly timeoutMs: number;
  /** Blocks of returns for cross-validation. */
  readonly blocks?: ReturnBlocks | undefined;
  /** Seed of the permutations of the bars. */
  readonly permutationSeed?: number | undefined;
}

/** Memory and computations that successive trials of a thread reuse. */
export interface SharedByTrials {
  readonly memory: EngineMemory;
  readonly computations: SharedComputations;
}

export function metricsOf(run: RunFigures, conventions: Conventions): TrialMetrics {
  const figures = quickStatistics(run, conventions);
  return metricsFrom((name) => readFigure(figures, name));
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
    const metrics = metricsOf(run, conventions);
    if (blocks === undefined) return { ...trial, metrics };
    const returns = returnsOf(sampleEquity(run, conventions.sampling));
    return { ...trial, metrics, sums: blockSumsOf(returns, blocks) };
  } catch (error) {
    // The time limit may have ended a computation halfway.
    if (error instanceof ServiceError && error.code === 'strategy_timeout') computations.clear();
    return { ...trial, error: error instanceof Error ? error.message : String(error) };
  }
}
