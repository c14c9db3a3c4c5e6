import { isoTime } from '../base/iso-time.ts';
import { EQUITY_COLUMNS, TRADE_COLUMNS, type EquityCurve, type TradeTable } from './run-tables.ts';

/**
 * Formats a value as a cell of a CSV line (RFC 4180). A text that a spreadsheet would run as a formula
 * gets a leading apostrophe, as OWASP recommends. Numbers do not.
 */
export function csvCell(value: string | number | boolean): string {
  if (typeof value !== 'string') return String(value);
  const text = value.replace(/^[=+\-@\t\r]/, "'$&");
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Lines of `trades.csv`. */
export function* tradeLines({ count, columns, labels }: TradeTable): Generator<string> {
  yield `${TRADE_COLUMNS.join(',')}\n`;
  const cellsOf = (name: keyof TradeTable['labels']): ((row: number) => string) => {
    const cells = labels[name].map(csvCell);
    return (row) => cells[columns[name][row]!]!;
  };
  const [symbol, side, status] = [cellsOf('symbol'), cellsOf('side'), cellsOf('status')];
  const c = columns;
  for (let row = 0; row < count; row += 1) {
    yield `${c.id[row]!},${symbol(row)},${side(row)},${isoTime(c.entry_time[row]!)},${isoTime(c.exit_time[row]!)},${c.bars[row]!},${c.quantity[row]!},${c.entry_price[row]!},${c.exit_price[row]!},${c.pnl[row]!},${c.return[row]!},${c.fees[row]!},${status(row)}\n`;
  }
}

/** Lines of `equity.csv`. */
export function* equityLines({ time, equity, drawdown }: EquityCurve): Generator<string> {
  yield `${EQUITY_COLUMNS.join(',')}\n`;
  for (let step = 0; step < equity.length; step += 1) {
    yield `${isoTime(time[step]!)},${equity[step]!},${drawdown[step]!}\n`;
  }
}
