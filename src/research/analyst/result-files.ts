/** Equity and trades of a run, as its files contain them. */
import { DAY } from '../../base/durations.ts';
import { EQUITY_COLUMNS, TRADE_COLUMNS } from '../../backtest/run-tables.ts';
import type { Citation, CitedTimes } from '../answering.ts';
import { parseCsv } from '../parse-csv.ts';
import { citeCell, fileOf, missing, type Facts, type Run } from './facts.ts';

/** The equity at the close of each bar. */
export interface Curve {
  /** RFC 3339, ascending. */
  readonly time: readonly string[];
  readonly equity: Float64Array;
  /** Zero or negative; −0.1 is 10 % below the highest equity before. */
  readonly drawdown: Float64Array;
  /** Cites a value of the point at `place`. */
  readonly cite: (place: number, column: CurveColumn, figure: string) => Citation;
}

export type CurveColumn = (typeof EQUITY_COLUMNS)[number];

/** Rows of a file count from 1 and include the header. */
const rowOf = (place: number): number => place + 2;

/** @throws ServiceError `not_found` if the run has no such file or no bars. */
export async function readCurve(facts: Facts, run: Run): Promise<Curve> {
  const { path, data } = await fileOf(facts, run, 'equity.csv');
  const cells = data
    .split('\n')
    .slice(1)
    .filter((line) => line !== '')
    .map((line) => line.split(','));
  if (cells.length === 0) throw missing('the run has seen no bars');
  const numbersOf = (column: CurveColumn): Float64Array =>
    Float64Array.from(cells, (row) => Number(row[EQUITY_COLUMNS.indexOf(column)]));
  const curve = {
    time: cells.map(([time]) => time!),
    equity: numbersOf('equity'),
    drawdown: numbersOf('drawdown'),
  };
  return {
    ...curve,
    cite: (place, column, figure) => {
      const at = EQUITY_COLUMNS.indexOf(column) + 1;
      const cell = citeCell(path, rowOf(place), at, figure, curve[column][place]!);
      return { ...cell, times: momentOf(curve.time[place]!) };
    },
  };
}

export const momentOf = (time: string): CitedTimes => ({ from: time, to: time });

export interface TradeRow {
  /** Number of the trade, from 1. */
  readonly number: number;
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
  readonly cite: () => Citation[];
}

/** Reads trades in the order of their exit. @throws ServiceError `not_found` */
export async function readTrades(facts: Facts, run: Run): Promise<readonly TradeRow[]> {
  const { path, data } = await fileOf(facts, run, 'trades.csv');
  return tradesIn(path, data, TRADE_COLUMNS);
}

/** Columns of trades that an answer cites, with the field of each. */
const CITED = { pnl: 'profit', return: 'return', exit_time: 'exit' } as const;

/** @param columns of the file at `path`, in their order. */
export function tradesIn(
  path: string,
  csv: string,
  columns: readonly string[],
): readonly TradeRow[] {
  return parseCsv(csv)
    .map((cells, place): TradeRow => {
      const [entry, exit, symbol] = [cells['entry_time']!, cells['exit_time']!, cells['symbol']!];
      const trade = {
        number: place + 1,
        symbol,
        side: cells['side']!,
        status: cells['status']!,
        entry,
        exit,
        profit: Number(cells['pnl']),
        return: Number(cells['return']),
        duration: (Date.parse(exit) - Date.parse(entry)) / DAY,
        bars: Number(cells['bars']),
        fees: Number(cells['fees']),
        quantity: Number(cells['quantity']),
        entry_price: Number(cells['entry_price']),
        exit_price: Number(cells['exit_price']),
      };
      const cite = (): Citation[] =>
        Object.entries(CITED).map(([column, field]) => {
          const at = columns.indexOf(column) + 1;
          const figure = `trade ${trade.number} ${column}`;
          const cell = citeCell(path, rowOf(place), at, figure, trade[field]);
          return { ...cell, times: { from: entry, to: exit, symbol } };
        });
      return { ...trade, cite };
    })
    .toSorted((a, b) => Date.parse(a.exit) - Date.parse(b.exit));
}
