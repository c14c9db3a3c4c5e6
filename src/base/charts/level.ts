/** Content of a price chart, drawn by the functions of this folder in reports and in the console. */

/** Price history of one instrument for drawing; all columns have the same length. */
export interface Candles {
  readonly barsPerCandle: number;
  /** Opening instants in seconds since the Unix epoch, UTC, ascending. */
  readonly time: readonly number[];
  readonly open: readonly number[];
  readonly high: readonly number[];
  readonly low: readonly number[];
  readonly close: readonly number[];
  readonly volume: readonly number[];
}

/** The lowest, highest and last value of a line in each candle; null where it has none. */
export interface Ranges {
  /** Absent where each candle is one bar. */
  readonly low?: readonly (number | null)[];
  readonly high?: readonly (number | null)[];
  readonly close: readonly (number | null)[];
}

/**
 * Entries of one side, or exits with the sign of their total profit, within one candle. An array,
 * because field names would take most of the text of many markers.
 */
export type Marker = readonly [
  /** Index of the candle. */
  candle: number,
  kind: 'long' | 'short' | 'gain' | 'loss',
  /** Number of entries or exits. */
  count: number,
  /** Total profit of the exits, account currency. */
  pnl?: number,
];

/** The unpacked content of a chart at one resolution. Its parts have the same length. */
export interface Level {
  readonly candles: Candles;
  /** One for each line of the indicators, in their order. */
  readonly ranges: readonly Ranges[];
  readonly markers: readonly Marker[];
}

/** An indicator in the legend, with its lines. */
export interface ChartIndicator {
  /** Name in the result of `indicators` of the strategy; may be empty. */
  readonly name: string;
  /** Such as `sma(close, 20)`. */
  readonly label: string;
  readonly lines: readonly ChartLine[];
}

export interface ChartLine {
  /** Empty for an indicator with a single line. */
  readonly name: string;
  /** `price`, `volume`, or the key of a pane of its own. */
  readonly pane: string;
  readonly style: 'line' | 'dots' | 'histogram';
  /** Whether the area to the next line is filled. */
  readonly isFilled: boolean;
}
