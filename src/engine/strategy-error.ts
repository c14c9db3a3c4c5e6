import { ServiceError } from '../base/errors.ts';

/** A strategy's own code threw; `step` and `time` (ms) say at which bar. */
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
 * What a user is told of an error that an engine ended with under the watchdog: `strategy_failed`
 * with the bar and the strategy's own stack, `strategy_timeout` or `interrupted`; any other error is
 * a bug and comes back as it is.
 *
 * @param done steps the engine had taken.
 */
export function explainStrategyError(
  error: unknown,
  { strategy, done, timeoutMs }: { strategy: string; done: number; timeoutMs: number },
): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') {
    return new ServiceError(
      'strategy_timeout',
      `strategy ${strategy} did not come back from bar ${done + 1} within ${timeoutMs / 1000} s`,
      {
        remedy:
          'Look for an endless loop; if the strategy is only slow, increase --strategy-timeout-seconds.',
        cause: error,
      },
    );
  }
  if (code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED') {
    return new ServiceError('interrupted', `interrupted at bar ${done + 1}`);
  }
  if (error instanceof ServiceError) return error;
  if (error instanceof StrategyError) {
    // Of a strategy that runs elsewhere, where this was explained already.
    if (error.cause instanceof ServiceError) return error.cause;
    const time = Number.isNaN(error.time) ? '' : ` (${new Date(error.time).toISOString()})`;
    return new ServiceError(
      'strategy_failed',
      `strategy ${strategy} threw at bar ${error.step + 1}${time}: ${strategyStack(error.cause)}`,
      { remedy: 'Correct the strategy at the line named above.', cause: error },
    );
  }
  return error;
}

/** The user's own frames: those of the engine, above and below them, say nothing about the fault. */
export function strategyStack(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  const lines = (cause.stack ?? cause.message).split('\n');
  return lines.filter((line) => !/^\s+at /.test(line) || !isOwnFrame(line)).join('\n');
}

const CODE = new URL('..', import.meta.url).href;

function isOwnFrame(line: string): boolean {
  return line.includes(CODE) || line.includes('node:');
}
