import { DAY } from '../../base/durations.ts';
import { EQUITY_COLUMNS, TRADE_COLUMNS } from '../../backtest/run-tables.ts';
import type { Citation } from '../answering.ts';
import { parseCsv } from '../parse-csv.ts';
import { citeCell, fileOf, missing, type Facts, type Run } from './facts.ts';

/** The equity of a run at the close of each bar. */
export interface Curve {
  readonly path: string;
  /** RFC 3339, ascending. */
  readonly time: readonly string[];
  readonly equity: Float64Array;
  /** Zero or negative; −0.1 is 10 % below the highest equity before. */
  readonly drawdown: Float64Array;
}

const EQUITY_COLUMN = EQUITY_COLUMNS.indexOf('equity') + 1;
const DRAWDOWN_COLUMN = EQUITY_COLUMNS.indexOf('drawdown') + 1;

/** Rows of a file count from 1 and include the header. */
const rowOf = (place: number): number => place + 2;

/** @throws ServiceError `not_found` if the run has no such file or no bars. */
export async function curveOf(facts: Facts, run: Run): Promise<Curve> {
  const { path, data } = await fileOf(facts, run, 'equity.csv');
  const cells = data
    .split('\n')
    .slice(1)
    .filter((line) => line !== '')
    .map((line) => line.split(','));
  if (cells.length === 0) throw missing('the run has seen no bars');
  return {
    path,
    time: cells.map(([time]) => time!),
    equity: Float64Array.from(cells, (row) => Number(row[EQUITY_COLUMN - 1])),
    drawdown: Float64Array.from(cells, (row) => Number(row[DRAWDOWN_COLUMN - 1])),
  };
}

export function citeEquity({ path, equity }: Curve, place: number, figure: string): Citation {
  return citeCell(path, rowOf(place), EQUITY_COLUMN, figure, equity[place]!);
}

export function citeDrawdown({ path, drawdown }: Curve, place: number, figure: string): Citation {
  return citeCell(path, rowOf(place), DRAWDOWN_COLUMN, figure, drawdown[place]!);
}

export function citeTime({ path, time }: Curve, place: number, figure: string): Citation {
  return citeCell(path, rowOf(place), 1, figure, time[place]!);
}

export interface TradeRow {
  readonly path: string;
  /** Row of the file, the header included. */
  readonly row: number;
  readonly symbol: string;
  readonly side: string;
  readonly status: string;
  /** RFC 3339. */
  readonly entry: string;
  readonly exit: string;
  readonly profit: number;
  readonly return: number;
  /** Calendar days. */
  readonly duration: number;
  readonly bars: number;
  readonly fees: number;
  readonly quantity: number;
  readonly entry_price: number;
  readonly exit_price: number;
}

/** Trades of a run in the order of their exit. @throws ServiceError `not_found` */
export async function tradesOf(facts: Facts, run: Run): Promise<readonly TradeRow[]> {
  const { path, data } = await fileOf(facts, run, 'trades.csv');
  return parseCsv(data)
    .map((cells, place) => ({
      path,
      row: rowOf(place),
      symbol: cells['symbol']!,
      side: cells['side']!,
      status: cells['status']!,
      entry: cells['entry_time']!,
      exit: cells['exit_time']!,
      profit: Number(cells['pnl']),
      return: Number(cells['return']),
      duration: (Date.parse(cells['exit_time']!) - Date.parse(cells['entry_time']!)) / DAY,
      bars: Number(cells['bars']),
      fees: Number(cells['fees']),
      quantity: Number(cells['quantity']),
      entry_price: Number(cells['entry_price']),
      exit_price: Number(cells['exit_price']),
    }))
    .toSorted((a, b) => Date.parse(a.exit) - Date.parse(b.exit));
}

const COLUMNS = {
  profit: 'pnl',
  return: 'return',
  exit: 'exit_time',
} as const satisfies Readonly<Record<string, (typeof TRADE_COLUMNS)[number]>>;

export function citeTrade(trade: TradeRow): Citation[] {
  return (['profit', 'return', 'exit'] as const).map((name) => {
    const column = TRADE_COLUMNS.indexOf(COLUMNS[name]) + 1;
    const figure = `trade ${trade.row - 1} ${COLUMNS[name]}`;
    return citeCell(trade.path, trade.row, column, figure, trade[name]);
  });
}
