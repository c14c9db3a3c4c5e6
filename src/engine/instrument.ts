import type { BarColumn, Bars } from '../market/bars.ts';
import type { Signals } from './model-signals.ts';

/** Moves an instrument to its bar `cursor`. For the engine only; the package does not export it. */
export let showBar: (instrument: Instrument, cursor: number) => void;
/** Replaces the columns by longer ones with the same bars. */
export let lengthen: (instrument: Instrument, bars: Bars) => void;
/** Marks that the step has no bar of this instrument, which keeps its last one. */
export let hideBar: (instrument: Instrument) => void;

/**
 * One instrument as a strategy sees it: the newest bar, and bars before it. Later bars cannot be
 * reached from here; the columns are private and every read is relative to the current bar.
 */
export class Instrument {
  readonly symbol: string;
  /** Position in the universe, from 0. */
  readonly index: number;
  #bars: Bars;
  #close: Float64Array;
  readonly #signals: Signals | undefined;
  #cursor = -1;
  #fresh = false;

  constructor(symbol: string, index: number, bars: Bars, signals?: Signals) {
    this.symbol = symbol;
    this.index = index;
    this.#bars = bars;
    this.#close = bars.close;
    this.#signals = signals;
    // An own property set by a strategy would also shadow the values that the engine reads.
    Object.freeze(this);
  }

  /** Whether this step brought a new bar of this instrument. */
  get fresh(): boolean {
    return this.#fresh;
  }

  /** Bars seen so far, the current one included. */
  get count(): number {
    return this.#cursor + 1;
  }

  /** Milliseconds since the Unix epoch at which the current bar opened; NaN before the first bar. */
  get time(): number {
    return this.#cursor < 0 ? Number.NaN : this.#bars.time[this.#cursor]!;
  }

  get open(): number {
    return this.#cursor < 0 ? Number.NaN : this.#bars.open[this.#cursor]!;
  }

  get high(): number {
    return this.#cursor < 0 ? Number.NaN : this.#bars.high[this.#cursor]!;
  }

  get low(): number {
    return this.#cursor < 0 ? Number.NaN : this.#bars.low[this.#cursor]!;
  }

  get close(): number {
    return this.#cursor < 0 ? Number.NaN : this.#close[this.#cursor]!;
  }

  get volume(): number {
    return this.#cursor < 0 ? Number.NaN : this.#bars.volume[this.#cursor]!;
  }

  /**
   * The value of `column` `bars` bars before the current one (0 is the current bar); NaN before
   * the first bar of the history. Throws `RangeError` for a negative or fractional count: there is
   * no way to look ahead.
   */
  ago(column: BarColumn, bars: number): number {
    if (!(bars >= 0) || !Number.isInteger(bars)) {
      throw new RangeError(`ago: bars must be a whole number of at least 0, not ${bars}`);
    }
    const index = this.#cursor - bars;
    return index < 0 ? Number.NaN : this.#bars[column][index]!;
  }

  /**
   * Output of a model for the current bar; NaN before the first bar and while its inputs warm up.
   *
   * @throws RangeError for an unknown name.
   */
  signal(name: string): number {
    const { names = [], columns = [], counts } = this.#signals ?? {};
    const place = names.indexOf(name);
    if (place < 0) {
      throw new RangeError(
        `signal: no model has an output named ${name}; available: ${listed(names)}`,
      );
    }
    if (this.#cursor < 0) return Number.NaN;
    // A missing value must not look like NaN, which means that the inputs still warm up.
    if (this.#cursor >= counts![this.index]!)
      throw new Error('the model outputs for this bar have not been computed');
    return columns[this.index]![place]![this.#cursor]!;
  }

  static {
    showBar = (instrument, cursor) => {
      instrument.#cursor = cursor;
      instrument.#fresh = true;
    };
    lengthen = (instrument, bars) => {
      instrument.#bars = bars;
      instrument.#close = bars.close;
    };
    hideBar = (instrument) => {
      instrument.#fresh = false;
    };
  }
}

Object.freeze(Instrument.prototype);
Object.freeze(Instrument);

function listed(names: readonly string[]): string {
  return names.length === 0 ? 'none' : names.join(', ');
}
