import { AsyncLocalStorage } from 'node:async_hooks';
import { syncBuiltinESMExports } from 'node:module';
import timersPromises from 'node:timers/promises';

/** Queue of tasks by virtual time. */
export interface Agenda {
  /** Milliseconds since the epoch. */
  readonly now: number;
  wake(time: number, task: () => void): void;
  /** Runs the next task, unless it is due later. @returns false if no task was due. */
  step(until: number): boolean;
  /** Runs all tasks that are due by then, and advances the time to it. */
  run(until: number): void;
}

/** A simulated process: once it is over, none of its timers fires. */
export interface Life {
  isOver: boolean;
}

export interface VirtualTime {
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** Advances the time, and runs all tasks that are due. */
  pass(ms: number): Promise<void>;
  /** Advances the time until a condition holds. @returns false if it did not within this time. */
  until(isSo: () => boolean, withinMs: number): Promise<boolean>;
  /** Runs work as part of a life, with which its timers end. */
  live<T>(life: Life, work: () => T): T;
  /** Runs work that takes real time, during which virtual time stands still. */
  real<T>(work: () => Promise<T>): Promise<T>;
}

const lives = new AsyncLocalStorage<Life>();

/** Life to which the running code belongs; undefined outside of any. */
export const currentLife = (): Life | undefined => lives.getStore();

const nextTurn = setImmediate;

/**
 * Replaces the clocks of this thread by an agenda while `work` runs: timers, `node:timers/promises`,
 * `Date.now`, `performance.now`, and `Math.random`. Production code therefore runs unchanged, with all
 * its delays, and its result depends only on `random`.
 *
 * Nothing else may run in the thread at the same time, and `work` may wait for real input and output
 * only through `real`.
 */
export async function inVirtualTime<T>(
  agenda: Agenda,
  random: () => number,
  work: (time: VirtualTime) => Promise<T>,
): Promise<T> {
  const begun = agenda.now;
  const timers = new Timers(agenda);
  const restore = replace(
    [
      globalThis,
      {
        setTimeout: (callback: () => void, ms: number) => timers.set(callback, ms),
        setInterval: (callback: () => void, ms: number) =>
          timers.set(callback, ms, { repeats: true }),
        setImmediate: (callback: () => void) => timers.set(callback, 0, { isAtOnce: true }),
        clearTimeout: clear,
        clearInterval: clear,
        clearImmediate: clear,
      },
    ],
    [
      timersPromises,
      {
        setTimeout: (ms?: number, value?: unknown, o?: object) => timers.delay(ms, value, o),
        setImmediate: (value?: unknown, o?: object) => timers.delay(0, value, o, true),
      },
    ],
    [Date, { now: () => agenda.now }],
    // Starts above 0, so that differences to earlier times stay positive.
    [performance, { now: () => agenda.now - begun + 3_600_000 }],
    [Math, { random }],
  );
  syncBuiltinESMExports();
  try {
    return await work(new AgendaTime(agenda));
  } finally {
    restore();
    syncBuiltinESMExports();
  }
}

class AgendaTime implements VirtualTime {
  readonly #agenda: Agenda;
  /** Number of works that take real time. */
  #busy = 0;

  constructor(agenda: Agenda) {
    this.#agenda = agenda;
  }

  get now(): number {
    return this.#agenda.now;
  }

  async pass(ms: number): Promise<void> {
    await this.until(() => false, ms);
  }

  async until(isSo: () => boolean, withinMs: number): Promise<boolean> {
    const agenda = this.#agenda;
    const end = agenda.now + withinMs;
    for (;;) {
      await this.#settle();
      if (isSo()) return true;
      if (agenda.step(end)) continue;
      agenda.run(end);
      return false;
    }
  }

  live<T>(life: Life, work: () => T): T {
    return lives.run(life, work);
  }

  async real<T>(work: () => Promise<T>): Promise<T> {
    this.#busy += 1;
    try {
      return await work();
    } finally {
      this.#busy -= 1;
    }
  }

  /** Waits until only timers are pending. */
  async #settle(): Promise<void> {
    do await new Promise<void>((resolve) => nextTurn(resolve));
    while (this.#busy > 0);
  }
}

/** Timers of an agenda, which end with the life of the code that has set them. */
class Timers {
  readonly #agenda: Agenda;

  constructor(agenda: Agenda) {
    this.#agenda = agenda;
  }

  set(callback: () => void, ms: number, { repeats = false, isAtOnce = false } = {}): Timer {
    const agenda = this.#agenda;
    const life = lives.getStore();
    const timer = new Timer();
    // Node.js also runs callbacks in the asynchronous context of the caller.
    const call = AsyncLocalStorage.bind(callback);
    // Same rounding as Node.js.
    const every = isAtOnce ? 0 : Math.max(1, Math.trunc(ms || 0));
    const plan = (): void =>
      agenda.wake(agenda.now + every, () => {
        if (timer.isCleared || life?.isOver === true) return;
        if (repeats) plan();
        call();
      });
    plan();
    return timer;
  }

  delay(
    ms: number | undefined,
    value: unknown,
    { signal }: { readonly signal?: AbortSignal } = {},
    isAtOnce = false,
  ): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const abort = (): void => {
      clear(timer);
      reject(new DOMException('The operation was aborted', 'AbortError'));
    };
    const done = (): void => {
      signal?.removeEventListener('abort', abort);
      resolve(value);
    };
    const timer = this.set(done, ms ?? 1, { isAtOnce });
    if (signal?.aborted === true) abort();
    else signal?.addEventListener('abort', abort, { once: true });
    return promise;
  }
}

function clear(timer: unknown): void {
  if (timer instanceof Timer) timer.isCleared = true;
}

class Timer {
  isCleared = false;

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }
}

/** @returns a function that restores the originals. */
function replace(...those: readonly (readonly [owner: object, parts: object])[]): () => void {
  const before = those.map(
    ([owner, parts]) =>
      [
        owner,
        Object.keys(parts).map((name) => [name, Object.getOwnPropertyDescriptor(owner, name)]),
      ] as const,
  );
  for (const [owner, parts] of those) {
    for (const [name, value] of Object.entries(parts)) {
      Object.defineProperty(owner, name, { value, configurable: true, writable: true });
    }
  }
  return () => {
    for (const [owner, parts] of before) {
      for (const [name, descriptor] of parts) {
        if (descriptor === undefined) Reflect.deleteProperty(owner, name as string);
        else Object.defineProperty(owner, name as string, descriptor as PropertyDescriptor);
      }
    }
  };
}
