import { BUILT_IN_STRATEGIES } from '../engine/strategies/built-in.ts';
import type { Strategy } from '../engine/strategy.ts';
import { loadStrategyModule } from './strategy-module.ts';

/** sha256 of each file of a strategy, as in `StrategyModule.files`. */
export type StrategyFiles = Readonly<Record<string, string>>;

/** Identifies a strategy in messages between threads. */
export type StrategySource =
  | { readonly name: string; readonly files?: undefined }
  | { readonly module: string; readonly directory: string; readonly files: StrategyFiles };

/**
 * Loads a strategy in a thread that runs nothing else.
 *
 * @throws ServiceError as `loadStrategyModule`
 */
export function loadStrategy(source: StrategySource): {
  readonly strategy: Strategy;
  readonly files?: StrategyFiles;
} {
  if ('module' in source) return loadStrategyModule(source.module, source.directory, true);
  return { strategy: BUILT_IN_STRATEGIES.get(source.name)! };
}
