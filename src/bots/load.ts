import { readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { closest } from '../base/closest.ts';
import { paramFromText, resolveParams, type Params, type ParamValues } from '../engine/params.ts';
import { BUILT_IN_STRATEGIES } from '../engine/strategies/built-in.ts';
import type { Strategy } from '../engine/strategy.ts';
import { isSystemError, ServiceError, type Problem } from '../base/errors.ts';
import { isCatalogued } from '../market/catalogue.ts';
import type { ColumnNames } from '../market/header.ts';
import { parseWindow } from '../market/time.ts';
import { MOST_MODEL_BYTES, tooLarge, type Model } from './models/model.ts';
import { codeOf, digestsOf } from './bundle.ts';
import { combinationFault, strategyProblems } from './checks.ts';
import {
  jsonPointer,
  optional,
  parseDocument,
  type Path,
  type SourceDocument,
} from './document.ts';
import { fieldsOf, listOf } from './fields.ts';
import { invalidSpec, withChanges, type HostedSpec } from './hosted.ts';
import { readModels, withDigests, type FileOf } from './model-checks.ts';
import { inOrder, readSpec, withoutEchoes } from './parse.ts';
import { botSpecSchema, type BotSpec } from './spec.ts';
import type { Execute } from '../backtest/execute.ts';
import { loadStrategyModule, type StrategyModule } from '../backtest/strategy-module.ts';
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
  /** Runs the strategy elsewhere than in this thread. */
  readonly execute?: Execute | undefined;
  /** File, network and process APIs that its modules use, if known; see `StrategyTraces`. */
  readonly outside?: readonly string[] | undefined;
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
  /** The sources of its data that exist or are catalogued, also of a bot with problems. */
  readonly sources: readonly DataSource[];
  /**
   * Error of the strategy's own code, which failed or did not return; also listed in the problems.
   */
  readonly failure: ServiceError | undefined;
  /** Its models that could be read, also of a bot with problems. */
  readonly models: readonly Model[];
}

/** One symbol's data as the spec names them. */
export interface DataSource {
  readonly symbol: string;
  /** Location of its name in the spec. */
  readonly at: Path;
  /** Absolute path or `catalog://`. */
  readonly address: string;
}

/**
 * Checks all of a bot that can be checked without reading its data: spec, strategy, parameters,
 * models, and whether the data files exist. Each part is checked even if others are invalid. Runs
 * the code of the strategy's module.
 *
 * @throws ServiceError `file_not_found` when the spec itself cannot be read.
 */
export function checkBot(file: string, load: LoadModule = loadStrategyModule): BotCheck {
  const { spec, document, problems: specFaults } = readSpec(file);
  const directory = dirname(resolve(file));
  const fileOf = modelFiles(directory);
  const own = checkOwnStrategy(document, directory, specFaults, load);
  const named = sourcesNamed(document, directory);
  const missing = named.flatMap((source) => missingData(source, document));
  const models = readModels(document, fileOf, specFaults);
  const problems = inOrder(
    withoutEchoes([
      ...withDigests(specFaults, document, fileOf),
      ...own.problems,
      ...missing,
      ...models.problems,
    ]),
  );
  const isMissing = new Set(missing.map(({ pointer }) => pointer));
  const sources = named.filter(({ at }) => !isMissing.has(jsonPointer(at)));
  const { failure } = own;
  const check = { document, problems, sources, models: models.models, failure };
  if (spec === undefined || problems.length > 0) return { bot: undefined, ...check };

  const { strategy, files, execute, outside }: LoadedStrategy = own.loaded ?? {
    // A valid spec names a strategy that exists, with parameters that it takes.
    strategy: BUILT_IN_STRATEGIES.get(spec.spec.strategy.name!)!,
    files: undefined,
  };
  const bot: Bot = {
    file,
    document: document.value,
    spec,
    hash: specHash(document.value),
    strategy,
    execute,
    outside,
    strategyFiles: files,
    params: resolveParams(strategy.params, spec.spec.strategy.params).values,
    models: models.models,
    data: dataFiles(spec, directory),
    notes: notesOn(spec),
  };
  return { bot, ...check };
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
  readonly columns?: ColumnNames | undefined;
  readonly repair?: 'drop' | undefined;
}

/**
 * A bot whose file has no problem. With overrides it is the bot that its author would have written
 * with these values, so its hash is another one.
 *
 * @throws ServiceError `invalid_spec` with every problem, `file_not_found`, and `usage` for an
 *   override that does not fit; `strategy_failed` and `strategy_timeout` where the strategy's own
 *   code did more than fail to load.
 */
export function loadBot(file: string, overrides?: Overrides, load?: LoadModule): Bot {
  const { bot, problems, failure } = checkBot(file, load);
  if (bot !== undefined) return overrides === undefined ? bot : override(bot, overrides);
  if (failure !== undefined) throw failure;
  const count = problems.length === 1 ? 'a problem' : `${problems.length} problems`;
  throw new ServiceError('invalid_spec', `${file} has ${count}`, {
    problems,
    remedy: `Correct the file; \`service-local validate ${file}\` checks it again.`,
  });
}

