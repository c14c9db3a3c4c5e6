import { codeOf, entryOf } from '../../bots/bundle.ts';
import type { HostedSpec } from '../../bots/hosted.ts';
import { hostedBot, type Bot } from '../../bots/load-bot.ts';
import { engineConfig } from '../../bots/spec.ts';
import { earlierParts, type EarlierPart } from '../../engine/earlier-bars.ts';
import type { EngineInstrument } from '../../engine/engine-setup.ts';
import type { Signals } from '../../engine/model-signals.ts';
import { forkStrategy } from '../../engine/forked-strategy.ts';
import { resolveParams } from '../../engine/params.ts';
import { stepsOf, type Step } from '../../engine/steps.ts';
import { openSignals } from '../../bots/models/signals.ts';
import { openSandbox } from './sandbox.ts';

/** Limits of the process that runs an uploaded strategy. */
export interface CodeLimits {
  readonly memoryMb: number;
  /** Longest time for one step, ms. */
  readonly timeoutMs: number;
}

export interface HostedRun {
  readonly bot: Bot;
  /** Signals of the steps passed to `take`; undefined for a bot without models. */
  readonly signals: Signals | undefined;
  /** Whether `take` must be called: the bot has models, or its strategy runs in another process. */
  readonly needsSteps: boolean;
  /** Must resolve before the run takes these steps. See `SignalFeed` and `Sandbox`. */
  readonly take: (steps: readonly Step[]) => Promise<void>;
  /** Passes bars before the run to the process of the strategy. Must precede all steps. */
  readonly warmUp: (part: EarlierPart) => void;
  readonly close: () => Promise<void>;
}

/**
 * Prepares a bot whose strategy runs in this process.
 *
 * @throws ServiceError as `openSignals`.
 */
export async function openRun(bot: Bot): Promise<HostedRun> {
  if (bot.models.length === 0) {
    return {
      bot,
      signals: undefined,
      needsSteps: false,
      take: async () => {},
      warmUp() {},
      close: async () => {},
    };
  }
  const feed = await openSignals(bot.models, bot.spec.spec.universe.symbols);
  return { bot, needsSteps: true, warmUp() {}, ...feed };
}

/** Parameters with which a run begins, instead of those of its spec. */
export interface PastParams {
  /** As authored, without defaults; valid for the strategy. */
  readonly params: Readonly<Record<string, unknown>>;
  /** Time of the last bars that they apply to, ms since epoch. */
  readonly until: number;
}

/**
 * Prepares a bot of a server for one run. Opens its models, and a process for its strategy if the
 * bot was uploaded with code.
 *
 * @param limits of that process; may be undefined for a bot without code.
 * @param past see `forkStrategy`.
 * @throws ServiceError `invalid_spec` if the spec does not fit the strategy; `invalid_strategy`,
 *   `strategy_failed`, `strategy_timeout`; as `openSignals`. Also throws the reason of `signal`.
 */
export async function openHosted(
  hosted: HostedSpec,
  limits: CodeLimits | undefined,
  signal?: AbortSignal,
  past?: PastParams,
): Promise<HostedRun> {
  const { spec, models } = hosted;
  const files = codeOf(hosted.files);
  if (files === undefined) {
    const bot = hostedBot(hosted);
    return openRun(past === undefined ? bot : forkBot(bot, past));
  }
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
      past,
      keepsLog: true,
      signals: feed?.signals,
      signal,
    });
    opened.push(sandbox.close);
    return {
      bot: hostedBot(hosted, sandbox.strategy, sandbox.declare),
      signals: feed?.signals,
      needsSteps: true,
      async take(steps) {
        await feed?.take(steps);
        await sandbox.take(steps);
      },
      warmUp: sandbox.warmUp,
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

function forkBot(bot: Bot, { params, until }: PastParams): Bot {
  const { strategy, spec } = bot;
  const { values } = resolveParams(strategy.params, params);
  const { seed } = engineConfig(spec);
  return { ...bot, strategy: forkStrategy(strategy, { params: values, until, seed }) };
}

const STEPS_AT_ONCE = 4096;

/**
 * Passes all steps of complete histories to `take`, after the bars before them, if the run needs
 * them.
 *
 * @param onTaken receives the count of steps passed so far.
 */
export async function takeAllSteps(
  { take, warmUp, needsSteps }: Pick<HostedRun, 'take' | 'warmUp' | 'needsSteps'>,
  instruments: readonly EngineInstrument[],
  onTaken: (steps: number) => void = () => {},
): Promise<void> {
  if (!needsSteps) return;
  for (const part of earlierParts(instruments)) warmUp(part);
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
