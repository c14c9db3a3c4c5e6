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
const FIRST_SLICE = 256;

/**
 * Runs an engine from its first bar to its last, in slices. Between slices the event loop turns, so
 * that progress and interrupts come through; and V8, which compiles a loop worse when its first call
 * is one long run, has settled by the time slices grow long.
 *
 * @throws ServiceError `strategy_failed` with the bar and the strategy's own stack,
 *   `strategy_timeout` when a slice does not come back, and whatever `signal` was aborted with.
 */
export async function execute(setup: EngineSetup, options: ExecuteOptions): Promise<RunResult> {
  const engine = guard(setup, 0, () => new Engine(setup), options.timeoutMs);
  let size = FIRST_SLICE;
  for (;;) {
    options.signal?.throwIfAborted();
    const from = engine.done;
    const started = performance.now();
    const more = guard(setup, from, () => engine.advance(size), options.timeoutMs, engine);
    const elapsed = performance.now() - started;
    options.onProgress?.(engine.done, engine.steps);
    if (!more) return engine.result();
    if (elapsed < SLICE_MS) size *= elapsed < SLICE_MS / 8 ? 8 : 2;
    else if (elapsed > 4 * SLICE_MS) size = Math.max(1, size >> 1);
    await nextTurn();
  }
}

const CALL = Symbol.for('service-local.guarded-call');
const script = new Script(`globalThis[Symbol.for('service-local.guarded-call')]()`);

/**
 * Calls `work` under V8's own watchdog: nothing in JavaScript can interrupt a strategy that loops
 * for ever, neither a timer nor a signal handler.
 */
function guard<T>(
  setup: EngineSetup,
  from: number,
  work: () => T,
  timeoutMs: number,
  engine?: Engine,
): T {
  const scope = globalThis as unknown as Record<symbol, unknown>;
  scope[CALL] = work;
  try {
    // Signals belong to the main thread; a worker that listened would take them away from it.
    return script.runInThisContext({ timeout: timeoutMs, breakOnSigint: isMainThread }) as T;
  } catch (error) {
    throw explain(error, setup, engine?.done ?? from, timeoutMs);
  } finally {
    delete scope[CALL];
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

/** The stack down to where the engine called the strategy; what lies below is not the user's. */
function strategyStack(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  const lines = (cause.stack ?? cause.message).split('\n');
  const end = lines.findIndex((line) => /[/\\]engine[/\\]engine\.[jt]s/.test(line));
  return lines.slice(0, end === -1 ? lines.length : end).join('\n');
}
