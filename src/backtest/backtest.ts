import type { ReturnedIndicator } from '../engine/series/returned-indicators.ts';
import type { RunResult } from '../engine/run-result.ts';
import { mergeTimes } from '../engine/steps.ts';
import type { Bars } from '../market/bars.ts';
import { deflatedStatistics } from './deflated-sharpe.ts';
import { execute } from './execute.ts';
import type { ExecuteOptions, StrategyTraces } from './execute.ts';
import { findings, refusalsOf } from './findings.ts';
import { evaluateGates } from './gates.ts';
import { benchmarkOf, compareWithBenchmark, holdEquity, type Benchmark } from './benchmark.ts';
import type { BacktestJob } from './job.ts';
import { profileStatistics } from './profiles.ts';
import type { Profile } from './profiles.ts';
import { conventionsFor, statistics } from './statistics.ts';
import type { Summary } from './summary.ts';

export interface BacktestOptions extends ExecuteOptions {
  readonly runId: string;
  readonly profile?: Profile | undefined;
}

/** A finished run. `writeRun` adds its files and their hashes to the summary. */
export interface Outcome {
  readonly result: RunResult;
  readonly summary: Omit<Summary, 'files' | 'hashes'>;
  readonly benchmark: Benchmark;
  /** Indicators that the strategy declared; absent for a run that was not made here. */
  readonly indicators?: readonly ReturnedIndicator[] | undefined;
  /** Absent where the strategy ran in this thread. */
  readonly traces?: StrategyTraces | undefined;
}

/** Runs a job and computes its summary. */
export async function backtest(job: BacktestJob, options: BacktestOptions): Promise<Outcome> {
  const { strategy, params, config, instruments, signals } = job;
  const run = job.execute ?? execute;
  let traces: StrategyTraces | undefined;
  const onTraces = (found: StrategyTraces): void => {
    traces = found;
  };
  let indicators: readonly ReturnedIndicator[] = [];
  const onIndicators = (found: readonly ReturnedIndicator[]): void => {
    indicators = found;
  };
  const started = performance.now();
  const setup = { instruments, strategy, params, config, signals, keepsLog: true };
  const result = await run(setup, { ...options, onTraces, onIndicators });
  const wallMs = performance.now() - started;
  return { ...outcomeOf(job, result, { ...options, wallMs, traces }), indicators };
}

/**
 * Computes the summary of a finished run.
 *
 * @param job with the bars of the run
 * @param result at least one step
 */
export function outcomeOf(
  job: BacktestJob,
  result: RunResult,
  options: Pick<BacktestOptions, 'runId' | 'profile'> & {
    readonly wallMs: number;
    readonly traces?: StrategyTraces | undefined;
  },
): Outcome {
  const { params, config, instruments, lock } = job;
  const { wallMs } = options;
  const times = mergeTimes(instruments.map((instrument) => instrument.bars));
  const conventions = conventionsFor(times, { barMs: job.barMs });
  const figures = statistics(result, conventions);
  const benchmark = benchmarkOf(job, result);
  const against = compareWithBenchmark(result, benchmark, conventions);
  const deflated = deflatedStatistics(result, figures.risk.sharpe, conventions, lock.trials);
  const window = coveredWindow(instruments, result.time);
  const summary = {
    schema: 'service-local/backtest/v1' as const,
    run_id: options.runId,
    bot: job.bot,
    version: lock.spec,
    ...(job.unsaved !== undefined && { unsaved_bundle: job.unsaved }),
    lock,
    params,
    currency: job.currency,
    window,
    engine: {
      version: lock.engine,
      seed: config.seed,
      wall_ms: Math.round(wallMs * 1000) / 1000,
      bars_per_second: Math.round(window.bars / (wallMs / 1000)),
    },
    conventions,
    ...figures,
    benchmark: against.benchmark,
    undefined: { ...figures.undefined, ...against.undefined, ...deflated.undefined },
    orders: ordersOf(result),
    ambiguity: { bars: result.ambiguousBars },
    margin_calls: result.marginCalls,
    deflated_sharpe: deflated.deflated_sharpe,
    ...(job.holdout && { holdout: job.holdout }),
  };
  return {
    result,
    benchmark,
    traces: options.traces,
    summary: {
      ...summary,
      gates: evaluateGates(job.assertions, summary),
      findings: findings({
        run: result,
        statistics: figures,
        instruments,
        calendar: config.calendar,
        historyNeeds: job.historyNeeds,
        heldEquity: holdEquity(instruments, result.time.subarray(-1), result.initialCash)[0]!,
        parameters: Object.keys(params).length,
        traces: options.traces,
      }),
      ...(options.profile !== undefined && {
        profile: {
          name: options.profile,
          statistics: profileStatistics(options.profile, result, conventions),
        },
      }),
    },
  };
}

/** The window of a run over bars, which ends before them if the account is lost. */
export function coveredWindow(
  instruments: BacktestJob['instruments'],
  time: Float64Array,
): Summary['window'] {
  const end = time.at(-1)!;
  return {
    from: new Date(time[0]!).toISOString(),
    to: new Date(end).toISOString(),
    bars: sum(instruments.map(({ bars }) => countUntil(end, bars))),
  };
}

function ordersOf({ orders }: RunResult): Summary['orders'] {
  const { rejected, denied, limited: _, ...counts } = orders;
  const reasons = refusalsOf(orders);
  return {
    ...counts,
    rejected: sum(Object.values(rejected)),
    denied: sum(Object.values(denied)),
    refused: sum(Object.values(reasons)),
    reasons,
  };
}

/** Counts the bars up to `end`. */
function countUntil(end: number, { length, time }: Bars): number {
  let count = length;
  while (count > 0 && time[count - 1]! > end) count--;
  return count;
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}
