import { Script } from 'node:vm';
import { isMainThread } from 'node:worker_threads';

/** What is being watched. A script reaches only globals, and a global that comes and goes makes V8
 * throw away the code it has compiled, so one that stays calls whatever is here. */
let watched: () => unknown;
Object.defineProperty(globalThis, Symbol.for('service-local.watched'), {
  value: () => watched(),
});
const script = new Script(`globalThis[Symbol.for('service-local.watched')]()`, {
  // A stack trace then shows its frame among those of this file.
  filename: import.meta.url,
});

/**
 * Calls `work` under V8's own watchdog: nothing in JavaScript can interrupt code that loops for
 * ever, neither a timer nor a signal handler. Code that is ended so does not even reach its
 * `finally`.
 *
 * @param timeoutMs a whole number.
 * @throws `ERR_SCRIPT_EXECUTION_TIMEOUT`, in the main thread `ERR_SCRIPT_EXECUTION_INTERRUPTED` on
 *   Ctrl-C, and whatever `work` throws.
 */
export function underWatchdog<T>(timeoutMs: number, work: () => T): T {
  watched = work;
  // Signals belong to the main thread; a worker that listened would take them away from it.
  return script.runInThisContext({ timeout: timeoutMs, breakOnSigint: isMainThread }) as T;
}

/** The unguarded clock, which `strategy-guard.ts` denies to strategies. */
const now = performance.now.bind(performance);

/** Short enough to answer Ctrl-C and draw progress at once, long enough to cost nothing. */
const SLICE_MS = 50;
/** Steps between two looks at the clock: one to begin with, more while they are quick. */
const MOST_STEPS_AT_ONCE = 1024;

/**
 * Cuts long work into slices of about 50 ms. V8 compiles a loop worse when its first call is one long
 * run, and has settled by the time it gets many steps at once.
 *
 * @param advance takes up to so many steps; whether any remain.
 * @returns does a slice; whether any steps remain.
 */
export function inSlices(advance: (steps: number) => boolean): () => boolean {
  let atOnce = 1;
  return () => {
    let begun = now();
    const end = begun + SLICE_MS;
    for (;;) {
      const more = advance(atOnce);
      const took = now() - begun;
      begun += took;
      if (!more || begun >= end) return more;
      if (took < 1) atOnce = Math.min(atOnce * 2, MOST_STEPS_AT_ONCE);
      else if (took > SLICE_MS / 10) atOnce = Math.max(1, atOnce >> 1);
    }
  };
}
