/**
 * Runs uploaded strategies, each in a process of its own that can only read bars and return orders.
 * The server repeats these orders in an engine that the process cannot reach. So the strategy
 * decides when to order what, and nothing else in a result.
 */
import { serialize } from 'node:v8';
import type { DeclareIndicators } from '../../engine/declared-indicators.ts';
import { EarlierBars, type EarlierPart } from '../../engine/earlier-bars.ts';
import type { Signals } from '../../engine/model-signals.ts';
import type { Step } from '../../engine/steps.ts';
import type { Strategy } from '../../engine/strategy.ts';
import { ServiceError } from '../../base/errors.ts';
import { readFirst, type Setup } from './messages.ts';
import { createPlayer, invalidMessage } from './player.ts';
import { encodeSteps } from './step-codec.ts';
import { encodeWarmUp } from './warm-up-codec.ts';
import { StrategyProcess } from './strategy-process.ts';

export interface SandboxOptions extends Omit<Setup, 'signals'> {
  /** Signals of models. Their steps must be computed before `take` is called. */
  readonly signals?: Signals | undefined;
  /** Memory of the process, MB. Linux counts memory outside the JavaScript heap, too. */
  readonly memoryMb: number;
  /** Kills the process and rejects pending calls. */
  readonly signal?: AbortSignal | undefined;
}

export interface Sandbox {
  /** Repeats the orders of the process. For one run, over exactly the steps passed to `take`. */
  readonly strategy: Strategy;
  /** Its declared indicators, with the parameters of the setup; undefined if there are none. */
  readonly declare: DeclareIndicators | undefined;
  /** Takes some of the bars before the run. Must precede all steps. */
  readonly warmUp: (part: EarlierPart) => void;
  /**
   * Sends the next steps to the process, oldest first, before the run takes them. Does not throw if
   * the process fails: the strategy then throws a `ServiceError` at the failed step.
   */
  readonly take: (steps: readonly Step[]) => Promise<void>;
  readonly close: () => Promise<void>;
}

/** Time for Node to start, in addition to the time limit of the strategy. */
const START_MS = 10_000;
/**
 * The process checks the time limit itself and reports the failure in more detail, so wait longer.
 */
const LATE_MS = 1000;
/** Steps per message to the process. */
const STEPS_AT_ONCE = 512;

/**
 * Starts a process that loads a strategy.
 *
 * @throws ServiceError `invalid_strategy`, `strategy_failed`, `strategy_timeout`; the reason of
 *   `signal`.
 */
export async function openSandbox(options: SandboxOptions): Promise<Sandbox> {
  const { memoryMb, signal, signals, ...setup } = options;
  const { symbols } = setup;
  const sentBars = new Uint32Array(symbols.length);
  const timeoutMs = Math.ceil(setup.timeoutMs);
  signal?.throwIfAborted();
  const child = new StrategyProcess(memoryMb, signal);
  try {
    child.send(serialize({ ...setup, timeoutMs, signals: signals?.names ?? [] } satisfies Setup));
    const answer = readFirst(await child.receive(START_MS + timeoutMs));
    if (answer === undefined) throw invalidMessage(setup.entry);
    if ('refused' in answer) {
      const { code, message, remedy } = answer.refused;
      throw new ServiceError(code, message, { remedy });
    }
    const { loaded } = answer;
    const player = createPlayer(loaded.name);
    const { indicators } = loaded;
    const earlier = new EarlierBars();
    let isWarm = false;
    return {
      strategy: {
        name: loaded.name,
        description: loaded.description,
        params: loaded.params,
        ...(loaded.instruments && { instruments: { max: Infinity, ...loaded.instruments } }),
        ...(loaded.signals && { signals: loaded.signals }),
        ...(loaded.shorts !== undefined && { shorts: loaded.shorts }),
        check: () => loaded.check,
        create: (context) => player.create(context),
      },
      declare: indicators && (() => indicators),
      warmUp: (part) => earlier.add(part),
      async take(steps) {
        if (!isWarm) child.send(encodeWarmUp(symbols, earlier));
        isWarm = true;
        earlier.clear();
        for (let at = 0; at < steps.length && !player.hasFailed; at += STEPS_AT_ONCE) {
          const some = steps.slice(at, at + STEPS_AT_ONCE);
          const until = player.done + some.length;
          try {
            child.send(encodeSteps(symbols, some, signals, sentBars));
            while (player.done < until && !player.hasFailed) {
              player.add(await child.receive(timeoutMs + LATE_MS), until);
            }
          } catch (error) {
            if (signal?.aborted || !(error instanceof ServiceError)) throw error;
            player.fail(error);
          }
        }
      },
      close: () => child.close(),
    };
  } catch (error) {
    await child.close();
    throw error;
  }
}
