/**
 * Guard against mistakes in strategies: while a strategy runs, it rejects clocks, unseeded
 * randomness and attempts to end the process. It is not a sandbox: code can deliberately bypass it.
 *
 * The patched functions check one flag, which is set for a whole slice of steps. While it is not
 * set, they behave as usual for the engine, libraries and Node.
 */
import { fileURLToPath } from 'node:url';
import { ServiceError } from './errors.ts';
import { underWatchdog } from './watchdog.ts';

const CODE = new URL('..', import.meta.url).href;
const CODE_PATH = fileURLToPath(CODE);

const USE_BAR_TIME =
  'Use instrument.time, the time of the bar; new Date(ms) with a time is allowed.';
const USE_SEEDED =
  'Use random(), which create() receives: engine.seed seeds it, so that runs are repeatable.';
const RETURN = 'Remove the call; to stop trading, place no further orders.';

let isAtWork = false;
/** Mode while modules load: packages may read the clock, the strategy's own files may not. */
let isLoading = false;
let rejection: ServiceError | undefined;

/**
 * Runs strategy code, and V8's watchdog over it (see `underWatchdog`).
 *
 * @throws ServiceError `strategy_failed` for a rejected call, even if the strategy caught the
 *   error.
 */
export function runStrategy<T>(timeoutMs: number, work: () => T): T {
  isAtWork = true;
  try {
    return underWatchdog(timeoutMs, work);
  } finally {
    // The watchdog skips `finally` blocks of the code that it ends, but this one is outside.
    isAtWork = false;
    isLoading = false;
    throwRejection();
  }
}

/** Evaluates the modules of a strategy. @throws ServiceError as `runStrategy`. */
export function loadGuarded<T>(load: () => T): T {
  const wasAtWork = isAtWork;
  isAtWork = true;
  isLoading = true;
  try {
    return load();
  } finally {
    isAtWork = wasAtWork;
    isLoading = false;
    throwRejection();
  }
}

/** Runs work on behalf of the strategy, such as reading its files, without the guard. */
export function unguarded<T>(work: () => T): T {
  const wasAtWork = isAtWork;
  isAtWork = false;
  try {
    return work();
  } finally {
    isAtWork = wasAtWork;
  }
}

/** Makes the strategy fail with this error at the end of its slice, even if it catches errors. */
export function failStrategy(error: ServiceError): void {
  rejection ??= error;
}

function throwRejection(): void {
  const error = rejection;
  rejection = undefined;
  // oxlint-disable-next-line no-unsafe-finally -- The rejected call takes precedence over errors
  // that follow from it.
  if (error !== undefined) throw error;
}

/** First stack location outside of this package and Node: `/path/strategy.ts:12`. */
export function placeIn(stack: string | undefined): string | undefined {
  const frames = framesOf(stack).filter((url) => !isOwn(url));
  const place = frames.find((url) => !url.includes('/node_modules/')) ?? frames[0];
  const [, url, line] = /^(.*?):(\d+)(?::\d+)?$/.exec(place ?? '') ?? [];
  return url === undefined ? undefined : `${fileURLToPath(url)}:${line}`;
}

/** `file:` URLs with line and column, innermost first. */
function framesOf(stack = ''): string[] {
  return stack.split('\n').flatMap((line) => /(file:\/\/[^\s)]+)\)?$/.exec(line)?.[1] ?? []);
}

function isOwn(line: string): boolean {
  return line.includes(CODE) || line.includes(CODE_PATH);
}

/** Whether the stack shows that the call comes from a strategy and not from Node on its behalf. */
function isFromStrategy(stack: string): boolean {
  const lines = stack.split('\n').slice(1);
  const caller = lines.find((line) => !isOwn(line) && !line.includes('<anonymous>')) ?? '';
  if (caller.includes('node:')) return false;
  return !(isLoading && caller.includes('/node_modules/'));
}

function reject(call: string, remedy: string): void {
  const stack = new Error().stack ?? '';
  if (!isFromStrategy(stack)) return;
  throw recordRejection(call, stack, remedy);
}

function recordRejection(call: string, stack: string, remedy: string): ServiceError {
  const place = placeIn(stack);
  const where = place === undefined ? '' : `${place}: `;
  const error = new ServiceError('strategy_failed', `${where}a strategy must not call ${call}`, {
    reason: 'not_allowed_in_strategy',
    remedy,
  });
  failStrategy(error);
  return error;
}

type Method = (this: unknown, ...args: unknown[]) => unknown;

/** Replaces a method by a guarded function with the same name, length and attributes. */
function guard(
  owner: object,
  name: string,
  call: string,
  remedy: string,
  isRejected: (args: readonly unknown[]) => boolean = () => true,
): void {
  const descriptor = Object.getOwnPropertyDescriptor(owner, name);
  if (descriptor === undefined || typeof descriptor.value !== 'function') return;
  const original = descriptor.value as Method;
  const guarded = function (this: unknown, ...args: unknown[]): unknown {
    if (isAtWork && isRejected(args)) reject(call, remedy);
    return Reflect.apply(original, this, args);
  };
  Object.defineProperties(guarded, Object.getOwnPropertyDescriptors(original));
  Object.defineProperty(owner, name, { ...descriptor, value: guarded });
}

