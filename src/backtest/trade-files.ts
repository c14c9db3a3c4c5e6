import { join } from 'node:path';
import type { RunResult } from '../engine/run-result.ts';
import type { Trade } from '../engine/round-trip.ts';
import { tradeLines } from './result-csv.ts';
import { TRADE_COLUMNS, type CountLines, type TradeTable } from './run-tables.ts';
import { writeColumns } from './write-columns.ts';
import { writeText } from './write-text.ts';

const SIDES = ['long', 'short'] as const;
const STATES = ['closed', 'open'] as const;

export function tradeTable({
  trades,
  openTrades,
}: Pick<RunResult, 'trades' | 'openTrades'>): TradeTable {
  const all = [...trades, ...openTrades];
  const symbols = [...new Set(all.map(({ symbol }) => symbol))];
  const codes = new Map(symbols.map((symbol, code) => [symbol, code]));
  const column = (read: (trade: Trade, at: number) => number): Float64Array => {
    const values = new Float64Array(all.length);
    for (let at = 0; at < all.length; at += 1) values[at] = read(all[at]!, at);
    return values;
  };
  return {
    count: all.length,
    labels: { symbol: symbols, side: SIDES, status: STATES },
    columns: {
      id: column(({ id }) => id),
      symbol: column(({ symbol }) => codes.get(symbol)!),
      side: column(({ side }) => SIDES.indexOf(side)),
      entry_time: column((trade) => trade.entry_time),
      exit_time: column((trade) => trade.exit_time),
      bars: column(({ bars }) => bars),
      quantity: column(({ quantity }) => quantity),
      entry_price: column((trade) => trade.entry_price),
      exit_price: column((trade) => trade.exit_price),
      pnl: column(({ pnl }) => pnl),
      return: column((trade) => trade.return),
      fees: column(({ fees }) => fees),
      status: column((_, at) => (at < trades.length ? 0 : 1)),
    },
  };
}

/**
 * Writes `trades.csv` and `trades.parquet`.
 *
 * @returns `hashes.trades` of the summary
 * @throws ServiceError `output_not_writable`
 */
export async function writeTrades(
  directory: string,
  table: TradeTable,
  count: CountLines = (lines) => lines,
): Promise<string> {
  const { columns, labels } = table;
  await writeColumns(join(directory, 'trades.parquet'), columns, TRADE_COLUMNS, { labels });
  return writeText(join(directory, 'trades.csv'), count(tradeLines(table)));
}
