import type { Clock } from './clock.ts';
import type { IndicatorKind } from './computation.ts';

/** The indicators of a run. */
interface Declarations {
  /** Whether the run has begun. */
  readonly isClosed: boolean;
  declare<P extends readonly unknown[], M, L extends string>(
    kind: IndicatorKind<P, M, L>,
    inputs: readonly Series[],
    params: P,
  ): Lines<L>;
}

/** State of a series, which a strategy cannot reach. */
export interface SeriesState {
  readonly graph: Declarations;
  /** Describes how the values are computed; equal in all runs over the same instruments. */
  readonly key: string;
  readonly clock: Clock;
  /** Values by entry of the clock. May be longer, and may have values that the run has not reached. */
  column: Float64Array;
}

/** For the engine only; the package does not export it. */
export let stateOf: (series: Series) => SeriesState;
/** The value at the step before the current one. */
export let previousOf: (series: Series) => number;

/**
 * A series of numbers that a strategy declares in `indicators` and reads in its run: a column of the
 * bars of an instrument, or one line of an indicator. It has an entry for each bar of its instrument;
 * if it combines several instruments, for each step at which all of them have a bar.
 */
export class Series {
  readonly #state: SeriesState;

  constructor(state: SeriesState) {
    this.#state = state;
    Object.freeze(this);
  }

  /** The newest entry; NaN before the first, and while the indicator has too few bars. */
  get value(): number {
    const { clock, column } = this.#state;
    const at = clock.cursor;
    return at < 0 ? Number.NaN : column[at]!;
  }

  /** Whether `value` is a number. */
  get ready(): boolean {
    return !Number.isNaN(this.value);
  }

  /**
   * The value `entries` entries before the newest one (0 is the newest); NaN before the first.
   *
   * @throws RangeError for a negative or fractional count: there is no way to look ahead.
   */
  ago(entries: number): number {
    if (!(entries >= 0) || !Number.isInteger(entries)) {
      throw new RangeError(`ago: entries must be a whole number of at least 0, not ${entries}`);
    }
    const { clock, column } = this.#state;
    const at = clock.cursor - entries;
    return at < 0 ? Number.NaN : column[at]!;
  }

  static {
    stateOf = (series) => series.#state;
    previousOf = (series) => {
      const { clock, column } = series.#state;
      const at = clock.isFresh ? clock.cursor - 1 : clock.cursor;
      return at < 0 ? Number.NaN : column[at]!;
    };
  }
}

Object.freeze(Series.prototype);
Object.freeze(Series);

/** The bars of an instrument, as inputs of indicators. */
export interface BarSeries {
  readonly symbol: string;
  /** Opening instants, milliseconds since the Unix epoch. */
  readonly time: Series;
  readonly open: Series;
  readonly high: Series;
  readonly low: Series;
  readonly close: Series;
  readonly volume: Series;
}

/** Lines of an indicator by name. */
export type Lines<L extends string> = Readonly<Record<L, Series>>;

/**
 * Returns the lines of an indicator over `inputs`, by name.
 *
 * @throws RangeError for invalid parameters, or inputs of different runs; Error after the
 *   declarations of a strategy.
 */
export function declare<P extends readonly unknown[], M, L extends string>(
  kind: IndicatorKind<P, M, L>,
  inputs: readonly Series[],
  params: P,
): Lines<L> {
  return stateOf(inputs[0]!).graph.declare(kind, inputs, params);
}
