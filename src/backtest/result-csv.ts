import { isoTime } from '../base/iso-time.ts';
import type { RunResult } from '../engine/run-result.ts';

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

/**
 * Formats a value as a cell of a CSV line (RFC 4180). A text that a spreadsheet would run as a formula
 * gets a leading apostrophe, as OWASP recommends. Numbers do not.
 */
export function csvCell(value: string | number | boolean): string {
  if (typeof value !== 'string') return String(value);
  const text = value.replace(/^[=+\-@\t\r]/, "'$&");
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Lines of `trades.csv`: the closed trades, then the open ones. */
export function* tradeLines({
  trades,
  openTrades,
}: Pick<RunResult, 'trades' | 'openTrades'>): Generator<string> {
  yield `${TRADE_COLUMNS.join(',')}\n`;
  for (const [status, list] of [['closed', trades] as const, ['open', openTrades] as const]) {
    for (const trade of list) {
      const cells = TRADE_COLUMNS.map((column) => {
        if (column === 'status') return status;
        if (column === 'entry_time' || column === 'exit_time') return isoTime(trade[column]);
        return csvCell(trade[column]);
      });
      yield `${cells.join(',')}\n`;
    }
  }
}

/** Columns of `equity.csv` and `equity.parquet`: equity at each step, and its drawdown. */
export type EquityCurve = Readonly<Record<(typeof EQUITY_COLUMNS)[number], Float64Array>>;

/** Lines of `equity.csv`. */
export function* equityLines({ time, equity, drawdown }: EquityCurve): Generator<string> {
  yield `${EQUITY_COLUMNS.join(',')}\n`;
  for (let step = 0; step < equity.length; step += 1) {
    yield `${isoTime(time[step]!)},${equity[step]!},${drawdown[step]!}\n`;
  }
}
