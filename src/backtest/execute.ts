import { setImmediate as nextTurn } from 'node:timers/promises';
import { Engine } from '../engine/engine.ts';
import type { EngineSetup } from '../engine/engine-setup.ts';
import type { ReturnedIndicator } from '../engine/series/returned-indicators.ts';
import type { RunResult } from '../engine/run-result.ts';
import { explainStrategyError } from '../engine/strategy-error.ts';
import { runStrategy } from '../base/strategy-guard.ts';
import { inSlices } from '../base/watchdog.ts';

export interface ExecuteOptions {
  /** Longest time without a return from the strategy, ms. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((done: number, total: number) => void) | undefined;
  /** Called once after the run. */
  readonly onIndicators?: ((indicators: readonly ReturnedIndicator[]) => void) | undefined;
  /** Called once if the strategy fails or hangs, with the run up to the failure. */
  readonly onFailure?: ((failed: FailedRun) => void) | undefined;
  /** Called once after a run in a separate thread. */
  readonly onTraces?: ((traces: StrategyTraces) => void) | undefined;
}

/** A run up to the bar at which its strategy failed. */
export interface FailedRun {
  /** The result has no steps if the strategy failed when it was created. */
  readonly result: RunResult;
  readonly indicators: readonly ReturnedIndicator[];
}

export interface StrategyTraces {
  /** Number of timers, sockets and other resources still active at the end, by Node's name. */
  readonly left: Readonly<Record<string, number>>;
  /** Names of the file, network and process APIs used; see `outside.ts`. */
  readonly outside: readonly string[];
}

/** `execute`, or its equivalent in the thread of the strategy. */
export type Execute = (setup: EngineSetup, options: ExecuteOptions) => Promise<RunResult>;

/**
 * Runs an engine from its first bar to its last. Yields to the event loop between slices, so that
 * progress and aborts are handled.
 *
 * @throws ServiceError `strategy_failed` with the bar and the strategy's own stack,
 *   `strategy_timeout`, or the reason with which `signal` was aborted
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
      const result = engine.result();
      // Indicators are incomplete if the strategy failed when it declared them.
      const indicators = result.steps > 0 ? engine.indicators() : [];
      options.onFailure?.({ result, indicators });
      throw explainStrategyError(error, {
        strategy: setup.strategy.name,
        done: engine.done,
        timeoutMs,
      });
    }
    options.onProgress?.(engine.done, engine.steps);
    // Also after the last slice, so that errors in the strategy's pending promises surface.
    await nextTurn();
    if (!more) {
      if (setup.config.closesAtEnd) engine.closeOut();
      options.onIndicators?.(engine.indicators());
      return engine.result();
    }
  }
}
