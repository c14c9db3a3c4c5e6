import { Script } from 'node:vm';
import { isMainThread } from 'node:worker_threads';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Engine, StrategyError } from '../engine/engine.ts';
import type { EngineSetup } from '../engine/engine.ts';
import type { RunResult } from '../engine/result.ts';
import { ServiceError } from '../errors.ts';

export interface ExecuteOptions {
  /** Longest time the strategy may keep the run from going on, ms. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((done: number, total: number) => void) | undefined;
}

/** Short enough to answer Ctrl-C and draw progress at once, long enough to cost nothing. */
const SLICE_MS = 50;
/** Bars between two looks at the clock: one to begin with, more while they are quick. */
const MOST_BARS_AT_ONCE = 1024;

/**
 * Runs an engine from its first bar to its last, in slices. Between slices the event loop turns, so
 * that progress and interrupts come through; and V8, which compiles a loop worse when its first call
 * is one long run, has settled by the time it gets many bars at once.
 *
 * @throws ServiceError `strategy_failed` with the bar and the strategy's own stack,
 *   `strategy_timeout` when it does not come back, and whatever `signal` was aborted with.
 */
export async function execute(setup: EngineSetup, options: ExecuteOptions): Promise<RunResult> {
  const timeoutMs = Math.ceil(options.timeoutMs);
  const engine = guard(setup, undefined, timeoutMs, () => new Engine(setup));
  let atOnce = 1;
  const slice = (): boolean => {
    let now = performance.now();
    const end = now + SLICE_MS;
    for (;;) {
      const more = engine.advance(atOnce);
      const took = performance.now() - now;
      now += took;
      if (!more || now >= end) return more;
      if (took < 1) atOnce = Math.min(atOnce * 2, MOST_BARS_AT_ONCE);
      else if (took > SLICE_MS / 10) atOnce = Math.max(1, atOnce >> 1);
    }
  };
  for (;;) {
    options.signal?.throwIfAborted();
    const more = guard(setup, engine, timeoutMs, slice);
    options.onProgress?.(engine.done, engine.steps);
    if (!more) return engine.result();
    await nextTurn();
  }
}

/** What is being guarded. A script reaches only globals, and a global that comes and goes makes V8
 * throw away the code it has compiled, so one that stays calls whatever is here. */
let guarded: () => unknown;
Object.defineProperty(globalThis, Symbol.for('service-local.guarded'), {
  value: () => guarded(),
});
const script = new Script(`globalThis[Symbol.for('service-local.guarded')]()`);

/**
 * Calls `work` under V8's own watchdog: nothing in JavaScript can interrupt a strategy that loops
 * for ever, neither a timer nor a signal handler.
 */
function guard<T>(
  setup: EngineSetup,
  engine: Engine | undefined,
  timeoutMs: number,
  work: () => T,
): T {
  guarded = work;
  try {
    // Signals belong to the main thread; a worker that listened would take them away from it.
    return script.runInThisContext({ timeout: timeoutMs, breakOnSigint: isMainThread }) as T;
  } catch (error) {
    throw explain(error, setup, engine?.done ?? 0, timeoutMs);
  }
}

function explain(error: unknown, setup: EngineSetup, step: number, timeoutMs: number): unknown {
  const { name } = setup.strategy;
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') {
    return new ServiceError(
      'strategy_timeout',
      `strategy ${name} did not come back from bar ${step + 1} within ${timeoutMs / 1000} s`,
      {
        remedy:
          'Look for a loop that never ends; for one that is only slow, raise --strategy-timeout-seconds.',
        cause: error,
      },
    );
  }
  if (code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED') {
    return new ServiceError('interrupted', `interrupted at bar ${step + 1}`);
  }
  if (error instanceof StrategyError) {
    const time = Number.isNaN(error.time) ? '' : ` (${new Date(error.time).toISOString()})`;
    return new ServiceError(
      'strategy_failed',
      `strategy ${name} threw at bar ${error.step + 1}${time}: ${strategyStack(error.cause)}`,
      { remedy: 'Correct the strategy at the line named above.', cause: error },
    );
  }
  return error;
}

/** The user's own frames: those of the engine, above and below them, say nothing about the fault. */
function strategyStack(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  const lines = (cause.stack ?? cause.message).split('\n');
  return lines.filter((line) => !/^\s+at /.test(line) || !isOwnFrame(line)).join('\n');
}

const CODE = new URL('..', import.meta.url).href;

function isOwnFrame(line: string): boolean {
  return line.includes(CODE) || line.includes('node:');
}
