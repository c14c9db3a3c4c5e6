/**
 * Runs in the strategy process: loads the modules of its bundle from memory and removes globals.
 */
import { createRequire, registerHooks, stripTypeScriptTypes } from 'node:module';
import { runInNewContext } from 'node:vm';

/** Base URL of the modules of a bundle. No such files exist on disk. */
const ROOT = 'file:///strategy/';
const API = new URL(`../../engine/api${import.meta.url.slice(-3)}`, import.meta.url).href;
// Loaded now, because nothing can be read from disk later.
await import(API);
stripTypeScriptTypes('');
const require = createRequire(import.meta.url);
/** A copy, because `secureGlobals` deletes the global. */
const { URL: Url } = globalThis;

const FORMATS: Readonly<Record<string, string>> = {
  ts: 'module-typescript',
  mts: 'module-typescript',
  js: 'module',
  mjs: 'module',
  json: 'json',
};

/**
 * Runs a module of the bundle. From then on, this process can import only files of the bundle and
 * `service-local/strategy`.
 *
 * @returns the default export of the module.
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

/** Undefined for a specifier that is not a relative path of the bundle. */
function urlOf(specifier: string, parent = ''): string | undefined {
  if (/^\.\.?\//.test(specifier) && parent.startsWith(ROOT)) return new Url(specifier, parent).href;
  return undefined;
}

/** Deletes every global that is not part of the language and freezes the rest. */
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

/** Properties that programs commonly assign to errors and other objects. */
const ASSIGNABLE = ['name', 'message', 'constructor', 'toString', 'valueOf', 'toLocaleString'];

/**
 * Freezes all built-in objects. A strategy that changed one could alter the engine and the modules
 * of Node, even outside the time watched by the watchdog.
 */
function freezeLanguage(): void {
  const names = Object.getOwnPropertyNames(globalThis).filter((name) => name !== 'globalThis');
  const globals = names.map((name) => (globalThis as Record<string, unknown>)[name]);
  for (const value of [Object, ...globals.filter(isErrorClass)]) {
    for (const name of ASSIGNABLE) allowOverride(value.prototype as Record<string, unknown>, name);
  }
  const pending = [...globals, ...hiddenIntrinsics()];
  const seen = new Set<unknown>();
  for (let value = pending.pop(); pending.length > 0; value = pending.pop()) {
    if (!isObject(value) || seen.has(value)) continue;
    seen.add(value);
    pending.push(Object.getPrototypeOf(value));
    for (const key of Reflect.ownKeys(value)) {
      // The value of a data property, or the getter and setter of an accessor.
      pending.push(...Object.values(Object.getOwnPropertyDescriptor(value, key)!));
    }
    Object.freeze(value);
  }
  Object.freeze(globalThis);
}

function isObject(value: unknown): value is object {
  return typeof value === 'function' || (typeof value === 'object' && value !== null);
}

function isErrorClass(value: unknown): value is typeof Error {
  return value === Error || (typeof value === 'function' && value.prototype instanceof Error);
}

/**
 * Replaces a property by an accessor. JavaScript rejects an assignment to an object that inherits a
 * frozen data property.
 */
function allowOverride(prototype: Record<string, unknown>, name: string): void {
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

/** Objects whose prototypes no global refers to. */
function hiddenIntrinsics(): readonly object[] {
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
