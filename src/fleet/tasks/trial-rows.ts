import type { TrialScope } from '../../backtest/ledger/ledger-entry.ts';
import type { TrialEntriesTable } from '../../storage/tables.ts';

/** Scope of the trials in a row of the ledger. */
export function scopeOf(
  row: Pick<TrialEntriesTable, 'family' | 'symbols' | 'bar_ms' | 'window_from' | 'window_to'>,
): TrialScope {
  return {
    family: row.family,
    symbols: symbolsOf(row.symbols),
    bar_ms: row.bar_ms,
    from: formatInstant(row.window_from),
    to: formatInstant(row.window_to),
  };
}

/** A row that was tampered with may hold any text. */
export function symbolsOf(text: string): readonly string[] {
  try {
    const symbols: unknown = JSON.parse(text);
    const isValid = Array.isArray(symbols) && symbols.every((one) => typeof one === 'string');
    return isValid ? symbols : [text];
  } catch {
    return [text];
  }
}

/** Returns the number itself if it is not a valid time, so that a tampered row can be shown. */
export function formatInstant(ms: number): string {
  return Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : String(ms);
}
