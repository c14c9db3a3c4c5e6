import { ServiceError } from '../base/errors.ts';
import { placeIn } from '../base/strategy-guard.ts';

/** An error of a strategy's own code at the bar of `step` and `time`, ms. */
export class StrategyError extends Error {
  readonly step: number;
  readonly time: number;

  constructor(step: number, time: number, cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause });
    this.name = 'StrategyError';
    this.step = step;
    this.time = time;
  }
}

/**
 * Turns an error of an engine under the watchdog into one for users: `strategy_failed` with the bar
 * and the strategy's own stack, `strategy_timeout` or `interrupted`. Returns any other error, which is
 * a bug, unchanged.
 *
 * @param done number of steps that the engine had taken.
 */
export function explainStrategyError(
  error: unknown,
  { strategy, done, timeoutMs }: { strategy: string; done: number; timeoutMs: number },
): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') {
    return new ServiceError(
      'strategy_timeout',
      `strategy ${strategy} did not return from bar ${done + 1} within ${timeoutMs / 1000} s`,
      {
        remedy:
          'Look for an endless loop; if the strategy is only slow, increase its time limit (strategy_timeout_seconds).',
        cause: error,
      },
    );
  }
  if (code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED') {
    return new ServiceError('interrupted', `interrupted at bar ${done + 1}`);
  }
  if (error instanceof ServiceError) return error;
  if (error instanceof StrategyError) {
    // The process that ran the strategy has explained the error.
    if (error.cause instanceof ServiceError) return error.cause;
    const time = Number.isNaN(error.time) ? '' : ` (${new Date(error.time).toISOString()})`;
    const stack = strategyStack(error.cause);
    const remedy = /^\s+at /m.test(stack)
      ? 'Correct the strategy at the line named above.'
      : 'Correct the strategy as the message says.';
    return new ServiceError(
      'strategy_failed',
      `strategy ${strategy} threw at bar ${error.step + 1}${time}: ${stack}`,
      { remedy, cause: error },
    );
  }
  return error;
}

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

/** The stack without frames of the engine and of Node, which do not show the fault. */
function strategyStack(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  const lines = (cause.stack ?? cause.message).split('\n');
  return lines.filter((line) => !/^\s+at /.test(line) || !isOwnFrame(line)).join('\n');
}

const CODE = new URL('..', import.meta.url).href;

function isOwnFrame(line: string): boolean {
  return line.includes(CODE) || line.includes('node:');
}
