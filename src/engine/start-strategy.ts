import type { EngineSetup } from './engine-setup.ts';
import { seededRandom } from './random.ts';
import type { RunState } from './run-state.ts';
import { StrategyError } from './strategy-error.ts';
import type { Broker, StrategyRun } from './strategy.ts';

/** Creates the strategy of a run in its first step. @throws StrategyError */
export function startStrategy(
  { strategy, params, config }: EngineSetup,
  run: RunState,
  broker: Broker,
): StrategyRun {
  try {
    const started = strategy.create({
      // Copies, since a strategy that changes them would change this run or the next one.
      params: Object.freeze({ ...params }),
      instruments: Object.freeze([...run.instruments]),
      broker,
      random: seededRandom(config.seed),
    });
    rejectAsync(started);
    return started;
  } catch (error) {
    throw new StrategyError(0, run.now, error);
  }
}

/** Code after an `await` would run when the bar is over. */
function rejectAsync(run: StrategyRun): void {
  for (const name of ['onBar', 'onFill'] as const) {
    if (Object.prototype.toString.call(run[name]) === '[object AsyncFunction]') {
      throw new TypeError(`${name} must not be async: a bar is over when it returns`);
    }
  }
}
