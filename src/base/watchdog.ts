import { Script } from 'node:vm';
import { isMainThread } from 'node:worker_threads';

/**
 * The function to watch. The script can reach only globals, and V8 discards compiled code whenever a
 * global is added or removed, so a permanent global calls the current function.
 */
let watched: () => unknown;
Object.defineProperty(globalThis, Symbol.for('service-local.watched'), {
  value: () => watched(),
});
const script = new Script(`globalThis[Symbol.for('service-local.watched')]()`, {
  // Stack traces then show its frame as one of this file.
  filename: import.meta.url,
});

/**
 * Calls `work` under V8's watchdog, because neither a timer nor a signal handler can interrupt an
 * endless loop. Interrupted code does not run its `finally` blocks.
 *
 * @param timeoutMs a whole number; `Infinity` calls `work` without a watchdog, whose thread costs more
 *   than a short step.
 * @throws `ERR_SCRIPT_EXECUTION_TIMEOUT`, in the main thread `ERR_SCRIPT_EXECUTION_INTERRUPTED` on
 *   Ctrl-C, and whatever `work` throws.
 */
export function underWatchdog<T>(timeoutMs: number, work: () => T): T {
  if (timeoutMs === Infinity) return work();
  watched = work;
  // A worker thread that handled Ctrl-C would keep it from the main thread.
  return script.runInThisContext({ timeout: timeoutMs, breakOnSigint: isMainThread }) as T;
}

/** The clock without the guard that `strategy-guard.ts` puts on it. */
const now = performance.now.bind(performance);

/** Short enough to react to Ctrl-C and show progress, long enough to cost nothing. */
const SLICE_MS = 50;
/** Maximum number of steps between two readings of the clock; slices start with one. */
const MAX_STEPS_AT_ONCE = 1024;

/**
 * Splits long work into slices of about 50 ms. Starting with short calls also lets V8 optimize the
 * loop better than one long first call would.
 *
 * @param advance does up to `steps` steps and returns whether any remain.
 * @returns a function that does one slice and returns whether any steps remain.
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
      if (took < 1) atOnce = Math.min(atOnce * 2, MAX_STEPS_AT_ONCE);
      else if (took > SLICE_MS / 10) atOnce = Math.max(1, atOnce >> 1);
    }
  };
}
