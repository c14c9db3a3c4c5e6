import { loadStrategyModule } from './strategy-module.ts';
import { BUILT_IN_STRATEGIES } from '../engine/strategies/built-in.ts';
import type { Strategy } from '../engine/strategy.ts';

/** Where a strategy comes from, as plain data: what one thread tells another. */
export type StrategySource =
  | { readonly name: string }
  | { readonly module: string; readonly directory: string };

/** @throws ServiceError `invalid_strategy` */
export function loadStrategy(source: StrategySource): { readonly strategy: Strategy } {
  if ('module' in source) return loadStrategyModule(source.module, source.directory);
  return { strategy: BUILT_IN_STRATEGIES.get(source.name)! };
}
