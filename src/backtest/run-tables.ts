import type { JournalData } from '../engine/journal.ts';

/** Columns of a run's files, in their order in the file. */
export const TRADE_COLUMNS = [
  'id',
  'symbol',
  'side',
  'entry_time',
  'exit_time',
  'bars',
  'quantity',
  'entry_price',
  'exit_price',
  'pnl',
  'return',
  'fees',
  'status',
] as const;
export const EQUITY_COLUMNS = ['time', 'equity', 'drawdown'] as const;

/** Columns of `equity.csv` and `equity.parquet`: equity at each step, and its drawdown. */
export type EquityCurve = Readonly<Record<(typeof EQUITY_COLUMNS)[number], Float64Array>>;

/** Trades as plain data, for another thread: the closed ones, then the open ones. */
export interface TradeTable {
  readonly count: number;
  /** Texts of these columns, which hold indexes into them. */
  readonly labels: Readonly<Record<'symbol' | 'side' | 'status', readonly string[]>>;
  readonly columns: Readonly<Record<(typeof TRADE_COLUMNS)[number], Float64Array>>;
}

/** The tables of a run as plain data, for another thread. */
export interface TableFiles {
  readonly directory: string;
  readonly curve: EquityCurve;
  /** Whether `equity.csv` is written. */
  readonly hasCsv: boolean;
  readonly journal: JournalData;
  readonly trades: TradeTable;
}

/** Passes lines on, and counts each line that the caller reads. */
export type CountLines = (lines: Iterable<string>) => Iterable<string>;

/** Called with the lines of text written so far and in total. */
export type OnLines = (done: number, total: number) => void;
