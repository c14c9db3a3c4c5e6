import type { Bars } from '../../market/bars.ts';
import type { CoarseBars } from './coarse-bars.ts';

/** Cursors of a run, which its engine moves. */
export interface Cursors {
  /** Index of the newest entry of the run; −1 before its first. */
  readonly cursors: Int32Array;
  /** Number of entries that the current step brought. */
  readonly fresh: Uint8Array;
}

/** The bars of an instrument at the entries of a clock. */
export interface EntryBars {
  /** Number of bars before the run, which come first. */
  readonly before: number;
  /** Index of the bar by entry; absent if entry `i` is bar `i`. */
  readonly rows?: Int32Array;
}

/** The steps at which a series has entries, numbered from 0, and the position of a run in them. */
export abstract class Clock {
  readonly key: string;
  /** Empty for the bars of the run. Only series of one timeframe can be combined. */
  readonly timeframe: string;
  readonly #cursors: Int32Array;
  readonly #fresh: Uint8Array;
  readonly #place: number;
  /** Number of entries before the run. */
  readonly first: number;
  /** Number of entries that can be computed. It may exceed those that the run has reached. */
  length = 0;

  constructor(
    key: string,
    timeframe: string,
    { cursors, fresh }: Cursors,
    place: number,
    first = 0,
  ) {
    this.key = key;
    this.timeframe = timeframe;
    this.#cursors = cursors;
    this.#fresh = fresh;
    this.#place = place;
    this.first = first;
  }

  /** Index of the newest entry; −1 before the first. */
  get cursor(): number {
    return this.first + this.#cursors[this.#place]!;
  }

  /** Index of the newest entry at the step before the current one; −1 before the first. */
  get previous(): number {
    return this.cursor - this.#fresh[this.#place]!;
  }

  /** Maximum number of bars of an instrument in one entry. */
  get barsPerEntry(): number {
    return 1;
  }

  /** Upper bound of `length` for the bars that are known now. */
  abstract get capacity(): number;

  /** Milliseconds since the epoch. */
  abstract timeOf(entry: number): number;

  /** Adds the entries up to `time`. */
  abstract extend(time: number): void;

  /** Adds the entries before the run. */
  abstract begin(): void;

  /** The instruments that have a bar at each entry, by index. */
  abstract entryBars(): ReadonlyMap<number, EntryBars>;
}

/** One entry for each bar of an instrument, also for those before the run. */
export class BarClock extends Clock {
  readonly #histories: readonly Bars[];
  /** Index of the instrument. */
  readonly index: number;

  /** @param first number of bars before the run. */
  constructor(histories: readonly Bars[], index: number, cursors: Cursors, first: number) {
    super(`${index}`, '', cursors, index, first);
    this.#histories = histories;
    this.index = index;
  }

  /** They may be replaced by longer ones with the same beginning. */
  get bars(): Bars {
    return this.#histories[this.index]!;
  }

  get capacity(): number {
    return this.bars.length;
  }

  timeOf(entry: number): number {
    return this.bars.time[entry]!;
  }

  entryBars(): ReadonlyMap<number, EntryBars> {
    return new Map([[this.index, { before: this.first }]]);
  }

  extend(time: number): void {
    const { time: times, length } = this.bars;
    let [from, to] = [this.length, length];
    while (from < to) {
      const middle = (from + to) >>> 1;
      if (times[middle]! <= time) from = middle + 1;
      else to = middle;
    }
    this.length = from;
  }

  begin(): void {
    this.length = this.first;
  }
}

/** A clock whose position follows from the positions of other clocks. */
abstract class FollowingClock extends Clock {
  readonly #own: Cursors;

  constructor(key: string, timeframe: string) {
    const own = { cursors: new Int32Array([-1]), fresh: new Uint8Array(1) };
    super(key, timeframe, own, 0);
    this.#own = own;
  }

  begin(): void {
    this.extend();
    this.advance();
    this.#own.fresh[0] = 0;
  }

  /** Moves to the newest entry that the other clocks have reached in the current step. */
  advance(): void {
    const before = this.cursor;
    let at = before;
    while (at + 1 < this.length && this.isReached(at + 1)) at += 1;
    this.#own.cursors[0] = at;
    this.#own.fresh[0] = at - before;
  }

  abstract override extend(): void;

  /** Whether the other clocks have reached an entry. */
  protected abstract isReached(entry: number): boolean;
}

/** One entry for each completed bar of a longer timeframe. */
export class CoarseClock extends FollowingClock {
  readonly #source: BarClock;
  readonly #coarse: CoarseBars;

