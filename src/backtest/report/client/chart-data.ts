import type { Candles, Curve, Marker, Ranges } from '../series.ts';

/** Data of the page's charts, embedded in the page as JSON. */
export interface ChartData {
  /** Whether every step is at midnight UTC, so that times of day are omitted. */
  readonly dateOnly: boolean;
  readonly currency: string;
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

/** Value of a button in the list of trades. */
export interface ShownTrade {
  readonly id: number;
  /** Index of the chart. */
  readonly instrument: number;
  /** Candles of entry and exit. */
  readonly from: number;
  readonly to: number;
  /** Prices. */
  readonly entry: number;
  readonly exit: number;
  /** Account currency. */
  readonly pnl: number;
  readonly isOpen: boolean;
}
