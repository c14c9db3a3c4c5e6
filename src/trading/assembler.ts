import type { Candle } from '../market/bars.ts';
import { DAY } from '../market/time.ts';
import type { Timeframe } from '../market/timeframe.ts';
import type { ExchangeBar } from './venues/ccxt.ts';
import { Intake, type FeedItem } from './feed.ts';

/** What an exchange said when it was asked for the bars that are missing. */
export interface Answer {
  /** Oldest first. */
  readonly bars: readonly ExchangeBar[];
  /** Its clock before they were asked for: bars that end by then are closed. */
  readonly clock: number;
}

/** What is known of one instrument. Times are ms since the epoch. */
interface Track {
  /** Bars up to this time are not the session's; undefined until its first is known. */
  begin: number | undefined;
  /** All bars up to this time are closed, and those that there are are here. */
  through: number;
  /** The newest bar that the stream told of since it was cut off last. */
  newest: number;
  /** Whether the stream passed over bars, so that those before `newest` are not known. */
  hasHole: boolean;
  /** What the stream showed last. */
  shown: ReadonlyMap<number, ExchangeBar> | undefined;
  /** Not in a step yet; the newest may be open. */
  readonly pending: Map<number, ExchangeBar>;
}

/**
 * Makes steps of the bars of several instruments that come one by one, are revised while they are
 * open, and are cut off at times.
 *
 * A bar is closed when the stream has told of a later one of its instrument, or when the exchange
 * was asked and its clock had passed the end of the bar; our own clock decides nothing. A step is
 * made once that is so for every instrument: those without a bar then had no trades. Bars that the
 * stream passed over, as it does when it is cut off, are unknown until the exchange was asked.
 */
export class Assembler {
  readonly #timeframe: Timeframe;
  readonly #tracks: ReadonlyMap<string, Track>;
  readonly #intake: Intake;
  #refused: FeedItem[] = [];
  #step = -Infinity;

