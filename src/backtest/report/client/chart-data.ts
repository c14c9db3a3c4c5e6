import type { PackedColumn } from '../pack-column.ts';
import type { ChartIndicator, Marker, Ranges } from '../../../base/charts/level.ts';
import type { Curve } from '../series.ts';
import type { Stretch } from '../single-bars.ts';

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
  readonly indicators: readonly ChartIndicator[];
  /** The whole history. */
  readonly overview: PackedLevel;
  /** Single bars around trades, if the candles of the overview are several bars each. */
  readonly single?: { readonly stretches: readonly Stretch[]; readonly level: PackedLevel };
  /** Text alternative of the chart. */
  readonly summary: string;
}

/** Candles, markers and values of indicators at one resolution. */
export interface PackedLevel {
  readonly barsPerCandle: number;
  /** In the order of `Candles`; of the times, their differences. */
  readonly columns: Readonly<Record<CandleColumn, PackedColumn>>;
  /** One for each line of the indicators, in their order. */
  readonly ranges: readonly PackedRanges[];
  readonly markers: readonly Marker[];
}

export type CandleColumn = 'time' | 'open' | 'high' | 'low' | 'close' | 'volume';

export type PackedRanges = { readonly [K in keyof Ranges]: PackedColumn };

/** Value of a button in the list of trades. An array, because field names would lengthen a long list. */
export type ShownTrade = readonly [
  id: number,
  /** Index of the chart. */
  instrument: number,
  /** Bars that contain entry and exit, in seconds since the Unix epoch. */
  from: number,
  to: number,
  /** Prices. */
  entry: number,
  exit: number,
  /** Account currency. */
  pnl: number,
  isOpen: 0 | 1,
];
