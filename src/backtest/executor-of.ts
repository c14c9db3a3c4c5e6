import { isDeepStrictEqual } from 'node:util';
import { ServiceError } from '../base/errors.ts';
import { execute, type Execute } from './execute.ts';
import type { StrategySource } from './strategy-source.ts';
import { ownStrategies, type StrategyLimits } from './strategy-thread.ts';

/**
 * Returns a function that runs a strategy any number of times. A custom strategy runs in a new thread
 * each time.
 */
export function executorOf(source: StrategySource, limits: StrategyLimits): Execute {
  if (!('module' in source)) return execute;
  return async (setup, options) => {
    const loaded = ownStrategies(limits).load(source.module, source.directory);
    if (isDeepStrictEqual(loaded.files, source.files)) return loaded.execute(setup, options);
    throw new ServiceError('invalid_strategy', 'the strategy changed while it was running', {
      remedy: 'Start the command again, and do not change the strategy until it has finished.',
    });
  };
}
