import { sharpeAtLength } from '../deflated-sharpe.ts';
import type { BacktestJob } from '../job.ts';
import type { LedgerRecord, TrialScope } from './ledger-entry.ts';
import { NO_KEYS, type TrialKeys } from './packed-trials.ts';
import type { EarlierTrials } from '../summary.ts';

export function scopeOf({ strategy, barMs, instruments }: BacktestJob): TrialScope {
  const times = instruments.map(({ bars }) => bars.time.subarray(0, bars.length));
  return {
    family: strategy.name,
    symbols: instruments.map(({ symbol }) => symbol).toSorted(),
    bar_ms: barMs,
    from: new Date(Math.min(...times.map((time) => time[0]!))).toISOString(),
    to: new Date(Math.max(...times.map((time) => time.at(-1)!))).toISOString(),
  };
}

/** Whether trials of the two scopes count together. */
export function areTogether(a: TrialScope, b: TrialScope): boolean {
  return (
    a.family === b.family &&
    a.bar_ms === b.bar_ms &&
    a.from <= b.to &&
    b.from <= a.to &&
    a.symbols.some((symbol) => b.symbols.includes(symbol))
  );
}

/** The trials of a run: their `trialLock` and keys. */
interface OwnTrials {
  readonly lock: string;
  readonly keys: TrialKeys;
}

/** Length of a window from the open of its first bar to the end of its last, ms. */
export function lengthOf({ from, to, bar_ms }: TrialScope): number {
  return Date.parse(to) - Date.parse(from) + bar_ms;
}

/** @param own trials that do not count */
export function earlierTrials(
  records: Iterable<LedgerRecord>,
  scope: TrialScope,
  own: OwnTrials,
): EarlierTrials {
  let count = 0;
  let sharpes = 0;
  let mean = 0;
  /** Sum of squared deviations from the mean. */
  let squares = 0;
  for (const record of records) {
    if (record.kind !== 'trials' || !areTogether(record, scope)) continue;
    const share = lengthOf(record) / lengthOf(scope);
    const keys = record.lock === own.lock ? own.keys : NO_KEYS;
    for (const recorded of keys.otherSharpes(record.trials)) {
      count++;
      if (recorded === null) continue;
      const sharpe = sharpeAtLength(recorded, share);
      const deviation = sharpe - mean;
      mean += deviation / ++sharpes;
      squares += deviation * (sharpe - mean);
    }
  }
  return {
    count,
    sharpe_count: sharpes,
    sharpe_mean: sharpes === 0 ? null : mean,
    sharpe_variance: sharpes < 2 ? null : squares / (sharpes - 1),
  };
}
