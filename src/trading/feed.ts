import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises';
import { stepsOf } from '../engine/steps.ts';
import type { Step } from '../engine/steps.ts';
import type { Bars } from '../market/bars.ts';
import { holeInPeriods, holesLike } from '../market/gaps.ts';
import type { HoleBetween } from '../market/gaps.ts';
import type { Timeframe } from '../market/timeframe.ts';

/** What a feed says about the data beside the bars themselves; times in RFC 3339 UTC. */
export type DataEvent =
  | {
      /** Bars that the market's usual hours would have and that did not come. */
      readonly kind: 'data.gap';
      readonly symbol: string;
      /** The bars on either side. */
      readonly after: string;
      readonly before: string;
      readonly missing: number;
    }
  | {
      /**
       * A bar that must not be used: its time has passed, it is the newest one of its instrument
       * once more (with other values, perhaps), or it is no bar of its market.
       */
      readonly kind: 'data.refused';
      readonly symbol: string;
      readonly time: string;
      readonly reason: 'late' | 'duplicate' | 'invalid';
    };

export type FeedItem = { readonly kind: 'data.bars'; readonly step: Step } | DataEvent;

/** An instrument, and bars of it that tell the hours its market keeps. */
export interface FeedInstrument {
  readonly symbol: string;
  /** At least one. */
  readonly bars: Bars;
}

/** An instrument, and what tells the hours of its market: bars of it, or that it never closes. */
export interface IntakeInstrument {
  readonly symbol: string;
  readonly bars: Bars | 'always_open';
}

/** Looks at steps as they arrive and tells what of them may be used. */
export class Intake {
  readonly #timeframe: Timeframe;
  readonly #holes: ReadonlyMap<string, HoleBetween>;
  readonly #last = new Map<string, number>();
  #time = -Infinity;

  constructor(instruments: readonly IntakeInstrument[], timeframe: Timeframe) {
    this.#timeframe = timeframe;
    this.#holes = new Map(
      instruments.map(({ symbol, bars }) => [
        symbol,
        bars === 'always_open' ? holeInPeriods(timeframe) : holesLike(bars, timeframe),
      ]),
    );
  }

  /** What is to be known before the step, and the step without what was refused. */
  take({ time, bars }: Step): FeedItem[] {
    if (time <= this.#time) {
      return Object.keys(bars).map((symbol) => ({
        kind: 'data.refused',
        symbol,
        time: isoTime(time),
        reason: this.#last.get(symbol) === time ? 'duplicate' : 'late',
      }));
    }
    this.#time = time;
    const gaps = Object.keys(bars).flatMap((symbol) => this.#gapBefore(symbol, time));
    return [...gaps, { kind: 'data.bars', step: { time, bars } }];
  }

  #gapBefore(symbol: string, time: number): DataEvent[] {
    const last = this.#last.get(symbol);
    this.#last.set(symbol, time);
    if (last === undefined || time - last <= this.#timeframe.ms) return [];
    const { missing } = this.#holes.get(symbol)!(last, time);
    if (missing === 0) return [];
    return [{ kind: 'data.gap', symbol, after: isoTime(last), before: isoTime(time), missing }];
  }
}

/** Time as a feed needs it. */
export interface Clock {
  /** Milliseconds since some moment. */
  now(): number;
  /** Lets the rest of the process work, for 0 ms too; rejects with the signal's reason. */
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
  /** In the order of the universe. */
  readonly instruments: readonly FeedInstrument[];
  readonly timeframe: Timeframe;
  /** How many times as fast as the market was, above 0; `max` is as fast as the bars are taken. */
  readonly speed: number | 'max';
  /** Bars up to this time (ms) have been taken before, and are passed over. */
  readonly after?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly clock?: Clock | undefined;
}

/** Timers cannot be set for longer than 24 days, and a step may be a month. */
const LONGEST_WAIT_MS = 3_600_000;
/** Steps without a wait, after which the rest of the process has a turn. */
const STEPS_PER_TURN = 64;

/**
 * Bars of the past as though they came now. The first step comes at once; the others follow at the
 * distances that their times have, divided by the speed. Whoever takes them too slowly gets the next
 * without a wait until the schedule is met again; time spent paused does not count.
 *
 * Iterating throws what `signal` was aborted with.
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

  /** No step comes from now on, not even one that is waited for. */
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
    // Whoever waits for the end of a pause wakes, and sees that it is over.
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

  /** @param due by the clock, as though there had been no pause. */
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

function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}
