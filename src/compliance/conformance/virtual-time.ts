import { AsyncLocalStorage } from 'node:async_hooks';
import { syncBuiltinESMExports } from 'node:module';
import timersPromises from 'node:timers/promises';

/** Whose time it is: what is to happen is due at a time, and time goes from one to the next. */
export interface Agenda {
  /** Milliseconds since the epoch. */
  readonly now: number;
  wake(time: number, task: () => void): void;
  /** Does what is due next, unless that is later; false where there is nothing. */
  step(until: number): boolean;
  /** Does all that is due by then, and then it is that time. */
  run(until: number): void;
}

/** What a process would be: once it has died, nothing that it waits for comes. */
export interface Life {
  isOver: boolean;
}

export interface VirtualTime {
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** Has so much time pass, and all that is due in it happen. */
  pass(ms: number): Promise<void>;
  /** Has time pass until something is so. @returns whether it came to be so within so many ms. */
  until(isSo: () => boolean, withinMs: number): Promise<boolean>;
  /** Work of a life: the timers that it sets end with it. */
  live<T>(life: Life, work: () => T): T;
  /** Work that takes real time, for which virtual time waits. */
  real<T>(work: () => Promise<T>): Promise<T>;
}

const lives = new AsyncLocalStorage<Life>();

/** Life of the running code; undefined outside of all. */
export const currentLife = (): Life | undefined => lives.getStore();

const nextTurn = setImmediate;

/**
 * Has all code of this thread live in the time of an agenda for as long as `work` takes: timers,
 * `node:timers/promises`, `Date.now`, `performance.now`, and chance from a seed. The code of a
 * deployment is so tried as it is, delays and all, and does the same whenever it is tried.
 *
 * Nothing else may go on in the thread meanwhile, and nothing in `work` may wait for the outside world
 * but by `real`.
 */
export async function inVirtualTime<T>(
  agenda: Agenda,
  random: () => number,
  work: (time: VirtualTime) => Promise<T>,
): Promise<T> {
  const begun = agenda.now;
  const busy = { count: 0 };

  const set = (
    callback: () => void,
    ms: number,
    { repeats = false, isAtOnce = false } = {},
  ): Timer => {
    const life = lives.getStore();
    const timer = new Timer();
    // As Node.js does, in the asynchronous context of the caller.
    const call = AsyncLocalStorage.bind(callback);
    // As Node.js counts.
    const every = isAtOnce ? 0 : Math.max(1, Math.trunc(ms || 0));
    const plan = (): void =>
      agenda.wake(agenda.now + every, () => {
        if (timer.isCleared || life?.isOver === true) return;
        if (repeats) plan();
        call();
      });
    plan();
    return timer;
  };
  const clear = (timer: unknown): void => {
    if (timer instanceof Timer) timer.isCleared = true;
  };
  const delay = (
    ms: number | undefined,
    value: unknown,
    { signal }: { readonly signal?: AbortSignal } = {},
    isAtOnce = false,
  ): Promise<unknown> => {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const abort = (): void => {
      clear(timer);
      reject(new DOMException('The operation was aborted', 'AbortError'));
    };
    const done = (): void => {
      signal?.removeEventListener('abort', abort);
      resolve(value);
    };
    const timer = set(done, ms ?? 1, { isAtOnce });
    if (signal?.aborted === true) abort();
    else signal?.addEventListener('abort', abort, { once: true });
    return promise;
  };
  const restore = replace(
    [
      globalThis,
      {
        setTimeout: (callback: () => void, ms: number) => set(callback, ms),
        setInterval: (callback: () => void, ms: number) => set(callback, ms, { repeats: true }),
        setImmediate: (callback: () => void) => set(callback, 0, { isAtOnce: true }),
        clearTimeout: clear,
        clearInterval: clear,
        clearImmediate: clear,
      },
    ],
    [
      timersPromises,
      {
        setTimeout: (ms?: number, value?: unknown, o?: object) => delay(ms, value, o),
        setImmediate: (value?: unknown, o?: object) => delay(0, value, o, true),
      },
    ],
    [Date, { now: () => agenda.now }],
    // As of a process that is not new: what it subtracts is not before its beginning.
    [performance, { now: () => agenda.now - begun + 3_600_000 }],
    [Math, { random }],
  );
  syncBuiltinESMExports();

  /** All that can go on without time passing has gone on. */
  const settle = async (): Promise<void> => {
    do await new Promise<void>((resolve) => nextTurn(resolve));
    while (busy.count > 0);
  };
  const until = async (isSo: () => boolean, withinMs: number): Promise<boolean> => {
    const end = agenda.now + withinMs;
    for (;;) {
      await settle();
      if (isSo()) return true;
      if (agenda.step(end)) continue;
      agenda.run(end);
      return false;
    }
  };
  const time: VirtualTime = {
    get now() {
      return agenda.now;
    },
    async pass(ms) {
      await until(() => false, ms);
    },
    until,
    live: (life, work_) => lives.run(life, work_),
    async real(work_) {
      busy.count += 1;
      try {
        return await work_();
      } finally {
        busy.count -= 1;
      }
    },
  };
  try {
    return await work(time);
  } finally {
    restore();
    syncBuiltinESMExports();
  }
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

/** @returns puts everything back. */
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
