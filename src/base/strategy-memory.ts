import { ServiceError } from './errors.ts';

/** @param setting the setting or option that raises the limit, for the remedy. */
export function outOfMemory(
  memoryMb: number,
  setting = 'its limit (strategy_memory_mb)',
): ServiceError {
  return new ServiceError(
    'strategy_failed',
    `the strategy exceeded its memory limit of ${memoryMb} MB`,
    {
      reason: 'out_of_memory',
      remedy: `Look for a list, map or buffer that grows with every bar. If the strategy needs more memory, raise ${setting}.`,
    },
  );
}
