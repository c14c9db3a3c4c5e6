import { setImmediate as nextTurn } from 'node:timers/promises';
import { Engine } from '../engine/engine.ts';
import type { EngineSetup } from '../engine/engine.ts';
import type { RunResult } from '../engine/result.ts';
import { explainStrategyError } from '../engine/strategy-error.ts';
import { runStrategy } from '../base/strategy-guard.ts';
import { inSlices } from '../base/watchdog.ts';

export interface ExecuteOptions {
  /** Longest time the strategy may keep the run from going on, ms. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((done: number, total: number) => void) | undefined;
  /** Called once after a run in a separate thread. */
  readonly onTraces?: ((traces: StrategyTraces) => void) | undefined;
}

/** Side effects of a strategy's run. */
export interface StrategyTraces {
  /** Timers, sockets and the like that were still active at the end, by Node's name for them. */
  readonly left: Readonly<Record<string, number>>;
  /** File, network and process APIs that it used; see `outside.ts`. */
  readonly outside: readonly string[];
}

/** `execute`, or its equivalent in the thread of the strategy. */
export type Execute = (setup: EngineSetup, options: ExecuteOptions) => Promise<RunResult>;

/**
 * Runs an engine from its first bar to its last, in slices, between which the event loop turns, so
 * that progress and interrupts come through.
 *
 * @throws ServiceError `strategy_failed` with the bar and the strategy's own stack,
 *   `strategy_timeout` when it does not come back, and whatever `signal` was aborted with.
 */
export async function execute(setup: EngineSetup, options: ExecuteOptions): Promise<RunResult> {
  const timeoutMs = Math.ceil(options.timeoutMs);
  const engine = new Engine(setup);
  const slice = inSlices((steps) => engine.advance(steps));
  for (;;) {
    options.signal?.throwIfAborted();
    let more: boolean;
    try {
      more = runStrategy(timeoutMs, slice);
    } catch (error) {
      throw explainStrategyError(error, {
        strategy: setup.strategy.name,
        done: engine.done,
        timeoutMs,
      });
    }
    options.onProgress?.(engine.done, engine.steps);
    // This also runs after the last slice, so that errors in the strategy's pending promises
    // surface.
    await nextTurn();
    if (!more) return engine.result();
  }
}
