import type { LedgerEntry, TrialScope } from './ledger-entry.ts';
import { NO_KEYS } from './packed-trials.ts';

/** Trials of a family on the same symbols and bar length, over all windows. */
export interface TrialGroup extends TrialScope {
  readonly trials: number;
  /** Highest annualized Sharpe ratio; null if no trial has one. */
  readonly best_sharpe: number | null;
  /** Number of runs over a holdout. */
  readonly holdout_openings: number;
  readonly last_recorded_at: string;
}

/** Groups the entries of a ledger, the most recently used group first. */
export function groupTrials(entries: Iterable<LedgerEntry>): TrialGroup[] {
  const groups = new Map<string, TrialGroup>();
  for (const entry of entries) {
    const { family, symbols, bar_ms, from, to, recorded_at } = entry;
    const key = JSON.stringify([family, symbols, bar_ms]);
    const group = groups.get(key);
    // Deleted first, so that the groups are in the order of their last entries.
    groups.delete(key);
    groups.set(key, {
      family,
      symbols,
      bar_ms,
      from: group === undefined || from < group.from ? from : group.from,
      to: group === undefined || to > group.to ? to : group.to,
      trials: (group?.trials ?? 0) + (entry.kind === 'trials' ? entry.count : 0),
      best_sharpe: bestOf(group?.best_sharpe ?? null, entry),
      holdout_openings: (group?.holdout_openings ?? 0) + (entry.kind === 'holdout_opened' ? 1 : 0),
      last_recorded_at: recorded_at,
    });
  }
  return [...groups.values()].toReversed();
}

function bestOf(before: number | null, entry: LedgerEntry): number | null {
  let best = before;
  if (entry.kind !== 'trials') return best;
  for (const sharpe of NO_KEYS.otherSharpes(entry.trials)) {
    if (sharpe !== null && (best === null || sharpe > best)) best = sharpe;
  }
  return best;
}