  /** @param coarse may already have bars that the run has not reached. */
  constructor(key: string, source: BarClock, coarse: CoarseBars) {
    super(key, coarse.timeframe.name);
    this.#source = source;
    this.#coarse = coarse;
  }

  get bars(): Bars {
    return this.#coarse.bars;
  }

  get capacity(): number {
    const { time, length } = this.#source.bars;
    const span = length === 0 ? 0 : time[length - 1]! - time[0]!;
    return Math.max(this.length, Math.ceil(span / this.#coarse.timeframe.ms) + 2);
  }

  timeOf(entry: number): number {
    return this.bars.time[entry]!;
  }

  extend(): void {
    this.#coarse.extend(this.#source.bars, this.#source.length);
    this.length = this.#coarse.countAt(this.#source.length - 1);
  }

  /** The bars at which the entries were complete. */
  entryBars(): ReadonlyMap<number, EntryBars> {
    const rows = this.#coarse.completedAt.subarray(0, this.length);
    return new Map([[this.#source.index, { before: this.#source.first, rows }]]);
  }

  protected isReached(entry: number): boolean {
    return this.#coarse.completedAt[entry]! <= this.#source.cursor;
  }

  override get barsPerEntry(): number {
    return this.#coarse.barsPerEntry;
  }

  /** The index of the newest entry at each of `count` steps from `from` on; −1 before the first. */
  entriesAt(from: number, count: number): Int32Array {
    const { completedAt } = this.#coarse;
    const start = this.#source.first + from;
    const entries = new Int32Array(count);
    let entry = this.#coarse.countAt(start) - 1;
    for (let at = 0; at < count; at += 1) {
      while (entry + 1 < this.length && completedAt[entry + 1]! <= start + at) entry += 1;
      entries[at] = entry;
    }
    return entries;
  }
}

/** One entry for each step at which all of several clocks have one. */
export class JointClock extends FollowingClock {
  readonly sources: readonly Clock[];
  /** Indices in each source, by entry. */
  readonly #rows: Int32Array[];
  /** Entries of each source that were searched. */
  readonly #searched: Int32Array;

  constructor(sources: readonly Clock[]) {
    super(`(${sources.map(({ key }) => key).join('+')})`, sources[0]!.timeframe);
    this.sources = sources;
    this.#rows = sources.map(() => new Int32Array(64));
    this.#searched = new Int32Array(sources.length);
  }

  /** Indices in `source`, by entry. */
  rowsOf(source: Clock): Int32Array {
    return this.#rows[this.sources.indexOf(source)]!;
  }

  get capacity(): number {
    return Math.min(...this.sources.map(({ capacity }) => capacity));
  }

  override get barsPerEntry(): number {
    return this.sources[0]!.barsPerEntry;
  }

  timeOf(entry: number): number {
    return this.sources[0]!.timeOf(this.#rows[0]![entry]!);
  }

  entryBars(): ReadonlyMap<number, EntryBars> {
    return new Map(
      this.sources.flatMap((source, place) => {
        const own = this.#rows[place]!.subarray(0, this.length);
        return [...source.entryBars()].map(([index, { before, rows }]): [number, EntryBars] => [
          index,
          { before, rows: rows === undefined ? own : own.map((row) => rows[row]!) },
        ]);
      }),
    );
  }

  extend(): void {
    const searched = this.#searched;
    while (this.sources.every((source, place) => searched[place]! < source.length)) {
      const latest = this.#latest();
      let isJoint = true;
      for (let place = 0; place < searched.length; place += 1) {
        if (this.#nextTime(place) < latest) {
          searched[place]! += 1;
          isJoint = false;
        }
      }
      if (isJoint) this.#add();
    }
  }

  protected isReached(entry: number): boolean {
    return this.sources.every((source, place) => this.#rows[place]![entry]! <= source.cursor);
  }

  #nextTime(place: number): number {
    return this.sources[place]!.timeOf(this.#searched[place]!);
  }

  #latest(): number {
    let latest = -Infinity;
    for (let place = 0; place < this.sources.length; place += 1) {
      latest = Math.max(latest, this.#nextTime(place));
    }
    return latest;
  }

  #add(): void {
    for (let place = 0; place < this.#rows.length; place += 1) {
      if (this.length === this.#rows[place]!.length) {
        const longer = new Int32Array(2 * this.length);
        longer.set(this.#rows[place]!);
        this.#rows[place] = longer;
      }
      this.#rows[place]![this.length] = this.#searched[place]!;
      this.#searched[place]! += 1;
    }
    this.length += 1;
  }
}
