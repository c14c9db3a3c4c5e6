import { isoTime } from '../base/iso-time.ts';
import { earlierParts, type EarlierPart } from '../engine/earlier-bars.ts';
import type { EngineInstrument } from '../engine/engine-setup.ts';
import type { Step } from '../engine/steps.ts';
import { sliceBars, type Bars } from '../market/bars.ts';
import { holeInPeriods, holesLike } from '../market/data-gaps.ts';
import type { HoleBetween } from '../market/data-gaps.ts';
import type { Timeframe } from '../market/timeframe.ts';

/** Observations of a feed about its data. Times are RFC 3339 UTC. */
export type DataEvent =
  | {
      /** Bars missing from the usual hours of the market. */
      readonly kind: 'data.gap';
      readonly symbol: string;
      /** Times of the bars before and after the gap. */
      readonly after: string;
      readonly before: string;
      readonly missing: number;
    }
  | {
      /**
       * A bar that must not be used: it is older than the last step, repeats the newest bar of its
       * instrument, perhaps with other values, or is malformed.
       */
      readonly kind: 'data.refused';
      readonly symbol: string;
      readonly time: string;
      readonly reason: 'late' | 'duplicate' | 'invalid';
    };

/** A step, some of the bars before the first step, or an observation. */
export type FeedItem =
  | { readonly kind: 'data.bars'; readonly step: Step }
  | ({ readonly kind: 'data.warm_up' } & EarlierPart)
  | DataEvent;

/**
 * Source of the bars of a session. A session that resumes requests only the steps after the last
 * recorded one.
 */
export interface SessionFeed {
  /** Count of all steps; null if unknown. */
  readonly total: number | null;
  /** Duration of a bar, ms. */
  readonly barMs: number;
  /** Notes for the report, as sentences. */
  readonly notes: readonly string[];
  /**
   * Iterates over steps, gaps and rejected bars until the data ends. Bars before the first step, if
   * the feed has any, come first.
   *
   * @param after time of the last recorded step, ms since epoch; undefined for all steps.
   * @param signal iterating throws its reason.
   */
  items(after: number | undefined, signal: AbortSignal): AsyncIterable<FeedItem>;
  /**
   * Describes the source of bars taken from this feed: their count before resampling, and how many
   * are missing.
   */
  source(symbol: string, taken: Bars): { readonly bars: number; readonly missing: number };
}

/** An instrument, with bars that show its trading hours, or `always_open`. */
export interface IntakeInstrument {
  readonly symbol: string;
  readonly bars: Bars | 'always_open';
}

/** Detects gaps and late or repeated bars in steps as they arrive. */
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

  /** Returns the gaps before the step, then the step; or what is wrong with its bars. */
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

/** Maximum number of bars in an event `data.warm_up`, so that several fit into a report of a runner. */
export const MOST_WARM_UP_BARS = 4000;

/** The bars before the first step, in parts that fit into one event each. */
export function* warmUpItems(instruments: readonly EngineInstrument[]): Generator<FeedItem> {
  let continues = false;
  for (const { bars: whole, timeframe } of earlierParts(instruments)) {
    for (const [symbol, bars] of Object.entries(whole)) {
      for (let from = 0; from < bars.length; from += MOST_WARM_UP_BARS) {
        const some = sliceBars(bars, from, Math.min(bars.length, from + MOST_WARM_UP_BARS));
        yield { kind: 'data.warm_up', bars: { [symbol]: some }, timeframe, continues };
        continues = true;
      }
    }
  }
}
