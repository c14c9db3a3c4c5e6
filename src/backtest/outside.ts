/**
 * Records which file, network and process APIs a strategy uses: the Node modules that it imports
 * and the globals that it reads. It does not detect addons or deliberately hidden code.
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

/** @param id name of a module, with or without `node:` */
export function noteImport(id: string): void {
  const name = id.replace(/^node:/, '');
  const [base = ''] = name.split('/');
  if (MODULES.has(base) && (id !== name || builtinModules.includes(name))) used.add(`node:${base}`);
}

/** Records uses of the globals that access files or the network, until the thread ends. */
export function watchGlobals(): void {
  const builtin = process.getBuiltinModule.bind(process);
  deferWebSocket(() => builtin('node:http').WebSocket);
  for (const name of ['fetch', 'WebSocket', 'EventSource', 'localStorage'] as const) {
    noteUse(globalThis, name, () => used.add(name));
  }
  for (const name of ['binding', 'dlopen', 'loadEnvFile'] as const) {
    noteUse(process, name, () => used.add(`process.${name}`));
  }
  const value = (id: string): unknown => {
    noteImport(id);
    return builtin(id);
  };
  Object.defineProperty(process, 'getBuiltinModule', { value, configurable: true, writable: true });
}

/**
 * Replaces the global by one that loads when a strategy reads it. Node's own also loads, for about
 * 40 ms, when its descriptor is read or changed, but not when it is deleted.
 *
 * @param get returns the same class.
 */
function deferWebSocket(get: () => unknown): void {
  if (!Object.hasOwn(globalThis, 'WebSocket')) return;
  delete (globalThis as { WebSocket?: unknown }).WebSocket;
  Object.defineProperty(globalThis, 'WebSocket', { configurable: true, get });
}

/** Calls `note` whenever the property is read. Assigning it still works. */
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
