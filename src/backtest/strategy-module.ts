import { spawnSync } from 'node:child_process';
import crypto, { createHash } from 'node:crypto';
import { readFileSync, realpathSync } from 'node:fs';
import { createRequire, registerHooks, syncBuiltinESMExports } from 'node:module';
import { relative, resolve, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { isMainThread } from 'node:worker_threads';
import { ServiceError } from '../base/errors.ts';
import type { Strategy } from '../engine/strategy.ts';
import { lateError } from '../engine/late-error.ts';
import { strategyFault } from '../engine/strategy-fault.ts';
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
   * sha256 of the file and of every file it imports, directly or not, by path relative to the
   * spec's directory with `/`. Packages and this package's own code are not among them.
   */
  readonly files: Readonly<Record<string, string>>;
  /** What these import beside one another and `service-local/strategy`, as they write it. */
  readonly others: readonly string[];
}

/** A file of a strategy as Node loaded it, by URL; it stays true when the file changes afterwards. */
interface LoadedFile {
  readonly sha256: string;
  readonly imports: Set<string>;
  readonly others: Set<string>;
}

const loaded = new Map<string, LoadedFile>();
/** URLs that belong to a strategy, known from the moment something of the strategy asks for them. */
const wanted = new Set<string>();

/** `src/` while developing, `dist/src/` in the package: the engine that strategies run on. */
const CODE = new URL('..', import.meta.url).href;
const API = new URL(`./engine/api${import.meta.url.slice(-3)}`, CODE).href;
const require = createRequire(import.meta.url);

let hooked = false;

/**
 * Loads the strategy that a TypeScript or JavaScript file exports as its default. The import
 * `service-local/strategy` means this very package wherever the file lives, installed or not.
 * The file is run once in a process; asking again gives the same strategy.
 *
 * @param modulePath As in the spec: absolute, or relative to `specDirectory`.
 * @param isAlone whether this thread runs nothing but the strategy.
 * @throws ServiceError `invalid_strategy` when there is no such file, it does not compile, throws,
 *   or does not export a strategy; `strategy_failed` when it calls what `strategy-guard.ts` refuses.
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
    // Not import(): a strategy has no business waiting for anything while it is being loaded.
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
 * Returns the files of a module as `loadStrategyModule` does, without running any of its code.
 *
 * @returns also the path of the module itself, as in `files`.
 * @throws ServiceError `invalid_strategy` when there is no such file, or it does not compile.
 */
export async function readStrategyFiles(
  modulePath: string,
  specDirectory: string,
): Promise<Pick<StrategyModule, 'files' | 'others'> & { readonly entry: string }> {
  const file = realEntry(resolve(specDirectory, modulePath), modulePath);
  hookOnce(false);
  const url = pathToFileURL(file).href;
  wanted.add(url);
  // All modules of a graph are read and linked before any is run, and this one is the first to run.
  const stop = `data:text/javascript,throw Symbol.for('${STOP}')`;
  const source = `import ${JSON.stringify(stop)}; import ${JSON.stringify(url)};`;
  try {
    await import(`data:text/javascript,${encodeURIComponent(source)}`);
  } catch (error) {
    if (error !== Symbol.for(STOP)) throw loadError(error, modulePath);
  }
  return { ...filesOf(url, specDirectory), entry: pathFrom(realpathSync(specDirectory), url) };
}

/** Thrown to end the evaluation of modules that are only read. */
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
      remedy: 'Give the path of the strategy relative to the bot file.',
      cause,
    });
  }
}

/** The hooks see every import of the process from now on, and touch only those of strategies. */
function hookOnce(isAlone: boolean): void {
  if (hooked) return;
  hooked = true;
  // Threads take the time zone from the process.
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
      loaded.delete(url); // So that the file loaded last is always the last one.
      loaded.set(url, { sha256, imports: new Set(), others: new Set() });
      // TypeScript is a module here, whatever package.json says.
      return url.endsWith('.ts')
        ? { format: 'module-typescript', source, shortCircuit: true }
        : nextLoad(url, context);
    },
  });
}

/**
 * If a strategy shares its thread with the rest of the process, as in production, an error in one
 * of its promises fails the strategy at its next step, and not the process.
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
        what: 'TypeScript inside node_modules, where Node runs none',
        remedy: 'Copy the bot and its strategy out of node_modules.',
      };
    case 'ERR_REQUIRE_ASYNC_MODULE':
      return {
        what: 'uses await outside of a function',
        remedy: 'Load what the strategy needs without await.',
      };
    case 'ERR_MODULE_NOT_FOUND':
    case 'MODULE_NOT_FOUND':
      return {
        what: message,
        remedy: 'Write imports with their file extension, and install the packages they name.',
      };
    default:
  }
  if (error instanceof SyntaxError) {
    const remedy = 'Correct the file. Types must be erasable: no enum, no namespace.';
    return { what: message, remedy };
  }
  return {
    what: `threw while it was loaded: ${error.name}: ${message}`,
    remedy: 'Do the work in create() or onBar(), and correct the line named.',
  };
}

/** `file:line` of a fault in one of the strategy's files. */
function placeOf(error: Error): string | undefined {
  for (const line of error.stack?.split('\n') ?? []) {
    const [, url, at] = /(file:\/\/[^\s)]+?):(\d+)(?::\d+)?\)?$/.exec(line) ?? [];
    if (url !== undefined && wanted.has(url)) return `${fileURLToPath(url)}:${at}`;
  }
  return error instanceof SyntaxError ? syntaxPlace() : undefined;
}

/**
 * Node keeps the line of a syntax error to itself when someone catches the error, but
 * tells it at `--check`. The file that does not compile is the last one that was loaded.
 */
function syntaxPlace(): string | undefined {
  const url = [...loaded.keys()].at(-1);
  if (url === undefined) return undefined;
  const file = fileURLToPath(url);
  const { stderr } = spawnSync(process.execPath, ['--check', file], { encoding: 'utf8' });
  const line = /^[^\n]*:(\d+)\n/.exec(stderr)?.[1];
  return line === undefined ? undefined : `${file}:${line}`;
}
