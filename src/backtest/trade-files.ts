import { join } from 'node:path';
import type { RunResult } from '../engine/run-result.ts';
import type { ParquetColumns } from '../market/write.ts';
import { TRADE_COLUMNS, tradeLines } from './result-csv.ts';
import { writeColumns } from './write-columns.ts';
import { writeText } from './write-text.ts';

/**
 * Writes `trades.csv` and `trades.parquet`: the closed trades, then the open ones.
 *
 * @returns `hashes.trades` of the summary
 * @throws ServiceError `output_not_writable`
 */
export async function writeTrades(directory: string, result: Trades): Promise<string> {
  await writeColumns(join(directory, 'trades.parquet'), columnsOf(result), TRADE_COLUMNS);
  return writeText(join(directory, 'trades.csv'), tradeLines(result));
}

type Trades = Pick<RunResult, 'trades' | 'openTrades'>;
type TradeColumn = (typeof TRADE_COLUMNS)[number];

function columnsOf({ trades, openTrades }: Trades): ParquetColumns<TradeColumn> {
  const all = [...trades, ...openTrades];
  const columns = TRADE_COLUMNS.map((name) => {
    if (name === 'status')
      return [name, all.map((_, at) => (at < trades.length ? 'closed' : 'open'))];
    if (name === 'symbol' || name === 'side') return [name, all.map((trade) => trade[name])];
    return [name, Float64Array.from(all, (trade) => trade[name])];
  });
  return Object.fromEntries(columns) as ParquetColumns<TradeColumn>;
}
