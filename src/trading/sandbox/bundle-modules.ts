/** Inside the process of a strategy: its modules, which come from memory, and what they can reach. */
import { createRequire, registerHooks, stripTypeScriptTypes } from 'node:module';
import { runInNewContext } from 'node:vm';

/** Where the files of a bundle seem to be. */
const ROOT = 'file:///strategy/';
const API = new URL(`../../engine/api${import.meta.url.slice(-3)}`, import.meta.url).href;
// Here by then, so that nothing has to be read for it.
await import(API);
stripTypeScriptTypes('');
const require = createRequire(import.meta.url);
/** Later there are no globals but those of the language. */
const { URL: Url } = globalThis;

const FORMATS: Readonly<Record<string, string>> = {
  ts: 'module-typescript',
  mts: 'module-typescript',
  js: 'module',
  mjs: 'module',
  json: 'json',
};

/**
 * Runs a module of the bundle. From now on nothing can be imported in this process but the files of
 * the bundle and `service-local/strategy`: no module of Node, and no file.
 *
 * @returns its default export.
 */
export function loadBundle(files: Readonly<Record<string, string>>, entry: string): unknown {
  const texts = new Map(Object.entries(files).map(([path, text]) => [ROOT + path, text]));
  const path = ROOT.slice('file://'.length) + entry;
  registerHooks({
    resolve(specifier, { parentURL }) {
      if (specifier === 'service-local/strategy') return { url: API, shortCircuit: true };
      const url = specifier === path ? ROOT + entry : urlOf(specifier, parentURL);
      if (url !== undefined && texts.has(url)) {
        return { url, format: FORMATS[url.slice(url.lastIndexOf('.') + 1)]!, shortCircuit: true };
      }
      throw new Error(
        `cannot import '${specifier}': a strategy on a server imports 'service-local/strategy' and files sent with it, by relative paths with extension`,
      );
    },
    load(url, context, nextLoad) {
      const source = texts.get(url);
      if (source === undefined) return nextLoad(url, context);
      const format = FORMATS[url.slice(url.lastIndexOf('.') + 1)]!;
      return { format, source, shortCircuit: true };
    },
  });
  const exported = require(path) as { readonly default?: unknown };
  return exported.default;
}

/** Undefined for what is no file of a bundle. */
function urlOf(specifier: string, parent = ''): string | undefined {
  if (/^\.\.?\//.test(specifier) && parent.startsWith(ROOT)) return new Url(specifier, parent).href;
  return undefined;
}

/** Takes away every global that is not of the language itself, and makes that what it will stay. */
export function secureGlobals(): void {
  const clock = performance;
  const keep = new Set(runInNewContext('Object.getOwnPropertyNames(globalThis)') as string[]);
  keep.delete('WebAssembly');
  for (const name of Object.getOwnPropertyNames(globalThis)) {
    if (!keep.has(name)) Reflect.deleteProperty(globalThis, name);
  }
  const now = (): number => clock.now();
  const silent = new Proxy({}, { get: () => () => {} });
  Object.assign(globalThis, { console: silent, performance: Object.freeze({ now }) });
  freezeLanguage();
}

/** What errors and other objects are commonly given their own of, by assignment. */
const GIVEN = ['name', 'message', 'constructor', 'toString', 'valueOf', 'toLocaleString'];

/**
 * Freezes all that the language brings: a strategy that changed it would reach into the engine and the
 * modules of Node around it, also where nothing watches its time.
 */
function freezeLanguage(): void {
  const names = Object.getOwnPropertyNames(globalThis).filter((name) => name !== 'globalThis');
  const globals = names.map((name) => (globalThis as Record<string, unknown>)[name]);
  for (const one of [Object, ...globals.filter(isErrorClass)]) {
    for (const name of GIVEN) letInherit(one.prototype as Record<string, unknown>, name);
  }
  const left = [...globals, ...unnamed()];
  const seen = new Set<unknown>();
  for (let one = left.pop(); left.length > 0; one = left.pop()) {
    if (!isObject(one) || seen.has(one)) continue;
    seen.add(one);
    left.push(Object.getPrototypeOf(one));
    for (const key of Reflect.ownKeys(one)) {
      // Its value, or what gets and sets it.
      left.push(...Object.values(Object.getOwnPropertyDescriptor(one, key)!));
    }
    Object.freeze(one);
  }
  Object.freeze(globalThis);
}

function isObject(value: unknown): value is object {
  return typeof value === 'function' || (typeof value === 'object' && value !== null);
}

function isErrorClass(value: unknown): value is typeof Error {
  return value === Error || (typeof value === 'function' && value.prototype instanceof Error);
}

/** What is inherited and frozen cannot be assigned, unless it has a setter. */
function letInherit(prototype: Record<string, unknown>, name: string): void {
  if (!Object.hasOwn(prototype, name)) return;
  const value = prototype[name];
  Object.defineProperty(prototype, name, {
    get: () => value,
    set(this: object, own: unknown) {
      const given = { value: own, writable: true, enumerable: true, configurable: true };
      Object.defineProperty(this, name, given);
    },
  });
}

/** What syntax and methods make, and no global leads to. */
function unnamed(): readonly object[] {
  return [
    function* () {},
    async () => {},
    async function* () {},
    [].values(),
    new Map().values(),
    new Set().values(),
    ''[Symbol.iterator](),
    ''.matchAll(/x/g),
  ];
}
