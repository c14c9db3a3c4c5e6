import type { Candle } from '../market/bars.ts';
import { DAY } from '../base/durations.ts';
import type { Timeframe } from '../market/timeframe.ts';
import type { ExchangeBar } from './venues/market-data.ts';
import { Intake, type FeedItem } from './feed.ts';

/** Answer of an exchange to a request for missing bars. */
export interface Answer {
  readonly bars: readonly ExchangeBar[];
  /** Time of the exchange before the request, ms since epoch. Bars that end by then are closed. */
  readonly clock: number;
}

/** Bars of one instrument. Times are ms since epoch. */
interface Track {
  /** The session starts after this time; undefined until the first bar is known. */
  begin: number | undefined;
  /** All bars up to this time are closed and known. */
  through: number;
  /** Time of the newest bar that the stream has sent since it connected. */
  newest: number;
  /** Whether the stream skipped bars, so that some before `newest` are unknown. */
  hasHole: boolean;
  /** Bars of the last message of the stream. */
  lastMessage: ReadonlyMap<number, ExchangeBar> | undefined;
  /** Bars that are in no step yet. The newest may be open. */
  readonly pending: Map<number, ExchangeBar>;
}

/**
 * Makes steps from bars of several instruments. Their streams send bars one by one, revise open
 * bars and may disconnect.
 *
 * A bar is closed when the stream has sent a later one of its instrument, or when the clock of the
 * exchange has passed its end. The local clock decides nothing. A step is complete once all bars of
 * its time are closed; an instrument without a bar had no trades. Bars that the stream skipped, for
 * example during a disconnect, are unknown until the exchange was queried.
 */
export class Assembler {
  readonly #timeframe: Timeframe;
  readonly #tracks: ReadonlyMap<string, Track>;
  readonly #intake: Intake;
  #rejected: FeedItem[] = [];
  #step = -Infinity;

