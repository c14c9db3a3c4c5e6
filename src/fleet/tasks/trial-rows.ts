import type { LedgerEntry, TrialScope } from '../../backtest/ledger/ledger-entry.ts';
import { countPacked, packTrials } from '../../backtest/ledger/packed-trials.ts';
import type { Db, TrialEntriesTable } from '../../storage/tables.ts';

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
function formatInstant(ms: number): string {
  return Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : String(ms);
}

export function entryOf(row: TrialEntriesTable): LedgerEntry {
  const { seq, kind, lock_digest: lock, trial_key, sharpe, prev_hash, hash, packed } = row;
  const recorded_at = formatInstant(row.recorded_at);
  const common = { seq, recorded_at, by: row.recorded_by, lock, ...scopeOf(row), prev_hash, hash };
  if (kind === 'holdout_opened') return { ...common, kind };
  const trials = packed ?? packTrials(new Map([[trial_key, sharpe]]));
  return { ...common, kind, count: countPacked(trials), trials };
}

/** Entries that are read at once, since each holds up to 10,000 trials. */
const ROWS_AT_ONCE = 16;

/** Rows with the trials of searches, oldest first. */
export async function* packedRows(db: Db, where: Where, after = 0) {
  for await (const row of rowsAfter(db, after, where, true)) yield { ...row, packed: row.packed! };
}

type Where = Partial<Pick<TrialEntriesTable, 'lock_digest' | 'family' | 'bar_ms'>>;

/** Rows after a sequence number, oldest first. */
export async function* rowsAfter(db: Db, after: number, where: Where = {}, isPacked = false) {
  let last = after;
  for (;;) {
    let query = db
      .selectFrom('trial_entries')
      .selectAll()
      .where('seq', '>', last)
      .where((is) => is.and(where))
      .orderBy('seq')
      .limit(ROWS_AT_ONCE);
    if (isPacked) query = query.where('packed', 'is not', null);
    const rows = await query.execute();
    yield* rows;
    if (rows.length < ROWS_AT_ONCE) return;
    last = rows.at(-1)!.seq;
  }
}
