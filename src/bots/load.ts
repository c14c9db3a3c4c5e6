import { readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { closest } from '../closest.ts';
import { paramFromText, resolveParams, type Params, type ParamValues } from '../engine/params.ts';
import { BUILT_IN_STRATEGIES } from '../engine/strategies/built-in.ts';
import type { Strategy } from '../engine/strategy.ts';
import { isSystemError, ServiceError, type Problem } from '../errors.ts';
import { isCatalogued } from '../market/catalogue.ts';
import { parseWindow } from '../market/time.ts';
import { MOST_MODEL_BYTES, tooLarge, type Model } from '../models/model.ts';
import { codeOf, digestsOf } from './bundle.ts';
import { combinationFault, strategyProblems } from './checks.ts';
import { optional, parseDocument, type SourceDocument } from './document.ts';
import { invalidSpec, withChanges, type HostedSpec } from './hosted.ts';
import { readModels, withDigests, type FileOf } from './model-checks.ts';
import { inOrder, readSpec } from './parse.ts';
import { botSpecSchema, type BotSpec } from './spec.ts';
import { loadStrategyModule } from '../backtest/strategy-module.ts';
import { specHash } from './version.ts';

/** A bot ready to run: a valid spec with its strategy loaded and its files found. */
export interface Bot {
  /** As given by the user. */
  readonly file: string;
  /** The spec as its author wrote it, as plain data. */
  readonly document: unknown;
  /** The same with its defaults filled in. */
  readonly spec: BotSpec;
  /** Identifies the version: see `specHash`. */
  readonly hash: string;
  readonly strategy: Strategy;
  /** The strategy's own file and what it imports, with sha256; `undefined` for a built-in one. */
  readonly strategyFiles: Readonly<Record<string, string>> | undefined;
  /** Complete: the spec's values, and the strategy's defaults for the rest. */
  readonly params: ParamValues<Params>;
  /** With their files, in the order of the spec. */
  readonly models: readonly Model[];
  /** Where each symbol's data are, in the order of the universe: absolute path or `catalog://`. */
  readonly data: Readonly<Record<string, string>>;
  /** What a person should know of the spec, as sentences. */
  readonly notes: readonly string[];
}

/** `bot` is there exactly when there are no problems. */
export interface BotCheck {
  readonly bot: Bot | undefined;
  /** The text of the spec, for locating problems found elsewhere. */
  readonly document: SourceDocument;
  readonly problems: readonly Problem[];
}

/**
 * Checks all of a bot that can be checked without reading its data: spec, strategy, parameters,
 * and whether the data files exist. Runs the code of the strategy's module.
 *
 * @throws ServiceError `file_not_found` when the spec itself cannot be read.
 */
export function checkBot(file: string): BotCheck {
  const { spec, document, problems } = readSpec(file);
  const directory = dirname(resolve(file));
  if (spec === undefined) {
    const told = withDigests(problems, document, modelFiles(directory));
    return { bot: undefined, document, problems: told };
  }
  const { loaded, problems: strategyFaults } = checkStrategy(spec, directory, document);
  const data = dataFiles(spec, directory);
  const { models, problems: modelFaults } = readModels(spec, modelFiles(directory), document);
  const faults = [...strategyFaults, ...missingData(spec, data, document), ...modelFaults];
  if (loaded === undefined || faults.length > 0) {
    return { bot: undefined, document, problems: inOrder(faults) };
  }

  const { strategy, files } = loaded;
  const bot: Bot = {
    file,
    document: document.value,
    spec,
    hash: specHash(document.value),
    strategy,
    strategyFiles: files,
    params: resolveParams(strategy.params, spec.spec.strategy.params).values,
    models,
    data,
    notes: notesOn(spec),
  };
  return { bot, document, problems: [] };
}

function notesOn({ spec }: BotSpec): string[] {
  const fields = (['agents', 'deployment'] as const).filter((field) => spec[field] !== undefined);
  const unused = [...(spec.kind === 'research' ? ['kind: research'] : []), ...fields];
  return unused.length === 0 ? [] : [`${unused.join(', ')}: kept, not used by a backtest`];
}

/** Values in place of the spec's own, for one run. */
export interface Overrides {
  /** As typed; each is read as its parameter is declared. */
  readonly params: Readonly<Record<string, string>>;
  readonly from: string | undefined;
  readonly to: string | undefined;
}

/**
 * A bot whose file has no problem. With overrides it is the bot that its author would have written
 * with these values, so its hash is another one.
 *
 * @throws ServiceError `invalid_spec` with every problem, `file_not_found`, and `usage` for an
 *   override that does not fit.
 */
export function loadBot(file: string, overrides?: Overrides): Bot {
  const { bot, problems } = checkBot(file);
  if (bot !== undefined) return overrides === undefined ? bot : override(bot, overrides);
  const count = problems.length === 1 ? 'a problem' : `${problems.length} problems`;
  throw new ServiceError('invalid_spec', `${file} has ${count}`, {
    problems,
    remedy: `Correct the file; \`service-local validate ${file}\` checks it again.`,
  });
}

function override(bot: Bot, { params, from, to }: Overrides): Bot {
  const { data, strategy } = bot.spec.spec;
  const window = { from: from ?? data.from, to: to ?? data.to };
  try {
    parseWindow(window.from, window.to);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    throw new ServiceError('usage', error.message, {
      remedy: 'Write --from and --to as 2020-04-17 or 2020-04-17T14:30:00Z, the earlier first.',
      cause: error,
    });
  }
  const typed = Object.entries(params).map(([name, text]) => {
    return [name, paramFromText(bot.strategy.params[name], text)] as const;
  });
  const changed = Object.fromEntries(typed);
  const given = { ...strategy.params, ...changed };
  const resolved = resolveParams(bot.strategy.params, given);
  const fault = resolved.problems[0];
  if (fault !== undefined) {
    throw new ServiceError('usage', `--param ${fault.key}: ${fault.message}`);
  }
  const combination = combinationFault(bot.strategy, resolved.values);
  if (combination !== undefined) throw new ServiceError('usage', `--param: ${combination}`);

  const document = withChanges(bot.document, { ...window, params: changed });
  return {
    ...bot,
    document,
    spec: botSpecSchema.parse(document),
    hash: specHash(document),
    params: resolved.values,
  };
}

/**
 * A bot of which nothing is on the machine of its author.
 *
 * @param own its strategy, where that came with it.
 * @throws ServiceError `invalid_spec` where the spec does not fit the strategy.
 */
export function hostedBot(hosted: HostedSpec, own?: Strategy): Bot {
  const { document, spec, hash, models } = hosted;
  const code = codeOf(hosted.files);
  const { name, params } = spec.spec.strategy;
  const strategy = own ?? BUILT_IN_STRATEGIES.get(name!)!;
  if (own !== undefined) {
    const source = parseDocument(JSON.stringify(document), 'the spec');
    const problems = strategyProblems(own, source);
    if (problems.length > 0) throw invalidSpec(inOrder(problems), false);
  }
  return {
    file: spec.metadata.slug,
    document,
    spec,
    hash,
    strategy,
    strategyFiles: code && digestsOf(code),
    params: resolveParams(strategy.params, params).values,
    models,
    data: dataFiles(spec, ''),
    notes: notesOn(spec),
  };
}

interface LoadedStrategy {
  readonly strategy: Strategy;
  readonly files: Readonly<Record<string, string>> | undefined;
}

function checkStrategy(
  spec: BotSpec,
  directory: string,
  document: SourceDocument,
): { loaded: LoadedStrategy | undefined; problems: Problem[] } {
  const { name, module } = spec.spec.strategy;
  if (name !== undefined) {
    // A valid spec names a strategy that exists, with parameters that it takes.
    return { loaded: { strategy: BUILT_IN_STRATEGIES.get(name)!, files: undefined }, problems: [] };
  }
  try {
    const loaded = loadStrategyModule(module!, directory);
    return { loaded, problems: strategyProblems(loaded.strategy, document) };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const message = [error.message, error.remedy].join('; ');
    const what = { code: error.code, message };
    return {
      loaded: undefined,
      problems: [document.problem(['spec', 'strategy', 'module'], what)],
    };
  }
}

function dataFiles(spec: BotSpec, directory: string): Record<string, string> {
  const { universe, data } = spec.spec;
  const sources = universe.symbols.map((symbol): [string, string] => [
    symbol,
    addressOf(data.source ?? data.sources![symbol]!, directory),
  ]);
  return Object.fromEntries(sources);
}

/** The catalogue's place is a setting, so whoever reads the data looks there. */
function addressOf(source: string, directory: string): string {
  return isCatalogued(source) ? source : resolve(directory, source);
}

function missingData(
  { spec }: BotSpec,
  files: Readonly<Record<string, string>>,
  document: SourceDocument,
): Problem[] {
  return Object.entries(files).flatMap(([symbol, path]) => {
    if (isCatalogued(path) || statSync(path, { throwIfNoEntry: false })?.isFile()) return [];
    const at = spec.data.source === undefined ? ['sources', symbol] : ['source'];
    const message = `no such file: ${path}`;
    const meant = fileNear(path, spec.data.source ?? spec.data.sources![symbol]!);
    const what = { code: 'data_not_found', message, ...optional(meant) };
    return [document.problem(['spec', 'data', ...at], what)];
  });
}

/** The files of models beside a spec. */
export function modelFiles(directory: string): FileOf {
  return (path) => {
    const file = resolve(directory, path);
    try {
      const { size } = statSync(file);
      return size > MOST_MODEL_BYTES ? tooLarge(size) : readFileSync(file);
    } catch (error) {
      if (!isSystemError(error)) throw error;
      const why = error.code === 'ENOENT' ? 'no such file' : `cannot be read (${error.code})`;
      const meant = optional(fileNear(file, path));
      return { code: 'model_not_found', message: `${why}: ${file}`, ...meant };
    }
  };
}

/** The file beside `path` that has nearly its name, written as `authored` is. */
function fileNear(path: string, authored: string): string | undefined {
  try {
    const name = closest(basename(path), readdirSync(dirname(path)));
    return name && authored.slice(0, -basename(path).length) + name;
  } catch {
    return undefined;
  }
}
