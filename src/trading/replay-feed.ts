import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises';
import { mergeTimes, stepsOf } from '../engine/steps.ts';
import type { Bars } from '../market/bars.ts';
import { findGaps } from '../market/data-gaps.ts';
import type { Timeframe } from '../market/timeframe.ts';
import { Intake, type FeedItem } from './feed.ts';
import type { SessionFeed } from './session-feed.ts';

/** An instrument, with bars that show its trading hours. */
export interface FeedInstrument {
  readonly symbol: string;
  /** Must not be empty. */
  readonly bars: Bars;
}

/** Clock of a feed; tests replace it. */
export interface Clock {
  /** Milliseconds since any fixed moment. */
  now(): number;
  /** Yields to other work of the process, even for 0 ms. Rejects with the reason of the signal. */
  wait(ms: number, signal: AbortSignal | undefined): Promise<void>;
}

const SYSTEM_CLOCK: Clock = {
  now: () => performance.now(),
  async wait(ms, signal) {
    try {
      await (ms === 0 ? nextTurn(undefined, { signal }) : delay(ms, undefined, { signal }));
    } catch (error) {
      signal?.throwIfAborted();
      throw error;
    }
  },
};

export interface ReplayOptions {
  readonly instruments: readonly FeedInstrument[];
  readonly timeframe: Timeframe;
  /** Speed relative to the market, above 0; `max` does not wait. */
  readonly speed: number | 'max';
  /** Skips bars up to this time, ms since epoch. */
  readonly after?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly clock?: Clock | undefined;
}

/** A timer is limited to 24 days, and a step may last a month. */
const LONGEST_WAIT_MS = 3_600_000;
/** Steps without a wait before the feed yields to other work. */
const STEPS_PER_TURN = 64;

/**
 * Replays recorded bars at the pace of the market, times the speed. The first step comes at once. A
 * slow consumer receives the following steps without a wait until it has caught up with the
 * schedule. Time spent paused does not count.
 *
 * Iterating throws the reason of `signal`.
 */
export class ReplayFeed implements AsyncIterable<FeedItem> {
  readonly #options: ReplayOptions;
  readonly #clock: Clock;
  #pause: (PromiseWithResolvers<void> & { readonly since: number }) | undefined;
  #pausedMs = 0;

  constructor(options: ReplayOptions) {
    const { speed } = options;
    if (speed !== 'max' && !(speed > 0 && speed < Infinity)) {
      throw new RangeError(`speed must be a number above 0, or max, not ${speed}`);
    }
    this.#options = options;
    this.#clock = options.clock ?? SYSTEM_CLOCK;
  }

  /** Holds back further steps, including one already waiting. */
  pause(): void {
    this.#pause ??= { ...Promise.withResolvers<void>(), since: this.#clock.now() };
  }

  resume(): void {
    if (this.#pause === undefined) return;
    this.#pausedMs += this.#clock.now() - this.#pause.since;
    this.#pause.resolve();
    this.#pause = undefined;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<FeedItem> {
    const { instruments, timeframe, speed, after: passed = -Infinity, signal } = this.#options;
    const intake = new Intake(instruments, timeframe);
    // Ends a pause, so that a waiting iteration notices the abort.
    const wake = (): void => this.resume();
    signal?.addEventListener('abort', wake);
    try {
      let first: { readonly time: number; readonly at: number } | undefined;
      let steps = 0;
      for (const step of stepsOf(instruments)) {
        if (step.time > passed) {
          steps += 1;
          if (steps % STEPS_PER_TURN === 0) await this.#clock.wait(0, signal);
          const isDueNow = speed === 'max' || first === undefined;
          await this.#until(isDueNow ? -Infinity : first!.at + (step.time - first!.time) / speed);
          first ??= { time: step.time, at: this.#clock.now() - this.#pausedMs };
        }
        const items = intake.take(step);
        if (step.time > passed) yield* items;
      }
    } finally {
      signal?.removeEventListener('abort', wake);
    }
  }

  /** @param due time by the clock, not counting pauses. */
  async #until(due: number): Promise<void> {
    const { signal } = this.#options;
    for (;;) {
      signal?.throwIfAborted();
      const ms = due + this.#pausedMs - this.#clock.now();
      if (this.#pause !== undefined) await this.#pause.promise;
      else if (ms > 0) await this.#clock.wait(Math.min(ms, LONGEST_WAIT_MS), signal);
      else return;
    }
  }
}

interface ReplayedInstrument extends FeedInstrument {
  /** Number of bars in the source data, and of bars missing from it, before any resampling. */
  readonly source: { readonly bars: number; readonly missing: number };
}

/** Feeds recorded bars to a session at `speed` times the pace of the market. */
export function replaySessionFeed(
  { instruments }: { readonly instruments: readonly ReplayedInstrument[] },
  timeframe: Timeframe,
  notes: readonly string[],
  speed: number | 'max',
): SessionFeed {
  return {
    total: mergeTimes(instruments.map(({ bars }) => bars)).length,
    barMs: timeframe.ms,
    notes,
    items: (after, signal) => new ReplayFeed({ instruments, timeframe, speed, after, signal }),
    source(symbol, taken) {
      const { bars, source } = instruments.find((one) => one.symbol === symbol)!;
      // How many source bars a partial series was resampled from is unknown.
      return taken.length === bars.length
        ? source
        : { bars: taken.length, missing: findGaps(taken, timeframe).missing };
    },
  };
}