  /** @param after time of the newest step that was taken before. */
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
      symbols.map((symbol) => [symbol, { ...start, shown: undefined, pending: new Map() }]),
    );
  }

  /** What the stream shows of an instrument now: its newest bars, most of them once more. */
  show(symbol: string, bars: readonly ExchangeBar[]): void {
    const newest = bars.reduce((most, { time }) => Math.max(most, time), -Infinity);
    if (newest === -Infinity) return;
    const track = this.#tracks.get(symbol)!;
    const { shown } = track;
    const changed = bars.filter((bar) =>
      // Of those before it nobody knows how they went on while the stream was cut off.
      shown === undefined ? bar.time === newest : !isSame(shown.get(bar.time), bar),
    );
    track.shown = new Map(bars.map((bar) => [bar.time, bar]));
    for (const bar of changed.sort((a, b) => a.time - b.time)) this.#update(symbol, track, bar);
  }

  #update(symbol: string, track: Track, bar: ExchangeBar): void {
    const { time } = bar;
    if (!this.#isAligned(time)) {
      this.#refuse(symbol, time);
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
      this.#refused.push(...this.#intake.take({ time, bars: { [symbol]: candleOf(bar) } }));
    }
  }

  /** The stream of an instrument was cut off: what it showed of an open bar may not be all of it. */
  cutOff(symbol: string): void {
    const track = this.#tracks.get(symbol)!;
    for (const time of track.pending.keys()) {
      if (time > track.through) track.pending.delete(time);
    }
    Object.assign(track, { newest: -Infinity, hasHole: false, shown: undefined });
  }

  /** Whether the exchange has to be asked, without waiting for the stream to tell. */
  hasHole(symbol: string): boolean {
    return this.#tracks.get(symbol)!.hasHole;
  }

  /** The instruments that have a hole, or that a step waits for which is closed for others. */
  awaited(): string[] {
    const time = this.#due();
    const isDone = [...this.#tracks.values()].some(({ through }) => through >= time);
    return [...this.#tracks].flatMap(([symbol, { through, hasHole }]) =>
      hasHole || (isDone && through < time) ? [symbol] : [],
    );
  }

  /** From where on the exchange is to be asked; undefined when nothing is known to be missing. */
  missingSince(symbol: string): number | undefined {
    const { begin = this.#due() - 1, through } = this.#tracks.get(symbol)!;
    const known = Math.max(begin, through, this.#step);
    return known === Infinity ? undefined : known + 1;
  }

  /**
   * What the exchange answered.
   * @returns whether it has closed bars that the stream should have told of and did not.
   */
  fill(symbol: string, { bars, clock }: Answer): boolean {
    const track = this.#tracks.get(symbol)!;
    track.begin ??= this.#due() - 1;
    const floor = Math.max(track.begin, this.#step);
    const through = this.#closedAt(clock);
    const closed = bars.filter(({ time }) => time > floor && time <= through);
    for (const bar of closed) {
      if (this.#isAligned(bar.time)) track.pending.set(bar.time, bar);
      else this.#refuse(symbol, bar.time);
    }
    for (const time of track.pending.keys()) {
      // It is to open only after a whole bar.
      if (time < clock + this.#timeframe.ms) continue;
      track.pending.delete(time);
      this.#refuse(symbol, time);
      track.newest = Math.max(...track.pending.keys(), -Infinity);
    }
    const isBehind = closed.some(({ time }) => time > track.newest);
    if (clock >= track.newest) track.hasHole = false;
    track.through = Math.max(track.through, through, track.hasHole ? -Infinity : track.newest - 1);
    return isBehind;
  }

  /** The exchange did not answer: what was asked for stays missing. */
  giveUp(symbol: string): void {
    const track = this.#tracks.get(symbol)!;
    const time = this.#due();
    if (time === Infinity) return;
    // Nobody knows how an open one ended.
    if (track.newest <= time) track.pending.delete(time);
    track.hasHole = false;
    track.through = Math.max(track.through, time, track.newest - 1);
  }

  /** What is new since it was asked last, in order. */
  take(): FeedItem[] {
    const items = this.#refused;
    this.#refused = [];
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
      else items.push(refusal(symbol, time));
    }
    this.#step = time;
    if (Object.keys(bars).length > 0) items.push(...this.#intake.take({ time, bars }));
    return items;
  }

  /** Time of the next step; Infinity when there is no bar. */
  #due(): number {
    let due = Infinity;
    for (const { pending } of this.#tracks.values()) {
      for (const time of pending.keys()) due = Math.min(due, time);
    }
    return due;
  }

  #refuse(symbol: string, time: number): void {
    this.#refused.push(refusal(symbol, time));
  }

  /** When the bar ends that is open at that time, or was opened then. */
  #endOf(time: number): number {
    const { name, ms } = this.#timeframe;
    if (name !== '1mo' || time === -Infinity) return time + ms;
    const date = new Date(time);
    return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1);
  }

  /** Bars up to this time are closed when it is so late on the exchange. */
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

/** Of bars taken before, whose times alone matter. */
const TAKEN: Candle = { open: 1, high: 1, low: 1, close: 1, volume: 0 };

function refusal(symbol: string, time: number): FeedItem {
  return { kind: 'data.refused', symbol, time: new Date(time).toISOString(), reason: 'invalid' };
}

function candleOf({ open, high, low, close, volume }: ExchangeBar): Candle {
  return { open, high, low, close, volume };
}

function isSame(one: ExchangeBar | undefined, other: ExchangeBar): boolean {
  return (
    one !== undefined &&
    // NaN is the same as NaN.
    Object.is(one.open, other.open) &&
    Object.is(one.high, other.high) &&
    Object.is(one.low, other.low) &&
    Object.is(one.close, other.close) &&
    Object.is(one.volume, other.volume)
  );
}

/** What the catalogue would take, too. */
function isValid({ open, high, low, close, volume }: ExchangeBar): boolean {
  return (
    low > 0 &&
    high < Infinity &&
    low <= Math.min(open, close) &&
    high >= Math.max(open, close) &&
    volume >= 0 &&
    volume < Infinity
  );
}
