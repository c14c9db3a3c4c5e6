/** Columns of a run's CSV files, in their order in the file. */
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
  const text = typeof value === 'string' ? value.replace(/^[=+\-@\t\r]/, "'$&") : String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