function override(bot: Bot, { params, from, to, columns, repair }: Overrides): Bot {
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

  const read = { ...(columns && { columns }), ...(repair && { repair }) };
  const patch = Object.keys(read).length === 0 ? {} : { spec: { data: read } };
  const document = withChanges(bot.document, { ...window, params: changed, patch });
  const spec = botSpecSchema.safeParse(document);
  if (!spec.success) {
    const { path, message } = spec.error.issues[0]!;
    throw new ServiceError('usage', `--${path.slice(2).join('.')}: ${message}`);
  }
  return {
    ...bot,
    document,
    spec: spec.data,
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

/** Loads the module of a strategy, in this thread or a separate one. */
export type LoadModule = (
  modulePath: string,
  specDirectory: string,
) => StrategyModule & {
  readonly execute?: Execute;
  readonly outside?: readonly string[] | undefined;
};

interface LoadedStrategy {
  readonly strategy: Strategy;
  readonly files: Readonly<Record<string, string>> | undefined;
  readonly execute?: Execute | undefined;
  readonly outside?: readonly string[] | undefined;
}

/**
 * Loads the strategy's own module where the spec names one, and checks the spec against it.
 *
 * @param known problems of the spec; a module with an invalid name is not loaded.
 */
function checkOwnStrategy(
  document: SourceDocument,
  directory: string,
  known: readonly Problem[],
  load: LoadModule,
): {
  readonly loaded?: LoadedStrategy;
  readonly failure?: ServiceError;
  readonly problems: readonly Problem[];
} {
  const { name, module } = fieldsOf(fieldsOf(fieldsOf(document.value).spec).strategy);
  const at: Path = ['spec', 'strategy', 'module'];
  const isUnfit = known.some(({ pointer }) => pointer === jsonPointer(at));
  if (typeof module !== 'string' || name !== undefined || isUnfit) {
    return { problems: [] };
  }
  try {
    const loaded = load(module, directory);
    return { loaded, problems: strategyProblems(loaded.strategy, document) };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const message = [error.message, error.remedy].join('; ');
    const problems = [document.problem(at, { code: error.code, message })];
    return error.code === 'invalid_strategy' ? { problems } : { failure: error, problems };
  }
}

/** Every data source in the document, even if the document has other problems. */
function sourcesNamed({ value }: SourceDocument, directory: string): DataSource[] {
  const { universe, data } = fieldsOf(fieldsOf(value).spec);
  const { source, sources } = fieldsOf(data);
  const [first] = listOf(fieldsOf(universe).symbols);
  const named: readonly (readonly [symbol: unknown, field: Path, address: unknown])[] = [
    [first ?? 'data', ['source'], source],
    ...Object.entries(fieldsOf(sources)).map(
      ([symbol, address]) => [symbol, ['sources', symbol], address] as const,
    ),
  ];
  return named.flatMap(([symbol, field, address]) =>
    typeof address !== 'string' || address === ''
      ? []
      : [
          {
            symbol: String(symbol),
            at: ['spec', 'data', ...field],
            address: addressOf(address, directory),
          },
        ],
  );
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

function missingData({ address, at }: DataSource, document: SourceDocument): Problem[] {
  if (isCatalogued(address)) return [];
  const found = statSync(address, { throwIfNoEntry: false });
  if (found?.isFile()) return [];
  const meant =
    found === undefined
      ? fileNear(address, document.written(at) ?? address, DATA_EXTENSION)
      : undefined;
  const message =
    found === undefined
      ? `no such file: ${address}`
      : `${address} is ${found.isDirectory() ? 'a directory' : 'no file'}: name a CSV or Parquet file`;
  return [document.problem(at, { code: 'data_not_found', message, ...optional(meant) })];
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
      const code = 'model_not_found';
      if (error.code === 'EISDIR') return { code, message: `is a directory: ${file}` };
      if (error.code !== 'ENOENT')
        return { code, message: `cannot be read (${error.code}): ${file}` };
      const meant = optional(fileNear(file, path, /\.onnx$/i));
      return { code, message: `no such file: ${file}`, ...meant };
    }
  };
}

const DATA_EXTENSION = /\.(?:csv|parquet)(?:\.gz)?$/i;

/**
 * The file of the same kind beside `path` whose name, without its extension, is nearly that of
 * `path`, written as `authored` is.
 */
function fileNear(path: string, authored: string, extension: RegExp): string | undefined {
  try {
    const stemOf = (name: string): string => name.replace(extension, '');
    const names = readdirSync(dirname(path), { withFileTypes: true })
      .filter((entry) => !entry.isDirectory() && extension.test(entry.name))
      .map(({ name }) => name);
    const stem = closest(stemOf(basename(path)), names.map(stemOf));
    const name = names.find((one) => stemOf(one) === stem);
    return name && authored.slice(0, -basename(path).length) + name;
  } catch {
    return undefined;
  }
}
