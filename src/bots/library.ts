/**
 * Runs bots in a program: the functions behind the commands `backtest`, `backtest sweep`,
 * `backtest walk-forward` and `backtest robustness`.
 *
 * ```ts
 * const { summary, time, equity } = await backtest('bot.yaml', { params: { fast: 20 } });
 * ```
 *
 * Each function throws a `ServiceError` with the same `code` as its command: `usage` for a wrong option,
 * `invalid_spec` with all `problems` of a bot, `invalid_data`, `strategy_failed` and so on. After an abort,
 * it throws the reason of the signal instead, by default an `AbortError`. Finished trials remain in the
 * ledger. With `out`, `sweep`, `walkForward` and `robustness` save finished runs, and the same call resumes.
 */
import { availableParallelism, homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { backtest as runBacktest, type Outcome } from '../backtest/backtest.ts';
import type { BacktestJob } from '../backtest/job.ts';
import { parseAssertion } from '../backtest/gates.ts';
import { bySeverity, trialsNotCounted } from '../backtest/findings.ts';
import { countedRun } from '../backtest/ledger/counted-run.ts';
import { CountedTrials } from '../backtest/ledger/counted-trials.ts';
import type { RobustnessDocument } from '../backtest/robustness/robustness-document.ts';
import { writeRobustness } from '../backtest/robustness/robustness-files.ts';
import {
  planRobustness,
  testRobustness,
  trialsOf,
} from '../backtest/robustness/test-robustness.ts';
import { drawdownsOf } from '../backtest/returns.ts';
import { prepareDirectory, writeRun } from '../backtest/run-files.ts';
import { parseAxisValues, type AxisText } from '../backtest/search/axes.ts';
import { parseConstraint, parseObjective, type Goal } from '../backtest/search/goal.ts';
import { planSearch, type SearchRequest } from '../backtest/search/plan-search.ts';
import { runSearch } from '../backtest/search/run-search.ts';
import { withTrialPool } from '../backtest/search/trial-pool.ts';
import { finishSweep } from '../backtest/search/sweep-document.ts';
import { sweepFindings } from '../backtest/search/sweep-findings.ts';
import type { TrialMetrics } from '../backtest/search/trial-figures.ts';
import type { StrategySource } from '../backtest/strategy-source.ts';
import { ownStrategies } from '../backtest/strategy-thread.ts';
import { withOutside } from '../backtest/run-lock.ts';
import type { Finding, Summary } from '../backtest/summary.ts';
import {
  walkForwardOutcome,
  type WalkForwardDocument,
} from '../backtest/windows/walk-forward-document.ts';
import { writeWalkForward } from '../backtest/windows/walk-forward-files.ts';
import { walkForward as runWalkForward } from '../backtest/windows/walk-forward.ts';
import { parseSpan } from '../base/calendar-span.ts';
import { ServiceError } from '../base/errors.ts';
import type { Trade } from '../engine/round-trip.ts';
import {
  backtestOptions,
  checkOptions,
  inOption,
  robustnessOptions,
  searchMethodOf,
  sweepOptions,
  walkForwardOptions,
  writeContent,
  type BacktestOptions,
  type BotOptions,
  type ParamChoice,
  type ParamValue,
  type RobustnessOptions,
  type SearchChoice,
  type SearchOptions,
  type SweepOptions,
  type WalkForwardOptions,
} from './library-options.ts';
import { loadBot } from './load-bot.ts';
import { signalsOver } from './models/signals.ts';
import { prepare, strategySource } from './prepare.ts';

export type { ServiceError };
export type {
  BacktestOptions,
  BotOptions,
  Finding,
  ParamChoice,
  ParamValue,
  RobustnessDocument,
  RobustnessOptions,
  SearchChoice,
  SearchOptions,
  Summary,
  SweepOptions,
  Trade,
  TrialMetrics,
  WalkForwardDocument,
  WalkForwardOptions,
};

/** Path of a bot file, or its content. */
export type BotSource = string | Readonly<Record<string, unknown>>;

/** A run in columns; each index is one step. */
export interface RunColumns {
  /** Milliseconds since the epoch. */
  readonly time: Float64Array;
  /** Account currency. */
  readonly equity: Float64Array;
  /** Loss since the highest equity so far, as a share of it; at most 0. */
  readonly drawdown: Float64Array;
  /** Closed trades, in order of exit. */
  readonly trades: readonly Trade[];
}

/** Result of `backtest`. */
export interface BacktestResult extends RunColumns {
  readonly summary: Outcome['summary'];
}

/** Runs a bot over its data. */
export async function backtest(
  bot: BotSource,
  options: BacktestOptions = {},
): Promise<BacktestResult> {
  checkOptions(backtestOptions, options);
  const { params = {}, out, signal, profile } = options;
  const { job: prepared, timeoutMs, counted, withFaults } = await prepareBot(bot, options, params);
  if (out !== undefined) await prepareDirectory(out);
  const lock = counted.capture(prepared)([prepared]);
  const job: BacktestJob = { ...prepared, lock, holdout: counted.useHoldout(prepared) };
  const run = () => runBacktest(job, { runId: 'library', profile, timeoutMs, signal });
  const outcome = await countedRun(job, counted, run, signal);
  const { result } = outcome;
  const summary = {
    ...outcome.summary,
    lock: withOutside(lock, outcome.traces?.outside),
    findings: withFaults(outcome.summary.findings),
  };
  if (out !== undefined) await writeRun(resolve(out), job, { ...outcome, summary });
  return { summary, ...columnsOf(result) };
}

/** A trial of a search. */
export interface RankedParams {
  /** All parameters of the strategy. */
  readonly params: BacktestJob['params'];
  readonly metrics: TrialMetrics;
}

/** Result of `sweep`. */
export interface SweepResult {
  /** Undefined if no trial meets the conditions. */
  readonly best: RankedParams | undefined;
  /** Trials that meet the conditions, best first. */
  readonly ranked: readonly RankedParams[];
  /** Messages of failed trials. */
  readonly errors: readonly string[];
  /** Doubts about the results of all trials. */
  readonly findings: readonly Finding[];
}

/** Runs a bot with many combinations of parameters, and ranks them. */
export async function sweep(bot: BotSource, options: SweepOptions): Promise<SweepResult> {
  checkOptions(sweepOptions, options);
  const { job, source, timeoutMs, memoryMb, counted, withFaults } = await prepareBot(
    bot,
    options,
    {},
  );
  const search = planSearch(job, requestOf(options), timeoutMs);
  const { results, trials, goal } = search;
  const directory = options.out === undefined ? undefined : resolve(options.out);
  if (directory !== undefined) await prepareDirectory(directory);
  const lockWith = counted.capture(job);
  const limits = limitsOf(options, memoryMb);
  await withTrialPool(source, limits, (pool) =>
    runSearch(search, pool, {
      directory,
      signal: options.signal,
      count: (ended) => counted.record(job, 'sweep', ended),
      onProgress: (done) => options.onProgress?.(done, trials.capacity),
    }),
  );
  if (directory !== undefined) {
    const held = { ...job, lock: lockWith(results.inOrder()), holdout: counted.useHoldout(job) };
    await finishSweep({ ...search, job: held }, directory);
  }
  const ranking = results.ranking(goal);
  const ranked = results
    .take(ranking, ranking.order.length)
    .map(({ params, metrics }) => ({ params, metrics }));
  const errors = [...results.inOrder()].flatMap((trial) => ('error' in trial ? [trial.error] : []));
  return { best: ranked[0], ranked, errors, findings: withFaults(sweepFindings(job)) };
}

/** Result of `walkForward`: the joined tests in columns. */
export interface WalkForwardResult extends RunColumns {
  /** Windows, efficiency, stability and the figures of the joined tests. */
  readonly document: Omit<WalkForwardDocument, 'files' | 'hashes'>;
}

/** Chooses parameters in each training window, and tests them in the window that follows. */
export async function walkForward(
  bot: BotSource,
  options: WalkForwardOptions,
): Promise<WalkForwardResult> {
  checkOptions(walkForwardOptions, options);
  const { train, test, embargo, anchored = false, out } = options;
  const { job, source, timeoutMs, memoryMb, counted, withFaults } = await prepareBot(
    bot,
    options,
    {},
  );
  const directory = out === undefined ? undefined : resolve(out);
  if (directory !== undefined) await prepareDirectory(directory);
  const walk = await runWalkForward(job, source, {
    ...limitsOf(options, memoryMb),
    train: inOption('train', () => parseSpan(train)),
    test: inOption('test', () => parseSpan(test)),
    embargo: embargo === undefined ? undefined : inOption('embargo', () => parseSpan(embargo)),
    anchored,
    search: requestOf(options),
    timeoutMs,
    directory,
    count: (window, ended) => counted.record(window, 'walk-forward', ended),
    onProgress: options.onProgress,
  });
  const { tests, document } = walkForwardOutcome(walk, [], {
    trials: counted.capture(job)([]).trials,
    holdout: counted.useHoldout(job),
  });
  const outcome = { tests, document: { ...document, findings: withFaults(document.findings) } };
  if (directory !== undefined) await writeWalkForward(directory, walk, outcome);
  return { document: outcome.document, ...columnsOf(walk.result) };
}

/** Result of `robustness`. */
export interface RobustnessResult extends RobustnessDocument {
  /** Absent if all trials are counted. */
  readonly findings?: readonly Finding[];
}

/**
 * Tests whether the result of a bot, or of the best of the given parameters, is luck, and how much it
 * depends on exact conditions.
 */
export async function robustness(
  bot: BotSource,
  options: RobustnessOptions = {},
): Promise<RobustnessResult> {
  checkOptions(robustnessOptions, options);
  const { seed = 1, blocks = 16, permutations, params = {}, out } = options;
  const { job, source, timeoutMs, memoryMb, counted, withFaults } = await prepareBot(
    bot,
    options,
    {},
  );
  const directory = out === undefined ? undefined : resolve(out);
  const search = requestOf({ ...options, params }, seed);
  const request = { search, seed, blocks, permutations, assertions: [] };
  const plan = planRobustness(job, request, timeoutMs);
  if (directory !== undefined) await prepareDirectory(directory);
  const lockWith = counted.capture(job);
  const tested = await testRobustness(plan, source, {
    ...limitsOf(options, memoryMb),
    directory,
    count: (ended) => counted.record(job, 'robustness', ended),
    onProgress: options.onProgress,
  });
  const document: RobustnessDocument = {
    ...tested,
    lock: lockWith(trialsOf(plan, tested)),
    holdout: counted.useHoldout(job),
  };
  if (directory !== undefined) await writeRobustness(directory, document);
  const findings = withFaults([]);
  return findings.length === 0 ? document : { ...document, findings };
}

interface PreparedBot {
  readonly job: BacktestJob;
  readonly source: StrategySource;
  readonly timeoutMs: number;
  readonly memoryMb: number;
  readonly counted: CountedTrials;
  /** Adds a finding if trials are not counted. */
  readonly withFaults: (findings: readonly Finding[]) => readonly Finding[];
}

async function prepareBot(
  bot: BotSource,
  options: BotOptions & Pick<BacktestOptions, 'assert' | 'benchmark' | 'openHoldout'>,
  params: Readonly<Record<string, ParamValue>>,
): Promise<PreparedBot> {
  const { from, to, holdout, directory = '.', timeoutSeconds = 30, memoryMb = 1024 } = options;
  const { assert = [], benchmark, openHoldout } = options;
  options.signal?.throwIfAborted();
  const home =
    options.home ?? process.env['SERVICE_LOCAL_HOME'] ?? join(homedir(), '.service-local');
  const timeoutMs = timeoutSeconds * 1000;
  const texts = Object.entries(params).map(([name, value]) => [name, String(value)]);
  const isFile = typeof bot === 'string';
  const loaded = loadBot(
    isFile ? resolve(bot) : resolve(directory, 'bot.json'),
    { params: Object.fromEntries(texts) as Record<string, string>, from, to, holdout },
    ownStrategies({ timeoutMs, memoryMb }).load,
    isFile ? undefined : writeContent(bot),
  );
  if (openHoldout === true && loaded.spec.spec.data.holdout === undefined) {
    throw new ServiceError('usage', 'option openHoldout is true, but the bot declares no holdout', {
      remedy: 'Set data.holdout in the bot, or use the option holdout, for example 1y.',
    });
  }
  const { job } = await prepare(loaded, {
    catalogueDir: join(home, 'catalogue'),
    assertions: assert.map((gate) => inOption('assert', () => parseAssertion(gate))),
    benchmark: benchmark === undefined ? undefined : { name: benchmark, directory },
    opensHoldout: openHoldout,
  });
  const faults: Finding[] = [];
  const signals = await signalsOver(loaded.models, job.instruments, options.signal);
  return {
    job: { ...job, signals },
    source: strategySource(loaded),
    timeoutMs,
    memoryMb,
    counted: new CountedTrials(home, (fault) => faults.push(trialsNotCounted(fault))),
    withFaults: (findings) => [...findings, ...faults].sort(bySeverity),
  };
}

function requestOf(
  { params, search, objective = ['sharpe'], where = [], prune }: SearchOptions,
  seed?: number,
): SearchRequest {
  const [first, ...others] = objective.map((text) =>
    inOption('objective', () => parseObjective(text)),
  );
  const constraints = where.map((text) => inOption('where', () => parseConstraint(text)));
  const goal: Goal = { objectives: [first!, ...others], constraints };
  const method = searchMethodOf(search, seed);
  return { params: Object.entries(params).map(axisOf), method, goal, prune };
}

function axisOf([name, choice]: readonly [string, ParamChoice]): AxisText {
  return typeof choice === 'string'
    ? inOption(`params.${name}`, () => parseAxisValues(name, choice))
    : { name, texts: choice.map(String) };
}

/** Memory for indicators that trials share, MB. */
const COLUMN_MB = 512;

function limitsOf(
  { workers, signal }: Pick<SearchOptions, 'workers' | 'signal'>,
  memoryMb: number,
) {
  return { workers: workers ?? availableParallelism(), memoryMb, columnMb: COLUMN_MB, signal };
}

function columnsOf({ time, equity, initialCash, trades }: Outcome['result']): RunColumns {
  return { time, equity, drawdown: drawdownsOf(equity, initialCash), trades };
}
