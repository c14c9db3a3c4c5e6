/** Records the commands of a strategy process and repeats them in the engine of the server. */
import type { StrategyContext, StrategyRun } from '../../engine/strategy.ts';
import { MOST_LINES } from '../../engine/strategy-log.ts';
import { ServiceError } from '../../base/errors.ts';
import { readOrdered, type Command, type Ordered } from './messages.ts';

/** Commands in one run, except logged lines. */
const MOST_COMMANDS = 2_000_000;

/**
 * Creates a recorder of commands that replays each at its step.
 *
 * @param name of the strategy.
 */
export function createPlayer(name: string) {
  const byStep = new Map<number, Command[]>();
  let done = 0;
  let count = 0;
  /** Number of logged lines in `byStep`. */
  let lines = 0;
  let failure: ServiceError | undefined;
  const fail = (error: ServiceError): void => {
    failure ??= error;
  };
  return {
    get done() {
      return done;
    },
    get hasFailed() {
      return failure !== undefined;
    },
    fail,
    /**
     * @param until count of steps sent to the process so far.
     * @throws ServiceError `strategy_failed` for a message that no strategy can cause.
     */
    add(bytes: Uint8Array, until: number): void {
      const message = readOrdered(bytes);
      if (message === undefined || !isFit(message, done, until)) throw invalidMessage(name);
      for (const command of message.commands) {
        if (command[1] === 'log') {
          // In a backtest, the lines of all steps may arrive before the first step is replayed.
          if (lines > MOST_LINES) continue;
          lines += 1;
        } else count += 1;
        const commands = byStep.get(command[0]);
        if (commands === undefined) byStep.set(command[0], [command]);
        else commands.push(command);
      }
      if (count > MOST_COMMANDS) throw tooMany(name);
      ({ done } = message);
      if (message.failed !== undefined) {
        const { code, message: what, remedy } = message.failed;
        fail(new ServiceError(code, what, { remedy }));
      }
    },
    create(context: StrategyContext): StrategyRun {
      let step = -1;
      const play = (): void => {
        for (const command of byStep.get(step) ?? []) {
          if (command[1] === 'log') lines -= 1;
          repeat(context, command);
        }
        byStep.delete(step);
      };
      play();
      return {
        onBar() {
          step += 1;
          play();
          if (step < done) return;
          throw failure ?? new Error(`step ${step} was not sent to the process of ${name}`);
        },
      };
    },
  };
}

/** Whether a message continues after `done` steps, with commands of steps before `until` in order. */
function isFit({ done: newDone, failed, commands }: Ordered, done: number, until: number): boolean {
  // A failed step does not count as done, but its commands do.
  const last = failed ? newDone : newDone - 1;
  if (newDone < done || last >= until) return false;
  return commands.every(([at], i) => {
    const before = commands[i - 1]?.[0] ?? (done === 0 ? -1 : done);
    return at >= before && at <= last;
  });
}

function repeat({ broker, instruments, log }: StrategyContext, command: Command): void {
  if (command[1] === 'log') return log(command[2]);
  if (command[1] === 'cancel') {
    broker.cancel({ id: command[2] });
    return;
  }
  const instrument = instruments[command[2]]!;
  if (command[1] === 'target') broker.target(instrument, command[3]);
  else broker.order({ ...command[3], instrument });
}

export function invalidMessage(name: string): ServiceError {
  return new ServiceError('strategy_failed', `the process of ${name} sent an invalid message`, {
    reason: 'invalid_message',
    remedy: 'Remove code that changes built-in objects such as Array.prototype.',
  });
}

function tooMany(name: string): ServiceError {
  return new ServiceError(
    'strategy_failed',
    `${name} placed more than ${MOST_COMMANDS} orders in one run`,
    {
      reason: 'too_many_orders',
      remedy: 'Place orders only when something changes, or run it over fewer bars.',
    },
  );
}
