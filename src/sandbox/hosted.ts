import { entryOf } from '../bots/bundle.ts';
import type { HostedSpec } from '../bots/hosted.ts';
import { hostedBot, type Bot } from '../bots/load.ts';
import { engineConfig } from '../bots/spec.ts';
import { stepsOf, type Step } from '../engine/steps.ts';
import type { Bars } from '../market/bars.ts';
import { openSandbox } from './sandbox.ts';

/** What the code of others may take of a server. */
export interface CodeLimits {
  readonly memoryMb: number;
  /** Longest time over a step, ms. */
  readonly timeoutMs: number;
}

export interface HostedRun {
  readonly bot: Bot;
  /** Before the run takes these steps; see `Sandbox`. */
  readonly take: (steps: readonly Step[]) => Promise<void>;
  readonly close: () => Promise<void>;
}

/**
 * A bot of a server, ready for one run: with a process for its strategy, where that came with it.
 *
 * @param limits of that process; they can be undefined where no strategy comes with the bot.
 * @throws ServiceError `invalid_spec` where the spec does not fit the strategy; `invalid_strategy`,
 *   `strategy_failed`, `strategy_timeout`; what `signal` was aborted with.
 */
export async function openHosted(
  hosted: HostedSpec,
  limits: CodeLimits | undefined,
  signal?: AbortSignal,
): Promise<HostedRun> {
  const { files, spec } = hosted;
  if (files === undefined) {
    return { bot: hostedBot(hosted), take: async () => {}, close: async () => {} };
  }
  const { strategy, universe } = spec.spec;
  const { take, close, ...sandbox } = await openSandbox({
    ...limits!,
    files,
    entry: entryOf(strategy.module!),
    symbols: universe.symbols,
    params: strategy.params,
    config: engineConfig(spec),
    signal,
  });
  try {
    return { bot: hostedBot(hosted, sandbox.strategy), take, close };
  } catch (error) {
    await close();
    throw error;
  }
}

const STEPS_AT_ONCE = 4096;

/** Has a process take the steps of whole histories. */
export async function takeAll(
  { take }: Pick<HostedRun, 'take'>,
  instruments: readonly { readonly symbol: string; readonly bars: Bars }[],
  onTaken: (steps: number) => void = () => {},
): Promise<void> {
  let some: Step[] = [];
  let count = 0;
  const flush = async (): Promise<void> => {
    await take(some);
    count += some.length;
    some = [];
    onTaken(count);
  };
  for (const step of stepsOf(instruments)) {
    some.push(step);
    if (some.length === STEPS_AT_ONCE) await flush();
  }
  await flush();
}
