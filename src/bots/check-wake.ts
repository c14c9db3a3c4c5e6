import { isDeepStrictEqual } from 'node:util';
import { execute } from '../backtest/execute.ts';
import type { OrderEvent } from '../engine/journal.ts';
import type { Bot } from './load-bot.ts';
import { signalsOver } from './models/signals.ts';
import { prepare } from './prepare.ts';

interface WakeCheckOptions {
  readonly catalogueDir: string;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/**
 * Runs a bot with the `wakeOn` of its strategy, and with a call at every bar.
 *
 * @param load is called once for each run.
 * @returns a description of the first event that differs; undefined if all are equal.
 * @throws ServiceError as the runs do.
 */
export async function wakeDifference(
  load: () => Bot,
  options: WakeCheckOptions,
): Promise<string | undefined> {
  const waking = await eventsOf(load(), false, options);
  const always = await eventsOf(load(), true, options);
  for (let at = 0; at < Math.max(waking.length, always.length); at += 1) {
    if (isDeepStrictEqual(waking[at], always[at])) continue;
    const [called, missed] = [waking[at], always[at]];
    if (missed !== undefined && (called === undefined || called.time > missed.time)) {
      return `wakeOn skips ${missed.time}, where onBar acts (${missed.kind} of order ${missed.order}); widen wakeOn`;
    }
    const isSameHead = describe(waking[at]) === describe(always[at]);
    const [one, other] = [waking[at], always[at]].map((event) =>
      isSameHead ? JSON.stringify(event) : describe(event),
    );
    return `event ${at + 1} is ${one} with wakeOn, and ${other} without`;
  }
  return undefined;
}

async function eventsOf(
  bot: Bot,
  ignoresWakeOn: boolean,
  { catalogueDir, timeoutMs, signal }: WakeCheckOptions,
): Promise<OrderEvent[]> {
  const { job } = await prepare(bot, { catalogueDir, assertions: [], benchmark: false });
  const { instruments, strategy, params, config } = job;
  const signals = await signalsOver(bot.models, instruments, signal);
  const setup = { instruments, strategy, params, config, signals, ignoresWakeOn };
  const { journal } = await (job.execute ?? execute)(setup, { timeoutMs, signal });
  return [...journal.events()];
}

function describe(event: OrderEvent | undefined): string {
  return event === undefined ? 'missing' : `${event.kind} of order ${event.order} at ${event.time}`;
}
