import { ownStrategies, type OwnStrategies } from '../backtest/strategy-thread.ts';
import type { Context } from './verb.ts';

/** Loads strategies within the limits that the user has set. */
export function ownStrategiesOf({ settings }: Context): OwnStrategies {
  return ownStrategies({
    timeoutMs: settings.strategy_timeout_seconds * 1000,
    memoryMb: settings.strategy_memory_mb,
  });
}