  /** @param after time of the last step taken earlier, ms since epoch. */
  constructor(symbols: readonly string[], timeframe: Timeframe, after: number | undefined) {
    this.#timeframe = timeframe;
    this.#intake = new Intake(
      symbols.map((symbol) => ({ symbol, bars: 'always_open' })),
      timeframe,
    );
    if (after !== undefined) {
      const bars = Object.fromEntries(symbols.map((symbol) => [symbol, TAKEN]));
      this.#intake.take({ time: after, bars });
      this.#step = after;
    }
    const start = { begin: after, through: -Infinity, newest: -Infinity, hasHole: false };
    this.#tracks = new Map(
      symbols.map((symbol) => [symbol, { ...start, lastMessage: undefined, pending: new Map() }]),
    );
  }

  /** Takes a message of the stream: the newest bars of an instrument, most of them repeated. */
  update(symbol: string, bars: readonly ExchangeBar[]): void {
    const newest = bars.reduce((most, { time }) => Math.max(most, time), -Infinity);
    if (newest === -Infinity) return;
    const track = this.#tracks.get(symbol)!;
    const { lastMessage } = track;
    const changed = bars.filter((bar) =>
      // The final values of bars during a disconnect are unknown, so only the newest bar counts.
      lastMessage === undefined ? bar.time === newest : !isSame(lastMessage.get(bar.time), bar),
    );
    track.lastMessage = new Map(bars.map((bar) => [bar.time, bar]));
    for (const bar of changed.sort((a, b) => a.time - b.time)) this.#updateBar(symbol, track, bar);
  }

  #updateBar(symbol: string, track: Track, bar: ExchangeBar): void {
    const { time } = bar;
    if (!this.#isAligned(time)) {
      this.#reject(symbol, time);
      return;
    }
    track.begin ??= time - 1;
    const floor = Math.max(track.begin, this.#step);
    if (time > floor) {
      const known = track.newest === -Infinity ? Math.max(floor, track.through) : track.newest;
      if (this.#endOf(known) < time) track.hasHole = true;
      track.pending.set(time, bar);
      track.newest = Math.max(track.newest, time);
      if (!track.hasHole) track.through = Math.max(track.through, track.newest - 1);
    } else if (time <= this.#step) {
      this.#rejected.push(...this.#intake.take({ time, bars: { [symbol]: candleOf(bar) } }));
    }
  }

  /** Handles a disconnect of the stream. Bars that were open may be incomplete. */
  cutOff(symbol: string): void {
    const track = this.#tracks.get(symbol)!;
    for (const time of track.pending.keys()) {
      if (time > track.through) track.pending.delete(time);
    }
    Object.assign(track, { newest: -Infinity, hasHole: false, lastMessage: undefined });
  }

  /** Whether the exchange must be queried now. */
  hasHole(symbol: string): boolean {
    return this.#tracks.get(symbol)!.hasHole;
  }

  /**
   * Returns the instruments to query: those with a hole, and those without a closed bar for a step
   * that is closed for another instrument.
   */
  symbolsToFetch(): string[] {
    const time = this.#due();
    const isDone = [...this.#tracks.values()].some(({ through }) => through >= time);
    return [...this.#tracks].flatMap(([symbol, { through, hasHole }]) =>
      hasHole || (isDone && through < time) ? [symbol] : [],
    );
  }

  /** Start of the bars to fetch, ms since epoch; undefined if none are known to be missing. */
  missingSince(symbol: string): number | undefined {
    const { begin = this.#due() - 1, through } = this.#tracks.get(symbol)!;
    const known = Math.max(begin, through, this.#step);
    return known === Infinity ? undefined : known + 1;
  }

  /**
   * Takes the answer of the exchange.
   *
   * @returns whether it contains closed bars that the stream should have sent but did not.
   */
  fill(symbol: string, { bars, clock }: Answer): boolean {
    const track = this.#tracks.get(symbol)!;
    track.begin ??= this.#due() - 1;
    const floor = Math.max(track.begin, this.#step);
    const through = this.#closedAt(clock);
    const closed = bars.filter(({ time }) => time > floor && time <= through);
    for (const bar of closed) {
      if (this.#isAligned(bar.time)) track.pending.set(bar.time, bar);
      else this.#reject(symbol, bar.time);
    }
    for (const time of track.pending.keys()) {
      // The bar would open more than one bar after the clock of the exchange.
      if (time < clock + this.#timeframe.ms) continue;
      track.pending.delete(time);
      this.#reject(symbol, time);
      track.newest = Math.max(...track.pending.keys(), -Infinity);
    }
    const isBehind = closed.some(({ time }) => time > track.newest);
    if (clock >= track.newest) track.hasHole = false;
    track.through = Math.max(track.through, through, track.hasHole ? -Infinity : track.newest - 1);
    return isBehind;
  }

  /** Handles a failed query: the missing bars stay missing. */
  giveUp(symbol: string): void {
    const track = this.#tracks.get(symbol)!;
    const time = this.#due();
    if (time === Infinity) return;
    // The final values of a bar that was still open are unknown.
    if (track.newest <= time) track.pending.delete(time);
    track.hasHole = false;
    track.through = Math.max(track.through, time, track.newest - 1);
  }

  /** Returns the new items since the last call, in order. */
  take(): FeedItem[] {
    const items = this.#rejected;
    this.#rejected = [];
    for (let time = this.#due(); time < Infinity; time = this.#due()) {
      if ([...this.#tracks.values()].some(({ through }) => through < time)) break;
      items.push(...this.#takeStep(time));
    }
    return items;
  }

  #takeStep(time: number): FeedItem[] {
    const items: FeedItem[] = [];
    const bars: Record<string, Candle> = {};
    for (const [symbol, { pending }] of this.#tracks) {
      const bar = pending.get(time);
      if (bar === undefined) continue;
      pending.delete(time);
      if (isValid(bar)) bars[symbol] = candleOf(bar);
      else items.push(rejectedBar(symbol, time));
    }
    this.#step = time;
    if (Object.keys(bars).length > 0) items.push(...this.#intake.take({ time, bars }));
    return items;
  }

  /** Time of the next step, ms since epoch; Infinity without a pending bar. */
  #due(): number {
    let due = Infinity;
    for (const { pending } of this.#tracks.values()) {
      for (const time of pending.keys()) due = Math.min(due, time);
    }
    return due;
  }

  #reject(symbol: string, time: number): void {
    this.#rejected.push(rejectedBar(symbol, time));
  }

  /** Returns the end of the bar that is open at this time. */
  #endOf(time: number): number {
    const { name, ms } = this.#timeframe;
    if (name !== '1mo' || time === -Infinity) return time + ms;
    const date = new Date(time);
    return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1);
  }

  /** Returns the opening time up to which bars are closed at this time of the exchange. */
  #closedAt(clock: number): number {
    const { name, ms } = this.#timeframe;
    if (name !== '1mo') return clock - ms;
    const date = new Date(clock);
    return Date.UTC(date.getUTCFullYear(), date.getUTCMonth()) - 1;
  }

  #isAligned(time: number): boolean {
    const { ms } = this.#timeframe;
    return ms > DAY || time % ms === 0;
  }
}

/** Placeholder for bars of an earlier session, of which only the time matters. */
const TAKEN: Candle = { open: 1, high: 1, low: 1, close: 1, volume: 0 };

function rejectedBar(symbol: string, time: number): FeedItem {
  return { kind: 'data.refused', symbol, time: new Date(time).toISOString(), reason: 'invalid' };
}

function candleOf({ open, high, low, close, volume }: ExchangeBar): Candle {
  return { open, high, low, close, volume };
}

function isSame(one: ExchangeBar | undefined, other: ExchangeBar): boolean {
  return (
    one !== undefined &&
    // Object.is, because NaN must equal NaN.
    Object.is(one.open, other.open) &&
    Object.is(one.high, other.high) &&
    Object.is(one.low, other.low) &&
    Object.is(one.close, other.close) &&
    Object.is(one.volume, other.volume)
  );
}

/** Same rules as in the catalogue. */
export function isValid({ open, high, low, close, volume }: ExchangeBar): boolean {
  return (
    low > 0 &&
    high < Infinity &&
    low <= Math.min(open, close) &&
    high >= Math.max(open, close) &&
    volume >= 0 &&
    volume < Infinity
  );
}