function guardGetter(
  owner: object,
  name: string,
  replacement: (get: () => unknown) => unknown,
): void {
  const descriptor = Object.getOwnPropertyDescriptor(owner, name);
  if (descriptor?.get === undefined) return;
  Object.defineProperty(owner, name, {
    ...descriptor,
    get(this: unknown) {
      return replacement(() => descriptor.get!.call(this) as unknown);
    },
  });
}

let isLanguageGuarded = false;

/** Guards the clocks and the randomness of the language and of `performance`, once per thread. */
export function guardLanguage(): void {
  if (isLanguageGuarded) return;
  isLanguageGuarded = true;
  guard(Math, 'random', 'Math.random()', USE_SEEDED);
  guardDate();
  const isNow = ([date]: readonly unknown[]): boolean => date === undefined;
  const format = 'Intl.DateTimeFormat.format() without a date';
  guardGetter(Intl.DateTimeFormat.prototype, 'format', (get) => {
    const original = get() as (date?: Date | number) => string;
    return (date?: Date | number): string => {
      if (isAtWork && date === undefined) reject(format, USE_BAR_TIME);
      return original(date);
    };
  });
  guard(Intl.DateTimeFormat.prototype, 'formatToParts', format, USE_BAR_TIME, isNow);
  const { Temporal } = globalThis as { readonly Temporal?: { readonly Now: object } };
  for (const name of Object.getOwnPropertyNames(Temporal?.Now ?? {})) {
    if (name === 'timeZoneId') continue;
    guard(Temporal!.Now, name, `Temporal.Now.${name}()`, USE_BAR_TIME);
  }
  const clock = Object.getPrototypeOf(performance) as object;
  for (const name of ['now', 'mark', 'measure', 'toJSON']) {
    guard(clock, name, `performance.${name}()`, USE_BAR_TIME);
  }
  guardGetter(clock, 'timeOrigin', (get) => {
    if (isAtWork) reject('performance.timeOrigin', USE_BAR_TIME);
    return get();
  });
}

/** `Date` with its prototype and statics, so that `instanceof` and subclasses work as before. */
function guardDate(): void {
  const Original = Date;
  guard(Original, 'now', 'Date.now()', USE_BAR_TIME);
  const Guarded = function (...args: unknown[]): unknown {
    const isNew = new.target !== undefined;
    if (isAtWork && (args.length === 0 || !isNew)) {
      reject(isNew ? 'new Date() without a time' : 'Date()', USE_BAR_TIME);
    }
    return isNew ? Reflect.construct(Original, args, new.target) : Original();
  };
  const { prototype, ...statics } = Object.getOwnPropertyDescriptors(Original);
  Object.defineProperties(Guarded, statics);
  Object.defineProperty(Guarded, 'prototype', { ...prototype });
  Object.defineProperty(Original.prototype, 'constructor', {
    value: Guarded,
    writable: true,
    configurable: true,
  });
  Object.defineProperty(globalThis, 'Date', {
    value: Guarded,
    writable: true,
    configurable: true,
  });
}

const RANDOM_OF_CRYPTO = [
  'generateKeyPairSync',
  'generateKeySync',
  'generatePrimeSync',
  'getRandomValues',
  'pseudoRandomBytes',
  'randomBytes',
  'randomFill',
  'randomFillSync',
  'randomInt',
  'randomUUID',
  'randomUUIDv7',
] as const;

let isNodeGuarded = false;

/**
 * Guards Node's own APIs, once per thread: clocks, `crypto`, and functions that end the process.
 *
 * @param crypto the module `node:crypto`; the caller must synchronize its exports afterwards.
 * @param isForeign whether the stack shows that a call that ends the process comes from a strategy
 *   outside its functions, such as from a timer.
 */
export function guardNode(crypto: object, isForeign: (stack: string) => boolean): void {
  if (isNodeGuarded) return;
  isNodeGuarded = true;
  guard(process.hrtime, 'bigint', 'process.hrtime.bigint()', USE_BAR_TIME);
  guard(process, 'hrtime', 'process.hrtime()', USE_BAR_TIME);
  guard(process, 'uptime', 'process.uptime()', USE_BAR_TIME);
  for (const name of RANDOM_OF_CRYPTO) guard(crypto, name, `crypto.${name}()`, USE_SEEDED);
  const web = Object.getPrototypeOf(globalThis.crypto) as object;
  guard(web, 'getRandomValues', 'crypto.getRandomValues()', USE_SEEDED);
  guard(web, 'randomUUID', 'crypto.randomUUID()', USE_SEEDED);
  guardEnds(isForeign);
}

function guardEnds(isForeign: (stack: string) => boolean): void {
  const { pid } = process;
  for (const name of ['exit', 'reallyExit', 'abort', 'kill']) {
    const owner = process as unknown as Record<string, Method>;
    const original = owner[name]!;
    owner[name] = function (this: unknown, ...args: unknown[]): unknown {
      const [target, signal] = args;
      const isSelf = name !== 'kill' || ([pid, -pid, 0].includes(Number(target)) && signal !== 0);
      const stack = isSelf ? (new Error().stack ?? '') : '';
      if (isSelf && (isAtWork || isForeign(stack))) {
        throw recordRejection(`process.${name}()`, stack, RETURN);
      }
      return Reflect.apply(original, this, args);
    };
  }
}
