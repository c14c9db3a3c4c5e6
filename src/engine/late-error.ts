import { ServiceError } from '../base/errors.ts';
import { placeIn } from '../base/strategy-guard.ts';
import { strategyStack } from './strategy-error.ts';

/**
 * An error in code that a strategy left behind: a callback of a promise, a timer or an event.
 *
 * @param done number of steps completed at that time.
 */
export function lateError(
  error: unknown,
  { strategy, done }: { readonly strategy?: string; readonly done?: number },
): ServiceError {
  if (error instanceof ServiceError) return error;
  const place = placeIn(error instanceof Error ? error.stack : undefined);
  const where = place === undefined ? '' : `${place}: `;
  const who = strategy === undefined ? 'the strategy' : `strategy ${strategy}`;
  const when = done === undefined ? '' : `, after ${done} bars`;
  return new ServiceError(
    'strategy_failed',
    `${where}${who} threw outside of create, onBar and onFill${when}: ${strategyStack(error)}`,
    {
      reason: 'late_error',
      remedy:
        'Finish all work within these functions: the run does not wait for promises, timers or events.',
      cause: error,
    },
  );
}
