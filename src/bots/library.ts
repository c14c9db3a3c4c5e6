/**
 * Runs bots in a program: the functions behind the commands `backtest`, `backtest sweep` and
 * `backtest walk-forward`.
 *
 * ```ts
 * const { summary, time, equity } = await backtest('bot.yaml', { params: { fast: 20 } });
 * ```
 */
import { availableParallelism, homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { backtest as runBacktest, type Outcome } from '../backtest/backtest.ts';
import type { BacktestJob } from '../backtest/job.ts';
import { TrialLedger } from '../backtest/ledger/trial-ledger.ts';
import { drawdownsOf } from '../backtest/returns.ts';
import { prepareDirectory, writeRun } from '../backtest/run-files.ts';
import { parseAxis, type AxisText } from '../backtest/search/axes.ts';
import { parseConstraint, parseObjective, type Goal } from '../backtest/search/goal.ts';
import {
  planSearch,
  type SearchMethod,
  type SearchRequest,
} from '../backtest/search/plan-search.ts';
import { runSearch } from '../backtest/search/run-search.ts';
import type { TrialMetrics } from '../backtest/search/trial-figures.ts';
import type { StrategySource } from '../backtest/strategy-source.ts';
import { ownStrategies } from '../backtest/strategy-thread.ts';
import type { Summary } from '../backtest/summary.ts';
import {
  walkForwardOutcome,
  type WalkForwardDocument,
} from '../backtest/windows/walk-forward-document.ts';
import { writeWalkForward } from '../backtest/windows/walk-forward-files.ts';
import { walkForward as runWalkForward } from '../backtest/windows/walk-forward.ts';
import { parseSpan } from '../base/calendar-span.ts';
import type { Trade } from '../engine/round-trip.ts';
import { loadBot } from './load-bot.ts';
import { signalsOver } from './models/signals.ts';
import { prepare, strategySource } from './prepare.ts';

export type { Summary, Trade, TrialMetrics, WalkForwardDocument };

/** Path of a bot file, or its content. */
export type BotSource = string | Readonly<Record<string, unknown>>;

export interface BotOptions {
  /** Directory to which relative paths of a spec object refer; the working directory by default. */
  readonly directory?: string;
  /** First and last day, which override the spec. */
  readonly from?: string;
  readonly to?: string;
  /** Last part of the data to leave out, such as `1y`. */
  readonly holdout?: string;
  /** Directory of `catalog://` datasets, and of the ledger of trials; `~/.service-local` by default. */
  readonly home?: string;
  /** Longest time without a return from the strategy; 30 by default. */
  readonly timeoutSeconds?: number;
  /** Memory of one run of your own strategy, MB; 1024 by default. */
  readonly memoryMb?: number;
  readonly signal?: AbortSignal;
}

export interface BacktestOptions extends BotOptions {
  /** Parameters of the strategy, which override the spec. */
  readonly params?: Readonly<Record<string, number | string | boolean>>;
  /** Directory for the result files, such as `equity.parquet`; by default, none are written. */
  readonly out?: string;
}

/** A run in columns; each index is one step. */
export interface RunColumns {
  /** Milliseconds since the epoch. */
  readonly time: Float64Array;
  /** Account currency. */
  readonly equity: Float64Array;
  /** Loss since the former peak as a share of it, at most 0. */
  readonly drawdown: Float64Array;
  /** Closed trades, in order of exit. */
  readonly trades: readonly Trade[];
}

export interface BacktestResult extends RunColumns {
  readonly summary: Outcome['summary'];
}

/** @throws ServiceError with a machine code, as the command `backtest` */
export async function backtest(
  bot: BotSource,
  options: BacktestOptions = {},
): Promise<BacktestResult> {
  const { params = {}, out } = options;
  const { job, timeoutMs, ledger } = await prepareBot(bot, options, params);
  if (out !== undefined) await prepareDirectory(out);
  const outcome = await runBacktest(job, {
    runId: 'library',
    timeoutMs,
    signal: options.signal,
  });
  const { summary, result } = outcome;
  ledger.record(job, 'backtest', [{ params: job.params, sharpe: summary.risk.sharpe }]);
  if (out !== undefined) await writeRun(resolve(out), job, outcome);
  return { summary, ...columnsOf(result) };
}

export interface SearchOptions extends BotOptions {
  /** Values of each parameter: a list, or a text such as `5:50:5`, `5:50` or `5:500:log`. */
  readonly params: Readonly<Record<string, string | readonly (number | string | boolean)[]>>;
  /** A grid by default. */
  readonly search?: SearchMethod;
  /** Figures by which trials are ranked; `sharpe` by default. */
  readonly objective?: readonly [string, ...string[]];
  /** Conditions that a trial must meet, such as `trades>=30`. */
  readonly where?: readonly string[];
  /** Ends trials early if they rank low over the first part of the bars. */
  readonly prune?: boolean;
  /** Number of threads; the number of processors by default. */
  readonly workers?: number;
  /** Called with the number of ended trials and the total number. */
  readonly onProgress?: (done: number, total: number) => void;
}

export interface RankedParams {
  readonly params: BacktestJob['params'];
  readonly metrics: TrialMetrics;
}

export interface SweepResult {
  /** Undefined if no trial meets the conditions. */
  readonly best: RankedParams | undefined;
  /** Trials that meet the conditions, best first. */
  readonly ranked: readonly RankedParams[];
  /** Messages of failed trials. */
  readonly errors: readonly string[];
}

/** @throws ServiceError with a machine code, as the command `backtest sweep` */
export async function sweep(bot: BotSource, options: SearchOptions): Promise<SweepResult> {
  const { job, source, timeoutMs, memoryMb, ledger } = await prepareBot(bot, options, {});
  const search = planSearch(job, requestOf(options), timeoutMs);
  const { results, trials, goal } = search;
  await runSearch(search, source, {
    ...limitsOf(options, memoryMb),
    count: (ended) => ledger.record(job, 'sweep', ended),
    onProgress: (done) => options.onProgress?.(done, trials.capacity),
  });
  const ranking = results.ranking(goal);
  const ranked = results
    .take(ranking, ranking.order.length)
    .map(({ params, metrics }) => ({ params, metrics }));
  const errors = [...results.inOrder()].flatMap((trial) => ('error' in trial ? [trial.error] : []));
  return { best: ranked[0], ranked, errors };
}

export interface WalkForwardOptions extends SearchOptions {
  /** Lengths of the windows, such as `3y` and `1y`. */
  readonly train: string;
  readonly test: string;
  /** Time left out between training and test, such as `5d`. */
  readonly embargo?: string;
  /** Begins every training window at the first bar. */
  readonly anchored?: boolean;
  /** Directory for the result files; by default, none are written. */
  readonly out?: string;
}

export interface WalkForwardResult extends RunColumns {
  /** Windows, efficiency, stability and the figures of the joined tests. */
  readonly document: Omit<WalkForwardDocument, 'files' | 'hashes'>;
}

/** @throws ServiceError with a machine code, as the command `backtest walk-forward` */
export async function walkForward(
  bot: BotSource,
  options: WalkForwardOptions,
): Promise<WalkForwardResult> {
  const { train, test, embargo, anchored = false, out } = options;
  const { job, source, timeoutMs, memoryMb, ledger } = await prepareBot(bot, options, {});
  const directory = out === undefined ? undefined : resolve(out);
  if (directory !== undefined) await prepareDirectory(directory);
  const walk = await runWalkForward(job, source, {
    ...limitsOf(options, memoryMb),
    train: parseSpan(train),
    test: parseSpan(test),
    embargo: embargo === undefined ? undefined : parseSpan(embargo),
    anchored,
    search: requestOf(options),
    timeoutMs,
    directory,
    count: (window, ended) => ledger.record(window, 'walk-forward', ended),
    onProgress: options.onProgress,
  });
  const outcome = walkForwardOutcome(walk, [], ledger.capture(job)([]));
  if (directory !== undefined) await writeWalkForward(directory, walk, outcome);
  return { document: outcome.document, ...columnsOf(walk.result) };
}

interface PreparedBot {
  readonly job: BacktestJob;
  readonly source: StrategySource;
  readonly timeoutMs: number;
  readonly memoryMb: number;
  readonly ledger: TrialLedger;
}

async function prepareBot(
  bot: BotSource,
  options: BotOptions,
  params: NonNullable<BacktestOptions['params']>,
): Promise<PreparedBot> {
  const { from, to, holdout, directory = '.', timeoutSeconds = 30, memoryMb = 1024 } = options;
  const home =
    options.home ?? process.env['SERVICE_LOCAL_HOME'] ?? join(homedir(), '.service-local');
  const timeoutMs = timeoutSeconds * 1000;
  const texts = Object.entries(params).map(([name, value]) => [name, String(value)]);
  const isFile = typeof bot === 'string';
  const loaded = loadBot(
    isFile ? resolve(bot) : resolve(directory, 'bot.json'),
    { params: Object.fromEntries(texts) as Record<string, string>, from, to, holdout },
    ownStrategies({ timeoutMs, memoryMb }).load,
    isFile ? undefined : JSON.stringify(bot),
  );
  const { job } = await prepare(loaded, { catalogueDir: join(home, 'catalogue'), assertions: [] });
  const signals = await signalsOver(loaded.models, job.instruments, options.signal);
  return {
    job: { ...job, signals },
    source: strategySource(loaded),
    timeoutMs,
    memoryMb,
    ledger: new TrialLedger(home),
  };
}

function requestOf({ params, search, objective, where, prune }: SearchOptions): SearchRequest {
  const axes = Object.entries(params).map(([name, values]): AxisText => {
    return parseAxis(`${name}=${typeof values === 'string' ? values : values.join(',')}`);
  });
  const [first, ...others] = objective ?? ['sharpe'];
  const goal: Goal = {
    objectives: [parseObjective(first), ...others.map(parseObjective)],
    constraints: (where ?? []).map(parseConstraint),
  };
  return { params: axes, method: search, goal, prune };
}

/** Memory for indicators that trials share, MB. */
const COLUMN_MB = 512;

function limitsOf({ workers, signal }: SearchOptions, memoryMb: number) {
  return { workers: workers ?? availableParallelism(), memoryMb, columnMb: COLUMN_MB, signal };
}

function columnsOf({ time, equity, initialCash, trades }: Outcome['result']): RunColumns {
  return { time, equity, drawdown: drawdownsOf(equity, initialCash), trades };
}
