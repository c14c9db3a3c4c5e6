/**
 * Notes which ways out of its run a strategy can take: modules of Node for files, network and
 * processes that it imports, and globals for them that it reads. It cannot see addons, or what code
 * does that hides on purpose.
 */
import { builtinModules } from 'node:module';

const MODULES = new Set([
  'child_process',
  'cluster',
  'dgram',
  'dns',
  'fs',
  'http',
  'http2',
  'https',
  'inspector',
  'net',
  'sqlite',
  'tls',
  'wasi',
  'worker_threads',
]);

const used = new Set<string>();

/** Sorted names, such as `fetch` and `node:fs`. */
export function outsideUsed(): readonly string[] {
  return [...used].toSorted();
}

/** @param id of a module, with or without `node:`. */
export function noteImport(id: string): void {
  const name = id.replace(/^node:/, '');
  const [base = ''] = name.split('/');
  if (MODULES.has(base) && (id !== name || builtinModules.includes(name))) used.add(`node:${base}`);
}

/** Watches the globals that lead to files or the network, for the rest of the thread. */
export function watchGlobals(): void {
  for (const name of ['fetch', 'WebSocket', 'EventSource', 'localStorage'] as const) {
    noteUse(globalThis, name, () => used.add(name));
  }
  for (const name of ['binding', 'dlopen', 'loadEnvFile'] as const) {
    noteUse(process, name, () => used.add(`process.${name}`));
  }
  const builtin = process.getBuiltinModule.bind(process);
  const value = (id: string): unknown => {
    noteImport(id);
    return builtin(id);
  };
  Object.defineProperty(process, 'getBuiltinModule', { value, configurable: true, writable: true });
}

/** Notes that a property is read; assigning it works as before. */
function noteUse(owner: object, name: string, note: () => void): void {
  const descriptor = Object.getOwnPropertyDescriptor(owner, name);
  if (descriptor?.configurable !== true) return;
  Object.defineProperty(owner, name, {
    configurable: true,
    enumerable: descriptor.enumerable ?? false,
    get(this: unknown): unknown {
      note();
      return descriptor.get === undefined
        ? (descriptor.value as unknown)
        : (descriptor.get.call(this) as unknown);
    },
    set(value: unknown) {
      Object.defineProperty(owner, name, {
        value,
        configurable: true,
        enumerable: descriptor.enumerable ?? false,
        writable: true,
      });
    },
  });
}
