import { codeOf, entryOf } from '../../bots/bundle.ts';
import type { HostedSpec } from '../../bots/hosted.ts';
import { hostedBot, type Bot } from '../../bots/load.ts';
import { engineConfig } from '../../bots/spec.ts';
import type { Signals } from '../../engine/signals.ts';
import { stepsOf, type Step } from '../../engine/steps.ts';
import type { Bars } from '../../market/bars.ts';
import { openSignals } from '../../bots/models/signals.ts';
import { openSandbox } from './sandbox.ts';

/** What the code of others may take of a server. */
export interface CodeLimits {
  readonly memoryMb: number;
  /** Longest time over a step, ms. */
  readonly timeoutMs: number;
}

export interface HostedRun {
  readonly bot: Bot;
  /** Of the steps that were taken; undefined for a bot without models. */
  readonly signals: Signals | undefined;
  /** Whether there is somebody who has to be shown steps: models, or a strategy elsewhere. */
  readonly watches: boolean;
  /** Before the run takes these steps; see `SignalFeed` and `Sandbox`. */
  readonly take: (steps: readonly Step[]) => Promise<void>;
  readonly close: () => Promise<void>;
}

/** A bot whose strategy is run here, with its models ready. @throws ServiceError as `openSignals`. */
export async function openRun(bot: Bot): Promise<HostedRun> {
  if (bot.models.length === 0) {
    return {
      bot,
      signals: undefined,
      watches: false,
      take: async () => {},
      close: async () => {},
    };
  }
  const feed = await openSignals(bot.models, bot.spec.spec.universe.symbols);
  return { bot, watches: true, ...feed };
}

/**
 * A bot of a server, ready for one run: with its models, and a process for its strategy, where these
 * came with it.
 *
 * @param limits of that process; they can be undefined where no strategy comes with the bot.
 * @throws ServiceError `invalid_spec` where the spec does not fit the strategy; `invalid_strategy`,
 *   `strategy_failed`, `strategy_timeout`; as `openSignals`; what `signal` was aborted with.
 */
export async function openHosted(
  hosted: HostedSpec,
  limits: CodeLimits | undefined,
  signal?: AbortSignal,
): Promise<HostedRun> {
  const { spec, models } = hosted;
  const files = codeOf(hosted.files);
  if (files === undefined) return openRun(hostedBot(hosted));
  const { strategy, universe } = spec.spec;
  const { symbols } = universe;
  const feed = models.length === 0 ? undefined : await openSignals(models, symbols);
  const opened: (() => Promise<void>)[] = feed === undefined ? [] : [feed.close];
  const close = async (): Promise<void> => {
    for (const one of opened.splice(0)) await one();
  };
  try {
    const sandbox = await openSandbox({
      ...limits!,
      files,
      entry: entryOf(strategy.module!),
      symbols,
      params: strategy.params,
      config: engineConfig(spec),
      signals: feed?.signals,
      signal,
    });
    opened.push(sandbox.close);
    return {
      bot: hostedBot(hosted, sandbox.strategy),
      signals: feed?.signals,
      watches: true,
      async take(steps) {
        await feed?.take(steps);
        await sandbox.take(steps);
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

const STEPS_AT_ONCE = 4096;

/** Shows whole histories to whoever watches. */
export async function takeAll(
  { take, watches }: Pick<HostedRun, 'take' | 'watches'>,
  instruments: readonly { readonly symbol: string; readonly bars: Bars }[],
  onTaken: (steps: number) => void = () => {},
): Promise<void> {
  if (!watches) return;
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
