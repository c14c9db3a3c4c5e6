import { sharpeAtLength } from '../deflated-sharpe.ts';
import { lengthOf } from './earlier-trials.ts';
import type { LedgerEntry, TrialScope } from './ledger-entry.ts';
import { NO_KEYS } from './packed-trials.ts';

/** Trials of a family on the same symbols and bar length, over all windows. */
export interface TrialGroup extends TrialScope {
  readonly trials: number;
  /**
   * Highest annualized Sharpe ratio, each converted to the length of the window as `sharpeAtLength` does;
   * null if no trial has one.
   */
  readonly best_sharpe: number | null;
  /** Number of runs over a holdout. */
  readonly holdout_openings: number;
  readonly last_recorded_at: string;
}

/** Groups the entries of a ledger, the most recently used group first. */
export function groupTrials(entries: Iterable<LedgerEntry>): TrialGroup[] {
  const groups = new Map<string, TrialGroup>();
  /** By group, the highest Sharpe ratio of the trials over windows of each length. */
  const bests = new Map<string, Map<number, number>>();
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
      best_sharpe: null,
      holdout_openings: (group?.holdout_openings ?? 0) + (entry.kind === 'holdout_opened' ? 1 : 0),
      last_recorded_at: recorded_at,
    });
    if (!bests.has(key)) bests.set(key, new Map());
    addBest(bests.get(key)!, entry);
  }
  return Array.from(groups, ([key, group]) => ({
    ...group,
    best_sharpe: bestAtLength(bests.get(key)!, lengthOf(group)),
  })).toReversed();
}

function addBest(bests: Map<number, number>, entry: LedgerEntry): void {
  if (entry.kind !== 'trials') return;
  const length = lengthOf(entry);
  for (const sharpe of NO_KEYS.otherSharpes(entry.trials)) {
    if (sharpe !== null) bests.set(length, Math.max(sharpe, bests.get(length) ?? -Infinity));
  }
}

function bestAtLength(bests: ReadonlyMap<number, number>, length: number): number | null {
  const converted = Array.from(bests, ([own, sharpe]) => sharpeAtLength(sharpe, own / length));
  return converted.length === 0 ? null : Math.max(...converted);
}
