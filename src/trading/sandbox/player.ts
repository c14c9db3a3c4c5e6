/** What a process told that its strategy orders, and the strategy that orders it again. */
import type { StrategyContext, StrategyRun } from '../../engine/strategy.ts';
import { ServiceError } from '../../base/errors.ts';
import { readOrdered, type Command } from './messages.ts';

/** Of one run. */
const MOST_COMMANDS = 2_000_000;

/** Keeps what the process orders until the run comes to the step. @param name of its strategy. */
export function createPlayer(name: string) {
  const byStep = new Map<number, Command[]>();
  let done = 0;
  let count = 0;
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
     * @param until so many steps it has been shown.
     * @throws ServiceError `strategy_failed` for what no strategy can order.
     */
    add(bytes: Uint8Array, until: number): void {
      const message = readOrdered(bytes);
      // A step that failed is not done, and has left orders all the same.
      const last = message === undefined ? 0 : message.failed ? message.done : message.done - 1;
      const isFit =
        message !== undefined &&
        message.done >= done &&
        last < until &&
        message.commands.every(([at], i) => {
          const before = message.commands[i - 1]?.[0] ?? (done === 0 ? -1 : done);
          return at >= before && at <= last;
        });
      if (!isFit) throw misbehaved(name);
      count += message.commands.length;
      if (count > MOST_COMMANDS) throw tooMany(name);
      for (const command of message.commands) {
        const commands = byStep.get(command[0]);
        if (commands === undefined) byStep.set(command[0], [command]);
        else commands.push(command);
      }
      ({ done } = message);
      if (message.failed !== undefined) {
        const { code, message: what, remedy } = message.failed;
        fail(new ServiceError(code, what, { remedy }));
      }
    },
    create(context: StrategyContext): StrategyRun {
      let step = -1;
      const play = (): void => {
        for (const command of byStep.get(step) ?? []) order(context, command);
        byStep.delete(step);
      };
      play();
      return {
        onBar() {
          step += 1;
          play();
          if (step < done) return;
          throw failure ?? new Error(`step ${step} was not shown to the process of ${name}`);
        },
      };
    },
  };
}

function order({ broker, instruments }: StrategyContext, command: Command): void {
  if (command[1] === 'cancel') {
    broker.cancel({ id: command[2] });
    return;
  }
  const instrument = instruments[command[2]]!;
  if (command[1] === 'target') broker.target(instrument, command[3]);
  else broker.order({ ...command[3], instrument });
}

export function misbehaved(name: string): ServiceError {
  return new ServiceError('strategy_failed', `${name} told what no strategy can order`, {
    reason: 'invalid_message',
    remedy: 'Let the strategy change no object of the language itself.',
  });
}

function tooMany(name: string): ServiceError {
  return new ServiceError('strategy_failed', `${name} gave over ${MOST_COMMANDS} orders`, {
    reason: 'too_many_orders',
    remedy: 'Let it order only what is to change, or run it over fewer bars.',
  });
}
