import { dirname, resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { gatesOfSpec } from '../backtest/gates.ts';
import type { RunAssertion } from '../backtest/gates.ts';
import type { BacktestJob, JobInstrument } from '../backtest/job.ts';
import { lockOf } from '../backtest/run-lock.ts';
import { keepHoldout } from '../backtest/windows/keep-holdout.ts';
import type { StrategySource } from '../backtest/strategy-source.ts';
import type { ModelsLock } from '../backtest/summary.ts';
import type { EngineConfig } from '../engine/config.ts';
import type { History } from '../engine/history-need.ts';
import { ENGINE_VERSION } from '../engine/version.ts';
import { ServiceError } from '../base/errors.ts';
import { followedBy, sliceBars, type Bars } from '../market/bars.ts';
import { formatTime } from '../market/bar-time.ts';
import { barsDigest } from '../market/digest.ts';
import { loadDataset, type Dataset } from '../market/load-dataset.ts';
import { usesVolume } from './models/features.ts';
import type { Model } from './models/model.ts';
import { modelRuntime } from './models/runtime.ts';
import { dataFiles } from './data-sources.ts';
import { loadBenchmark, type NamedBenchmark } from './load-benchmark.ts';
import type { Bot } from './load-bot.ts';
import { engineConfig, type BotSpec } from './spec.ts';
import { hasIndicators, historyNeedsOf } from './warm-up-need.ts';

export interface PrepareOptions {
  readonly catalogueDir: string;
  /** Gates that apply in addition to the spec's. */
  readonly assertions: readonly RunAssertion[];
  /** Series to compare the run with, instead of the one that the spec names; false for none. */
  readonly benchmark?: NamedBenchmark | false | undefined;
  /** Includes the period of `data.holdout` in the run. */
  readonly opensHoldout?: boolean | undefined;
  /** Replaces reading from disk, so that runs can share data. */
  readonly load?: typeof loadDataset | undefined;
}

export interface Prepared {
  readonly job: BacktestJob;
  /** Notes on spec and data, one sentence each. */
  readonly notes: readonly string[];
}

/**
 * Reads the data of a bot, without its holdout, and collects everything that its run needs.
 *
 * @throws ServiceError `invalid_data`, `file_not_found`
 */
export async function prepare(bot: Bot, options: PrepareOptions): Promise<Prepared> {
  const { job, notes } = await prepareRun(bot, options);
  const { benchmark: name } = bot.spec.spec.data;
  const { benchmark: given = name && { name, directory: dirname(resolve(bot.file)) } } = options;
  if (!given) return { job, notes };
  const benchmark = await loadBenchmark(bot, job.instruments, given, options);
  // The lock covers what the spec names, not options of one run.
  const isOwn = options.benchmark === undefined;
  const lock = isOwn ? lockOf({ ...job.lock, benchmark: benchmark.digest }) : job.lock;
  return { job: { ...job, benchmark, lock }, notes };
}

async function prepareRun(bot: Bot, options: PrepareOptions): Promise<Prepared> {
  const { job: whole, notes } = await readWhole(bot, options);
  const period = bot.declared.spec.data.holdout;
  if (period === undefined) return { job: whole, notes };
  const own = whole.instruments.map(({ bars }) => timesOf(bars));
  const { times, barMs } = hasDeclaredData(bot)
    ? { times: own, barMs: whole.barMs }
    : await readDeclared(bot, options);
  const job = keepHoldout(whole, period, { times, barMs, isOpen: options.opensHoldout ?? false });
  return {
    job,
    notes: [...notes, ...holdoutNotes(job, Math.max(...own.map((time) => time.at(-1)!)))],
  };
}

/** Whether a run reads the data that the spec of its holdout declares, except perhaps another start. */
function hasDeclaredData({ spec, declared }: Bot): boolean {
  const read = ({ spec: { universe, data } }: BotSpec) => [universe, { ...data, from: undefined }];
  return isDeepStrictEqual(read(spec), read(declared));
}

/** Times of the bars that the spec of the holdout declares, for each symbol. */
async function readDeclared(
  { file, declared }: Bot,
  { load = loadDataset, catalogueDir }: PrepareOptions,
): Promise<{ readonly times: readonly Float64Array[]; readonly barMs: number }> {
  const { universe, data } = declared.spec;
  const { timeframe, to, columns, time_format: timeFormat, repair } = data;
  const sources = dataFiles(declared, dirname(resolve(file)));
  const { calendar } = universe;
  const datasets = await Promise.all(
    universe.symbols.map((symbol) =>
      load({
        source: sources[symbol]!,
        catalogueDir,
        timeframe,
        calendar,
        to,
        columns,
        timeFormat,
        repair,
      }),
    ),
  );
  return {
    times: datasets.map(({ bars }) => timesOf(bars)),
    barMs: datasets[0]!.timeframe.ms,
  };
}

function timesOf({ time, length }: Bars): Float64Array {
  return time.subarray(0, length);
}

/** Reads the data of a bot and collects everything that a run over all of them needs. */
async function readWhole(bot: Bot, options: PrepareOptions): Promise<Prepared> {
  const { universe, data, metrics } = bot.spec.spec;
  const { load = loadDataset } = options;
  const config = engineConfig(bot.spec);
  const instruments: JobInstrument[] = [];
  const histories: Record<string, History> = {};
  let barMs = 0;
  const digests: Record<string, string> = {};
  const warmUpDigests: Record<string, string> = {};
  const notes = new Map<string, readonly string[]>();
  for (const symbol of universe.symbols) {
    const { timeframe, from, to, columns, time_format: timeFormat, repair } = data;
    const dataset = await load({
      source: bot.data[symbol]!,
      catalogueDir: options.catalogueDir,
      timeframe,
      calendar: universe.calendar,
      from,
      to,
      columns,
      timeFormat,
      repair,
      warmUp: hasIndicators(bot),
    });
    if (!dataset.hasVolume) requireVolume(symbol, config, bot.models);
    const source = { bars: dataset.sourceBars, missing: dataset.gaps.missing };
    const { bars, warmUp } = inOneColumn(dataset);
    instruments.push({
      symbol,
      bars,
      warmUp,
      source,
      outsideSessions: dataset.outsideSessions,
      uncovered: dataset.uncovered,
    });
    histories[symbol] = { bars, before: warmUp ?? sliceBars(bars, 0, 0) };
    barMs = dataset.timeframe.ms;
    digests[symbol] = dataset.digest;
    if (warmUp !== undefined && warmUp.length > 0) warmUpDigests[symbol] = barsDigest(warmUp);
    notes.set(symbol, [...dataset.notes, ...(dataset.warmUp?.notes ?? [])]);
  }
  const lock = lockOf({
    spec: bot.hash,
    engine: ENGINE_VERSION,
    seed: config.seed,
    strategy: bot.strategyFiles ?? bot.strategy.name,
    data: digests,
    warm_up: warmUpDigests,
    models: modelsLock(bot.models),
    outside: bot.outside,
  });
  const { name, slug } = bot.spec.metadata;
  const job: BacktestJob = {
    bot: { name, slug },
    currency: universe.currency,
    lock,
    strategy: bot.strategy,
    execute: bot.execute,
    params: bot.params,
    config,
    barMs,
    instruments,
    historyNeeds: data.from === undefined ? undefined : historyNeedsOf(bot, barMs, histories),
    assertions: [...gatesOfSpec(metrics), ...options.assertions],
  };
  return { notes: [...bot.notes, ...mergeNotes(notes)], job };
}

/** @param last time of the last bar of the requested window */
function holdoutNotes({ holdout }: BacktestJob, last: number): string[] {
  if (holdout === undefined || holdout.is_open) return [];
  const [from, to] = [holdout.from, holdout.to].map((time) => formatTime(Date.parse(time)));
  const after = last > Date.parse(holdout.to) ? '; the bars after it are not used, either' : '';
  return [
    `the last ${holdout.period}, ${from} to ${to}, is held out and not part of this run${after}`,
  ];
}

/** Merges equal notes of several symbols into one. */
function mergeNotes(notes: ReadonlyMap<string, readonly string[]>): string[] {
  const symbolsOf = new Map<string, string[]>();
  for (const [symbol, ofSymbol] of notes) {
    for (const note of ofSymbol) symbolsOf.set(note, [...(symbolsOf.get(note) ?? []), symbol]);
  }
  return [...symbolsOf].map(([note, symbols]) => `${symbols.join(', ')}: ${note}`);
}

/** Puts the bars of a dataset directly after those before its window, so that indicators read both as one column. */
function inOneColumn({ bars, warmUp }: Dataset): Pick<JobInstrument, 'bars' | 'warmUp'> {
  if (warmUp === undefined) return { bars };
  const { length } = warmUp.bars;
  const all = followedBy(warmUp.bars, bars);
  return { bars: sliceBars(all, length, all.length), warmUp: sliceBars(all, 0, length) };
}

/** Entry for models in a lock. @throws ServiceError `failure` if the runtime is not installed. */
export function modelsLock(models: readonly Model[]): ModelsLock | undefined {
  if (models.length === 0) return undefined;
  const files = models.map(({ name, digest }) => [name, digest.replace('sha256:', '')]);
  return { runtime: modelRuntime(), files: Object.fromEntries(files) };
}

/** Rejects data without volume, with which orders would never fill or slip far too much. */
function requireVolume(symbol: string, config: EngineConfig, models: readonly Model[]): void {
  const use = volumeUse(config, models);
  if (use === undefined) return;
  throw new ServiceError(
    'invalid_data',
    `${use.by} needs volume, but the data of ${symbol} has none`,
    {
      remedy: `Use data with volume (data.columns.volume names the column), or ${use.instead}.`,
    },
  );
}

/** The part of a bot that reads volume, and its alternative; undefined if no part does. */
export function volumeUse(
  { fill, slippage }: VolumeModels,
  models: readonly Model[],
): { readonly by: string; readonly instead: string } | undefined {
  const reader = models.find(({ inputs }) => inputs.some(usesVolume));
  if (reader !== undefined) return { by: `the model ${reader.name}`, instead: 'another model' };
  const used = Object.entries({ fill, slippage }).find(([, { model }]) => model === 'volume_share');
  if (used === undefined) return undefined;
  return { by: `${used[0]}: volume_share`, instead: `another ${used[0]} model` };
}

interface VolumeModels {
  readonly fill: { readonly model?: unknown };
  readonly slippage: { readonly model?: unknown };
}

/** Describes the strategy so that another thread can load it. */
export function strategySource(bot: Bot): StrategySource {
  const { name, module } = bot.spec.spec.strategy;
  if (name !== undefined) return { name };
  return { module: module!, directory: dirname(resolve(bot.file)), files: bot.strategyFiles! };
}
