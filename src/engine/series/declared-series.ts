import type { TimeframeName } from '../../market/timeframe.ts';
import type { CalendarName } from '../../market/trading-calendar.ts';
import type { Clock } from './clock.ts';
import type { IndicatorKind } from './computation.ts';
import { PACKAGE_VERSION } from '../version.ts';
import type { WarmUp } from './warm-up.ts';

/**
 * Key of {@link Declarations} in a series. It is registered, so that a strategy that imports these
 * functions from another copy of the package finds the engine that owns its series.
 */
const ENGINE: unique symbol = Symbol.for('service-local.engine') as never;

/** Declares indicators of a run. */
export interface Declarations {
  /** Version of the package of the engine. */
  readonly version: string;
  /** Whether the run has begun. */
  isClosed(): boolean;
  /** @param kind name of the indicator, which the engine computes with its own code. */
  declare(kind: string, inputs: readonly Series[], params: readonly unknown[]): Lines<string>;
}

/** State of a series, which a strategy cannot reach. */
export interface SeriesState {
  readonly declarations: Declarations;
  /** Describes how the values are computed; equal in all runs over the same instruments. */
  readonly key: string;
  /** In bars. */
  readonly warmUp: WarmUp;
  readonly clock: Clock;
  /** How a chart names and draws it. */
  readonly drawing: Drawing;
  /** Values by entry of the clock. May be longer, and may have values that the run has not reached. */
  column: Float64Array;
}

/** How a chart names and draws a series. */
export interface Drawing {
  /** Label of the bars or the indicator, such as `macd(close,12,26,9)`; empty for a single instrument. */
  readonly owner: string;
  /** Such as `close` or `macd(close,12,26,9).signal`. */
  readonly label: string;
  /** `price`, `volume`, `none`, or the key of the indicator on whose own scale it is drawn. */
  readonly scale: string;
}

/** For the engine only; the package does not export it. @throws TypeError if it is not a series. */
export let stateOf: (series: Series) => SeriesState;

/**
 * A series of numbers that a strategy declares in `indicators` and reads in its run: a column of the
 * bars of an instrument, or one line of an indicator. It has an entry for each bar of its instrument,
 * or for each completed bar of a longer timeframe; if it combines several instruments, for each time
 * at which all of them have a bar.
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

  /**
   * The value at the step before the current one. It equals `value` if the current step brought no
   * entry, because the instrument has no bar.
   */
  get previous(): number {
    const { clock, column } = this.#state;
    const at = clock.previous;
    return at < 0 ? Number.NaN : column[at]!;
  }

  get [ENGINE](): Declarations {
    return this.#state.declarations;
  }

  static {
    stateOf = (series) => series.#state;
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
  /** Timeframe of the bars; undefined if it is unknown. */
  readonly timeframe: TimeframeName | undefined;
  /** Calendar of the universe. */
  readonly calendar: CalendarName;
  /**
   * Bars of a longer timeframe, such as `asset.on('1d')`. A bar exists once it is complete, at the
   * bar that reaches its end; if that one is missing, at the next bar.
   *
   * @throws RangeError for a timeframe that is unknown, shorter, or not a multiple of that of these bars; Error
   *   in the run.
   */
  on(timeframe: TimeframeName): BarSeries;
}

/** Lines of an indicator by name. */
export type Lines<L extends string> = Readonly<Record<L, Series>>;

/**
 * Returns the lines of an indicator over `inputs`, by name.
 *
 * @throws RangeError for invalid parameters, or inputs of different runs; TypeError if the first
 *   input is not a series; Error after the declarations of a strategy, or for an engine of another
 *   version.
 */
export function declare<P extends readonly unknown[], M, L extends string>(
  { name }: IndicatorKind<P, M, L>,
  inputs: readonly Series[],
  params: P,
): Lines<L> {
  const isWithoutColumns = inputs.length > 1 && inputs.every((input) => input === undefined);
  if (isWithoutColumns && !OF_TWO_SERIES.has(name)) {
    throw new TypeError(`${name} needs bars: ${name}(asset)`);
  }
  return engineOf(inputs[0]).declare(name, inputs, params);
}

/** Indicators with several inputs that are not columns of the same bars. */
const OF_TWO_SERIES: ReadonlySet<string> = new Set(['correlation', 'difference', 'ratio']);

/** @throws TypeError if it is not a series; Error for an engine of another version. */
export function engineOf(series: Series | undefined): Declarations {
  const declarations = series?.[ENGINE];
  if (declarations === undefined) {
    throw new TypeError(`expected a series such as asset.close, not ${kindOf(series)}`);
  }
  checkCopies(PACKAGE_VERSION, declarations.version);
  return declarations;
}

function kindOf(value: unknown): string {
  if (value === undefined || value === null) return String(value);
  if (typeof value !== 'object') return `a ${typeof value}`;
  return 'close' in value ? 'bars; use a column of them, such as .close' : 'an object';
}

/** @throws Error unless the strategy and the engine are of the same version of the package. */
export function checkCopies(strategy: string, engine: string): void {
  if (strategy === engine) return;
  throw new Error(
    `the strategy imports service-local ${strategy}, but runs in service-local ${engine}; install one version for both, for example with: npm install service-local@${engine}`,
  );
}
