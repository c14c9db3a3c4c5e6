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

/** Trials that count together, with their Sharpe ratios at the length of one run. */
export class TrialSample {
  #count = 0;
  readonly #sharpes: number[] = [];

  /** @param share length of the trial divided by that of the run; a trial without a length has no Sharpe ratio */
  add(sharpe: number | null, share: number): void {
    this.#count += 1;
    if (sharpe !== null && share > 0) this.#sharpes.push(sharpeAtLength(sharpe, share));
  }

  figures(): EarlierTrials {
    // Sorted, because ledgers record trials in any order and the order changes the last digit of a sum.
    const sharpes = Float64Array.from(this.#sharpes).sort();
    const sum = sharpes.reduce((total, sharpe) => total + sharpe, 0);
    const mean = sum / sharpes.length;
    const squares = sharpes.reduce((total, sharpe) => total + (sharpe - mean) ** 2, 0);
    return {
      count: this.#count,
      sharpe_count: sharpes.length,
      sharpe_mean: sharpes.length === 0 ? null : mean,
      sharpe_variance: sharpes.length < 2 ? null : squares / (sharpes.length - 1),
    };
  }
}

/** @param own trials that do not count */
export function earlierTrials(
  records: Iterable<LedgerRecord>,
  scope: TrialScope,
  own: OwnTrials,
): EarlierTrials {
  const sample = new TrialSample();
  for (const record of records) {
    if (record.kind !== 'trials' || !areTogether(record, scope)) continue;
    const share = lengthOf(record) / lengthOf(scope);
    const keys = record.lock === own.lock ? own.keys : NO_KEYS;
    for (const sharpe of keys.otherSharpes(record.trials)) sample.add(sharpe, share);
  }
  return sample.figures();
}
