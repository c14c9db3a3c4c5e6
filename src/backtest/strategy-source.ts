import { BUILT_IN_STRATEGIES } from '../engine/strategies/built-in.ts';
import type { Strategy } from '../engine/strategy.ts';
import { loadStrategyModule } from './strategy-module.ts';

/** sha256 of each file of a strategy's module graph, by its path relative to the spec. */
export type StrategyFiles = Readonly<Record<string, string>>;

/** Where a strategy comes from, as plain data: what one thread tells another. */
export type StrategySource =
  | { readonly name: string; readonly files?: undefined }
  | { readonly module: string; readonly directory: string; readonly files: StrategyFiles };

/** For a thread that runs nothing else. @throws ServiceError as `loadStrategyModule`. */
export function loadStrategy(source: StrategySource): {
  readonly strategy: Strategy;
  readonly files?: StrategyFiles;
} {
  if ('module' in source) return loadStrategyModule(source.module, source.directory, true);
  return { strategy: BUILT_IN_STRATEGIES.get(source.name)! };
}
