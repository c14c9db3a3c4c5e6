import { readFileSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { closest } from '../base/closest.ts';
import type { DeclareIndicators } from '../engine/declared-indicators.ts';
import { paramFromText, resolveParams } from '../engine/params.ts';
import type { ParamProblem, Params, ParamValues } from '../engine/params.ts';
import { BUILT_IN_STRATEGIES } from '../engine/strategies/built-in.ts';
import type { Strategy } from '../engine/strategy.ts';
import { ServiceError, type Problem } from '../base/errors.ts';
import { isSystemError } from '../base/system-errors.ts';
import type { ColumnNames } from '../market/header.ts';
import { parseWindowOptions } from '../market/bar-time.ts';
import { MOST_MODEL_BYTES, tooLarge, type Model } from './models/model.ts';
import { codeOf, digestsOf } from './bundle.ts';
import { combinationFault, strategyProblems } from './cross-checks.ts';
import {
  jsonPointer,
  optional,
  parseDocument,
  type Path,
  type SourceDocument,
} from './document.ts';
import {
  benchmarkNamed,
  dataFiles,
  fileNear,
  missingData,
  sourcesNamed,
  type DataSource,
} from './data-sources.ts';
import { fieldsOf } from './fields.ts';
import { invalidSpec, withChanges, type HostedSpec } from './hosted.ts';
import { readModels, withDigests, type FileOf } from './model-checks.ts';
import { inOrder, parseSpec, readSpec, withoutEchoes } from './parse.ts';
import { botSpecSchema, type BotSpec } from './spec.ts';
import type { Execute } from '../backtest/execute.ts';
import { loadStrategyModule, type StrategyModule } from '../backtest/strategy-module.ts';
import { specHash } from './spec-lock.ts';

/** A bot ready to run: a valid spec with its strategy loaded and its files found. */
export interface Bot {
  /** Path as the user gave it; the slug of a hosted bot. */
  readonly file: string;
  /** The spec as plain data, without defaults. */
  readonly document: unknown;
  /** The document with its defaults filled in. */
  readonly spec: BotSpec;
  /** See `specHash`. */
  readonly hash: string;
  /**
   * The spec that declares the holdout. A run with changed values, such as that of a proposal, keeps the
   * holdout of this spec.
   */
  readonly declared: BotSpec;
  readonly strategy: Strategy;
  /** Runs the strategy outside this thread. */
  readonly execute?: Execute | undefined;
  /** Declares the indicators of the strategy outside this thread. */
  readonly declare?: DeclareIndicators | undefined;
  /** File, network and process APIs that its modules use, if known; see `StrategyTraces`. */
  readonly outside?: readonly string[] | undefined;
  /** SHA-256 of a custom strategy's file and its imports, by path; `undefined` for a built-in one. */
  readonly strategyFiles: Readonly<Record<string, string>> | undefined;
  /** Values of the spec, with the strategy's defaults for the rest. */
  readonly params: ParamValues<Params>;
  /** In the order of the spec. */
  readonly models: readonly Model[];
  /** Absolute path or `catalog://NAME` of each symbol's data, in the order of the universe. */
  readonly data: Readonly<Record<string, string>>;
  /** Notes on the spec for its author. */
  readonly notes: readonly string[];
}

/** Result of checking a bot. `bot` is defined if and only if there are no problems. */
export interface BotCheck {
  readonly bot: Bot | undefined;
  /** The text of the spec, to locate problems found later. */
  readonly document: SourceDocument;
  readonly problems: readonly Problem[];
  /** Data sources that exist or are in the catalogue, even if there are problems. */
  readonly sources: readonly DataSource[];
  /** Error thrown by a custom strategy's code, or its timeout; also listed in the problems. */
  readonly failure: ServiceError | undefined;
  /** Models that could be read, even if there are problems. */
  readonly models: readonly Model[];
}

/**
 * Checks everything but the contents of the data: spec, strategy, parameters, models, and whether the
 * data files exist. Each part is checked even if others are invalid. Runs the code of the strategy's
 * module.
 *
 * @param text of the spec; by default, it is read from the file.
 * @throws ServiceError `file_not_found` if the spec cannot be read.
 */
export function checkBot(
  file: string,
  load: LoadModule = loadStrategyModule,
  text?: string,
): BotCheck {
  const parsed = text === undefined ? readSpec(file) : parseSpec(text, file);
  const { spec, document, problems: specFaults } = parsed;
  const directory = dirname(resolve(file));
  const fileOf = modelFiles(directory);
  const own = checkOwnStrategy(document, directory, specFaults, load);
  const named = sourcesNamed(document, directory);
  const missing = [...named, ...benchmarkNamed(document, directory)].flatMap((source) =>
    missingData(source, document),
  );
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

  const { strategy, files, execute, declare, outside }: LoadedStrategy = own.loaded ?? {
    // Without a module of its own, a valid spec names a built-in strategy.
    strategy: BUILT_IN_STRATEGIES.get(spec.spec.strategy.name!)!,
    files: undefined,
  };
  const bot: Bot = {
    file,
    document: document.value,
    spec,
    hash: specHash(document.value),
    declared: spec,
    strategy,
    execute,
    declare,
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
  return unused.length === 0 ? [] : [`${unused.join(', ')}: a backtest does not use this`];
}

/** Values that override the spec for one run. */
export interface Overrides {
  /** Texts typed by the user; `paramFromText` converts them. */
  readonly params: Readonly<Record<string, string>>;
  readonly from: string | undefined;
  readonly to: string | undefined;
  readonly columns?: ColumnNames | undefined;
  readonly repair?: 'drop' | undefined;
  readonly holdout?: string | undefined;
}

/**
 * Loads a bot from a file without problems. Overrides become part of its spec and change its hash.
 *
 * @throws ServiceError `invalid_spec` with every problem, `file_not_found`, `usage` for an invalid
 *   override, and `strategy_failed` or `strategy_timeout` from the strategy's own code.
 */
export function loadBot(
  file: string,
  overrides?: Overrides,
  load?: LoadModule,
  text?: string,
): Bot {
  const { bot, problems, failure } = checkBot(file, load, text);
  if (bot !== undefined) return overrides === undefined ? bot : override(bot, overrides);
  if (failure !== undefined) throw failure;
  const count = problems.length === 1 ? 'a problem' : `${problems.length} problems`;
  throw new ServiceError('invalid_spec', `${file} has ${count}`, {
    problems,
    remedy: `Correct the file; \`service-local validate ${file}\` checks it again.`,
  });
}

function override(bot: Bot, { params, from, to, columns, repair, holdout }: Overrides): Bot {
  const { data, strategy } = bot.spec.spec;
  const window = { from: from ?? data.from, to: to ?? data.to };
  parseWindowOptions(window.from, window.to);
  const typed = Object.entries(params).map(([name, text]) => {
    return [name, paramFromText(bot.strategy.params[name], text)] as const;
  });
  const changed = Object.fromEntries(typed);
  const given = { ...strategy.params, ...changed };
  const resolved = resolveParams(bot.strategy.params, given);
  const fault = resolved.problems[0];
  if (fault !== undefined) {
    throw new ServiceError('usage', `parameter ${fault.key}: ${fault.message}`, {
      remedy: paramRemedy(fault, bot.strategy.params),
    });
  }
  const combination = combinationFault(bot.strategy, resolved.values);
  if (combination !== undefined) throw new ServiceError('usage', `parameters: ${combination}`);

  const read = {
    ...(columns && { columns }),
    ...(repair && { repair }),
    ...(holdout && { holdout }),
  };
  const patch = Object.keys(read).length === 0 ? {} : { spec: { data: read } };
  const document = withChanges(bot.document, { ...window, params: changed, patch });
  const spec = botSpecSchema.safeParse(document);
  if (!spec.success) {
    const { path, message } = spec.error.issues[0]!;
    throw new ServiceError('usage', `${path.slice(2).join('.')}: ${message}`);
  }
  return {
    ...bot,
    document,
    spec: spec.data,
    hash: specHash(document),
    declared: holdout === undefined ? withEnd(spec.data, data.to) : spec.data,
    params: resolved.values,
  };
}

function withEnd({ spec, ...rest }: BotSpec, to: string | undefined): BotSpec {
  return { ...rest, spec: { ...spec, data: { ...spec.data, to } } };
}

function paramRemedy({ key = '', code }: ParamProblem, declared: Params): string {
  if (code === 'invalid_param')
    return `Change the value, for example to ${declared[key]!.default}.`;
  const near = closest(key, Object.keys(declared));
  return near === undefined ? 'Choose one of these parameters.' : `Did you mean ${near}?`;
}

/**
 * Creates a bot from a spec that a server accepted.
 *
 * @param own its custom strategy, already loaded.
 * @param declare its declared indicators, if it runs elsewhere.
 * @throws ServiceError `invalid_spec` if the spec does not meet the strategy's requirements.
 */
export function hostedBot(hosted: HostedSpec, own?: Strategy, declare?: DeclareIndicators): Bot {
  const { document, spec, hash, declared, models } = hosted;
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
    declared,
    strategy,
    declare,
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
  readonly declare?: DeclareIndicators | undefined;
  readonly outside?: readonly string[] | undefined;
};

interface LoadedStrategy {
  readonly strategy: Strategy;
  readonly files: Readonly<Record<string, string>> | undefined;
  readonly execute?: Execute | undefined;
  readonly declare?: DeclareIndicators | undefined;
  readonly outside?: readonly string[] | undefined;
}

/**
 * Loads the module of a custom strategy, if the spec names one, and checks the spec against it.
 *
 * @param known problems of the spec; a module with an invalid path is not loaded.
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
    const message = [error.message, error.remedy].filter(Boolean).join('. ');
    const problems = [document.problem(at, { code: error.code, message })];
    return error.code === 'invalid_strategy' ? { problems } : { failure: error, problems };
  }
}

/** Reads model files with paths relative to the directory of a spec. */
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
