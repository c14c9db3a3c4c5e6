import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises';
import type { EngineInstrument } from '../engine/engine-setup.ts';
import { mergeTimes, stepsOf } from '../engine/steps.ts';
import { findGaps } from '../market/data-gaps.ts';
import type { Timeframe } from '../market/timeframe.ts';
import { Intake, warmUpItems, type FeedItem, type SessionFeed } from './feed.ts';

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
  /** Bars must not be empty. */
  readonly instruments: readonly EngineInstrument[];
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
 * slow consumer receives the following steps without a wait until it has caught up with the schedule.
 *
 * Iterating throws the reason of `signal`.
 */
export async function* replayFeed(options: ReplayOptions): AsyncGenerator<FeedItem> {
  const { instruments, timeframe, speed, after = -Infinity, signal } = options;
  const { clock = SYSTEM_CLOCK } = options;
  if (speed !== 'max' && !(speed > 0 && speed < Infinity)) {
    throw new RangeError(`speed must be a number above 0, or max, not ${speed}`);
  }
  const intake = new Intake(instruments, timeframe);
  let first: { readonly time: number; readonly at: number } | undefined;
  let steps = 0;
  if (after === -Infinity) yield* warmUpItems(instruments);
  for (const step of stepsOf(instruments)) {
    const items = intake.take(step);
    if (step.time <= after) continue;
    steps += 1;
    if (steps % STEPS_PER_TURN === 0) await clock.wait(0, signal);
    first ??= { time: step.time, at: clock.now() };
    const due = speed === 'max' ? -Infinity : first.at + (step.time - first.time) / speed;
    await waitUntil(due, clock, signal);
    yield* items;
  }
}

async function waitUntil(due: number, clock: Clock, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted();
  for (let ms = due - clock.now(); ms > 0; ms = due - clock.now()) {
    await clock.wait(Math.min(ms, LONGEST_WAIT_MS), signal);
  }
}

interface ReplayedInstrument extends EngineInstrument {
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
    items: (after, signal) => replayFeed({ instruments, timeframe, speed, after, signal }),
    source(symbol, taken) {
      const { bars, source } = instruments.find((one) => one.symbol === symbol)!;
      // How many source bars a partial series was resampled from is unknown.
      return taken.length === bars.length
        ? source
        : { bars: taken.length, missing: findGaps(taken, timeframe).missing };
    },
  };
}
