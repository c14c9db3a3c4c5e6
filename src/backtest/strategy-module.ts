import { spawnSync } from 'node:child_process';
import crypto, { createHash } from 'node:crypto';
import { readFileSync, realpathSync } from 'node:fs';
import { createRequire, registerHooks, syncBuiltinESMExports } from 'node:module';
import { relative, resolve, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { isMainThread } from 'node:worker_threads';
import { closest } from '../base/closest.ts';
import { ServiceError } from '../base/errors.ts';
import { lateError } from '../engine/strategy-error.ts';
import { strategyFault, type Strategy } from '../engine/strategy.ts';
import { noteImport, watchGlobals } from './outside.ts';
import {
  failStrategy,
  guardLanguage,
  guardNode,
  loadGuarded,
  unguarded,
} from '../base/strategy-guard.ts';

export interface StrategyModule {
  readonly strategy: Strategy;
  /**
   * sha256 of the file and of every file it imports, directly or indirectly, keyed by the path relative
   * to the spec's directory, with `/`. Excludes packages and the code of service-local.
   */
  readonly files: Readonly<Record<string, string>>;
  /** Specifiers of their other imports, except `service-local/strategy`. */
  readonly others: readonly string[];
}

/** State of a strategy's file when Node loaded it. */
interface LoadedFile {
  readonly sha256: string;
  readonly imports: Set<string>;
  readonly others: Set<string>;
}

/** Keyed by URL. */
const loaded = new Map<string, LoadedFile>();
/** URLs of all files of strategies, including files that are not loaded yet. */
const wanted = new Set<string>();

/** URL of this package's code: `src/` in development, `dist/src/` in the published package. */
const CODE = new URL('..', import.meta.url).href;
const API = new URL(`./engine/api${import.meta.url.slice(-3)}`, CODE).href;
const require = createRequire(import.meta.url);

let hooked = false;

/**
 * Loads the strategy that a TypeScript or JavaScript file exports as its default. Imports of
 * `service-local/strategy` resolve to this package, even if it is not installed near the file. A
 * process runs the file only once and then returns the same strategy.
 *
 * @param modulePath absolute, or relative to `specDirectory`
 * @param isAlone whether this thread runs nothing but the strategy
 * @throws ServiceError `invalid_strategy` if the file does not exist, does not compile, throws, or does
 *   not export a strategy; `strategy_failed` if it calls an API that `strategy-guard.ts` blocks
 */
export function loadStrategyModule(
  modulePath: string,
  specDirectory: string,
  isAlone = false,
): StrategyModule {
  const entry = realEntry(resolve(specDirectory, modulePath), modulePath);
  hookOnce(isAlone);
  const url = pathToFileURL(entry).href;
  wanted.add(url);

  let exported: { readonly default?: unknown };
  try {
    // require() instead of import(), because strategies must load synchronously.
    exported = loadGuarded(() => require(entry) as { readonly default?: unknown });
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    throw loadError(error, modulePath);
  }

  const strategy = exported.default;
  const fault = strategyFault(strategy);
  if (fault !== undefined) {
    throw new ServiceError('invalid_strategy', `${modulePath}: ${fault}`, {
      remedy: 'Write `export default defineStrategy({ name, description, params, create })`.',
    });
  }
  return { strategy: strategy as Strategy, ...filesOf(url, specDirectory) };
}

/**
 * Returns the files of a module as `loadStrategyModule` does, without running its code.
 *
 * @returns `entry` is the module's own path in `files`
 * @throws ServiceError `invalid_strategy` if the file does not exist or does not compile
 */
export async function readStrategyFiles(
  modulePath: string,
  specDirectory: string,
): Promise<Pick<StrategyModule, 'files' | 'others'> & { readonly entry: string }> {
  const file = realEntry(resolve(specDirectory, modulePath), modulePath);
  hookOnce(false);
  const url = pathToFileURL(file).href;
  wanted.add(url);
  // Node reads and links all modules of a graph before it runs the first one, which is `stop`.
  const stop = `data:text/javascript,throw Symbol.for('${STOP}')`;
  const source = `import ${JSON.stringify(stop)}; import ${JSON.stringify(url)};`;
  try {
    await import(`data:text/javascript,${encodeURIComponent(source)}`);
  } catch (error) {
    if (error !== Symbol.for(STOP)) throw loadError(error, modulePath);
  }
  return { ...filesOf(url, specDirectory), entry: pathFrom(realpathSync(specDirectory), url) };
}

/** Key of the symbol that `stop` throws, so that no other module runs. */
const STOP = 'service-local.read-only';

function filesOf(url: string, specDirectory: string): Pick<StrategyModule, 'files' | 'others'> {
  const base = realpathSync(specDirectory);
  const urls = [...reachable(url)];
  const others = new Set(urls.flatMap((file) => [...loaded.get(file)!.others]));
  const files = urls.map((file): [string, string] => [
    pathFrom(base, file),
    loaded.get(file)!.sha256,
  ]);
  files.sort(([a], [b]) => (a < b ? -1 : 1));
  return { files: Object.fromEntries(files), others: [...others] };
}

function pathFrom(base: string, url: string): string {
  return relative(base, fileURLToPath(url)).split(sep).join('/');
}

function realEntry(path: string, modulePath: string): string {
  try {
    return realpathSync(path);
  } catch (cause) {
    throw new ServiceError('invalid_strategy', `${modulePath}: no such file (${path})`, {
      remedy: 'Set the path of the strategy relative to the bot file.',
      cause,
    });
  }
}

/** Installs hooks for all imports of the process. They change only imports of strategies. */
function hookOnce(isAlone: boolean): void {
  if (hooked) return;
  hooked = true;
  // Threads inherit the time zone of the process.
  if (isMainThread) process.env['TZ'] = 'UTC';
  guardLanguage();
  guardNode(crypto, (stack) => isAlone || [...wanted].some((url) => stack.includes(url)));
  if (isAlone) watchGlobals();
  else process.on('unhandledRejection', failLate);
  syncBuiltinESMExports();
  registerHooks({
    resolve(specifier, context, nextResolve) {
      if (specifier === 'service-local/strategy') return { url: API, shortCircuit: true };
      const resolved = nextResolve(specifier, context);
      if (isAlone && context.parentURL?.startsWith(CODE) === false) noteImport(resolved.url);
      const importer = loaded.get(context.parentURL ?? '');
      if (importer === undefined) return resolved;
      if (isOwnFile(resolved.url)) {
        importer.imports.add(resolved.url);
        wanted.add(resolved.url);
      } else importer.others.add(specifier);
      return resolved;
    },
    load(url, context, nextLoad) {
      if (!wanted.has(url)) return nextLoad(url, context);
      const source = unguarded(() => readFileSync(fileURLToPath(url)));
      const sha256 = createHash('sha256').update(source).digest('hex');
      loaded.delete(url); // Keeps the file that was loaded last at the end.
      loaded.set(url, { sha256, imports: new Set(), others: new Set() });
      // A TypeScript file is always an ES module, regardless of package.json.
      return url.endsWith('.ts')
        ? { format: 'module-typescript', source, shortCircuit: true }
        : nextLoad(url, context);
    },
  });
}

/**
 * An error in a promise of a strategy that shares its thread with other code, as in production, fails
 * the strategy at its next step instead of the process.
 */
function failLate(error: unknown): void {
  const stack = error instanceof Error ? (error.stack ?? '') : '';
  if ([...wanted].some((url) => stack.includes(url))) {
    failStrategy(lateError(error, {}));
  } else if (process.listenerCount('unhandledRejection') === 1) {
    throw error; // Node then handles the error as if there were no listener.
  }
}

function isOwnFile(url: string): boolean {
  return url.startsWith('file:') && !url.startsWith(CODE) && !url.includes('/node_modules/');
}

function reachable(url: string, seen = new Set<string>()): Set<string> {
  const file = loaded.get(url);
  if (file === undefined || seen.has(url)) return seen;
  seen.add(url);
  for (const next of file.imports) reachable(next, seen);
  return seen;
}

function loadError(cause: unknown, modulePath: string): ServiceError {
  const error = cause instanceof Error ? cause : new Error(String(cause));
  const place = placeOf(error);
  const { what, remedy } = explain(error);
  const where = place === undefined ? '' : ` (${place})`;
  return new ServiceError('invalid_strategy', `${modulePath}: ${what}${where}`, { remedy, cause });
}

function explain(error: Error): { readonly what: string; readonly remedy: string } {
  const message = error.message.split('\n')[0]!;
  switch ('code' in error ? error.code : undefined) {
    case 'ERR_UNSUPPORTED_NODE_MODULES_TYPE_STRIPPING':
      return {
        what: 'Node does not run TypeScript inside node_modules',
        remedy: 'Copy the bot and its strategy out of node_modules.',
      };
    case 'ERR_REQUIRE_ASYNC_MODULE':
      return {
        what: 'it uses await outside a function',
        remedy: 'Remove await from the top level of the module and its imports.',
      };
    case 'ERR_MODULE_NOT_FOUND':
    case 'MODULE_NOT_FOUND':
      return {
        what: message,
        remedy: 'Write imports with their file extension, and install the packages they name.',
      };
    default:
  }
  const [, module, name] = MISSING_EXPORT.exec(message) ?? [];
  if (module !== undefined && name !== undefined) {
    return { what: message, remedy: exportRemedy(module, name) };
  }
  if (error instanceof SyntaxError) {
    const remedy = 'Correct the file. Types must be erasable: no enum, no namespace.';
    return { what: message, remedy };
  }
  return {
    what: `it threw while being loaded: ${error.name}: ${message}`,
    remedy: 'Correct this line, or move its work into create() or onBar().',
  };
}

const MISSING_EXPORT = /^The requested module '([^']+)' does not provide an export named '([^']+)'/;

function exportRemedy(module: string, name: string): string {
  const isApi = module === 'service-local/strategy';
  const similar = isApi
    ? closest(name, Object.keys(require(fileURLToPath(API)) as object))
    : undefined;
  return similar === undefined
    ? 'Correct the name; a type must be imported with `import type`.'
    : `Did you mean ${similar}? Correct the import.`;
}

/** Returns `file:line` of an error in one of the strategy's files. */
function placeOf(error: Error): string | undefined {
  for (const line of error.stack?.split('\n') ?? []) {
    const [, url, at] = /(file:\/\/[^\s)]+?):(\d+)(?::\d+)?\)?$/.exec(line) ?? [];
    if (url !== undefined && wanted.has(url)) return `${fileURLToPath(url)}:${at}`;
  }
  return error instanceof SyntaxError ? syntaxPlace() : undefined;
}

/**
 * Finds the line of a syntax error with `node --check`, because a caught error does not contain it. The
 * file that does not compile is the one that was loaded last.
 */
function syntaxPlace(): string | undefined {
  const url = [...loaded.keys()].at(-1);
  if (url === undefined) return undefined;
  const file = fileURLToPath(url);
  const { stderr } = spawnSync(process.execPath, ['--check', file], { encoding: 'utf8' });
  const line = /^[^\n]*:(\d+)\n/.exec(stderr)?.[1];
  return line === undefined ? undefined : `${file}:${line}`;
}
