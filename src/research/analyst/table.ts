import { EQUITY_COLUMNS, TRADE_COLUMNS } from '../../backtest/run-tables.ts';
import { parseCsv } from '../parse-csv.ts';
import { fileOf, missing, type Facts, type Run } from './facts.ts';

/** The equity of a run at the close of each bar. */
export interface Curve {
  readonly path: string;
  /** RFC 3339, in order. */
  readonly time: readonly string[];
  readonly equity: Float64Array;
  /** Below the highest so far: −0.1 is 10 %. */
  readonly drawdown: Float64Array;
}

/** Columns of `equity.csv` and `trades.csv`, from 1. */
export const EQUITY_COLUMN = EQUITY_COLUMNS.indexOf('equity') + 1;
export const DRAWDOWN_COLUMN = EQUITY_COLUMNS.indexOf('drawdown') + 1;
export const tradeColumn = (name: (typeof TRADE_COLUMNS)[number]): number =>
  TRADE_COLUMNS.indexOf(name) + 1;

/** The row of a bar in its file, from 1, after the header. */
export function rowOf(place: number): number {
  return place + 2;
}

/** @throws ServiceError */
export async function curveOf(facts: Facts, run: Run): Promise<Curve> {
  const { path, data } = await fileOf(facts, run, 'equity.csv');
  const lines = data.split('\n').slice(1);
  if (lines.at(-1) === '') lines.pop();
  if (lines.length === 0) throw missing('the run has seen no bars');
  const cells = lines.map((line) => line.split(','));
  return {
    path,
    time: cells.map(([time]) => time!),
    equity: Float64Array.from(cells, (row) => Number(row[EQUITY_COLUMN - 1])),
    drawdown: Float64Array.from(cells, (row) => Number(row[DRAWDOWN_COLUMN - 1])),
  };
}

/** A trade of a run. */
export interface TradeRow {
  /** In the file, from 1, after the header. */
  readonly row: number;
  readonly symbol: string;
  readonly side: string;
  readonly entry_time: string;
  readonly exit_time: string;
  readonly quantity: number;
  readonly return: number;
  readonly pnl: number;
  readonly status: string;
}

/** @throws ServiceError */
export async function tradesOf(
  facts: Facts,
  run: Run,
): Promise<{ readonly path: string; readonly trades: readonly TradeRow[] }> {
  const { path, data } = await fileOf(facts, run, 'trades.csv');
  const trades = parseCsv(data).map((cells, place) => ({
    row: rowOf(place),
    symbol: cells['symbol']!,
    side: cells['side']!,
    entry_time: cells['entry_time']!,
    exit_time: cells['exit_time']!,
    quantity: Number(cells['quantity']),
    return: Number(cells['return']),
    pnl: Number(cells['pnl']),
    status: cells['status']!,
  }));
  return { path, trades };
}
