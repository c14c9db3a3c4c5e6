import type { Candles, Curve, Marker, Ranges } from '../series.ts';

/** Data of the page's charts, embedded in the page as JSON. */
export interface ChartData {
  /** Whether every step is at midnight UTC, so that times of day are omitted. */
  readonly dateOnly: boolean;
  readonly currency: string;
  /** Name of the benchmark. */
  readonly benchmark: string;
  readonly curve: Curve;
  /** In the order of the options of `#instrument`. */
  readonly instruments: readonly PriceChart[];
}

export interface PriceChart {
  readonly symbol: string;
  readonly candles: Candles;
  readonly markers: readonly Marker[];
  readonly indicators: readonly ChartIndicator[];
  /** Text alternative of the chart. */
  readonly summary: string;
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
  readonly ranges: Ranges;
}

/** Value of a button in the list of trades. An array, because field names would lengthen a long list. */
export type ShownTrade = readonly [
  id: number,
  /** Index of the chart. */
  instrument: number,
  /** Candles of entry and exit. */
  from: number,
  to: number,
  /** Prices. */
  entry: number,
  exit: number,
  /** Account currency. */
  pnl: number,
  isOpen: 0 | 1,
];
