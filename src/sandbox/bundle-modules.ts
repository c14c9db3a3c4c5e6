/** Inside the process of a strategy: its modules, which come from memory, and what they can reach. */
import { createRequire, registerHooks } from 'node:module';
import { runInNewContext } from 'node:vm';

/** Where the files of a bundle seem to be. */
const ROOT = 'file:///strategy/';
const API = new URL(`../engine/api${import.meta.url.slice(-3)}`, import.meta.url).href;
// Here by then, so that nothing has to be read for it.
await import(API);
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

/** Takes away every global that is not of the language itself. */
export function removeGlobals(): void {
  const clock = performance;
  const keep = new Set(runInNewContext('Object.getOwnPropertyNames(globalThis)') as string[]);
  keep.delete('WebAssembly');
  for (const name of Object.getOwnPropertyNames(globalThis)) {
    if (!keep.has(name)) Reflect.deleteProperty(globalThis, name);
  }
  const now = (): number => clock.now();
  const silent = new Proxy({}, { get: () => () => {} });
  Object.assign(globalThis, { console: silent, performance: Object.freeze({ now }) });
}
