import { join } from 'node:path';
import type { ChainHead } from '../../base/hash-chain.ts';
import type { BacktestJob } from '../job.ts';
import { earlierTrials, scopeOf } from './earlier-trials.ts';
import { openingOf, withUse } from './holdout-use.ts';
import type { LedgerEntry, LedgerFault } from './ledger-entry.ts';
import { LedgerFile } from './ledger-file.ts';
import { NO_KEYS, packTrials, TrialKeys, trialKey, type ExecutedTrial } from './packed-trials.ts';
import { trialLock } from './trial-lock.ts';
import type { EarlierTrials, Holdout } from '../summary.ts';

/** Command that executed a trial. */
export type TrialCommand = 'backtest' | 'sweep' | 'walk-forward' | 'robustness';

/** Counts the captured trials on the data of a job, except its own trials with the given parameters. */
export type CountEarlier = (own: Iterable<Pick<ExecutedTrial, 'params'>>) => EarlierTrials;

export function captureFrom(entries: readonly LedgerEntry[], job: BacktestJob): CountEarlier {
  const lock = trialLock(job);
  return (own) => {
    // The keys of a large sweep take seconds.
    const isRepeated = entries.some((entry) => entry.lock === lock);
    const keys = isRepeated ? keysOf(own) : NO_KEYS;
    return earlierTrials(entries, scopeOf(job), { lock, keys });
  };
}

/**
 * The trials that were executed on this machine, each once: repeated and resumed trials, which have the
 * same `trialLock` and parameters, do not count again. The file is `trials/ledger.ndjson` in the home directory.
 */
export class TrialLedger {
  readonly #file: LedgerFile;

  constructor(home: string) {
    this.#file = new LedgerFile(join(home, 'trials', 'ledger.ndjson'));
  }

  get path(): string {
    return this.#file.path;
  }

  entries(): readonly LedgerEntry[] {
    return this.#file.read();
  }

  verify(): { readonly last: ChainHead; readonly faults: readonly LedgerFault[] } {
    return this.#file.verify();
  }

  /** Captures the trials that are recorded now. */
  capture(job: BacktestJob): CountEarlier {
    return captureFrom(this.entries(), job);
  }

  /** Records the trials that are not recorded yet. The entry is durable when this returns. */
  record(job: BacktestJob, by: TrialCommand, executed: readonly ExecutedTrial[]): void {
    const lock = trialLock(job);
    this.#file.append(Date.now(), (entries) => {
      const trials = new Map(executed.map(({ params, sharpe }) => [trialKey(params), sharpe]));
      removeRecorded(trials, lock, entries);
      if (trials.size === 0) return undefined;
      const packed = packTrials(trials);
      return { kind: 'trials', by, lock, ...scopeOf(job), count: trials.size, trials: packed };
    });
  }

  /** Records a run over its holdout, and returns the holdout with this opening. */
  openHoldout(job: BacktestJob, holdout: Holdout): Holdout {
    const record = openingOf(job, holdout, 'backtest');
    this.#file.append(Date.now(), () => record);
    return withUse(holdout, this.entries(), record);
  }

  /** Returns the holdout of a job with its openings and trials so far. */
  holdoutOf(job: BacktestJob): Holdout | undefined {
    const { holdout } = job;
    return holdout && withUse(holdout, this.entries(), openingOf(job, holdout, 'backtest'));
  }
}

function keysOf(trials: Iterable<Pick<ExecutedTrial, 'params'>>): TrialKeys {
  const keys = new Set<string>();
  for (const { params } of trials) keys.add(trialKey(params));
  return new TrialKeys(keys);
}

/** Removes the trials of a lock that entries contain. */
function removeRecorded(
  trials: Map<string, ExecutedTrial['sharpe']>,
  lock: string,
  entries: readonly LedgerEntry[],
): void {
  const keys = new TrialKeys(trials.keys());
  for (const entry of entries) {
    if (entry.kind !== 'trials' || entry.lock !== lock) continue;
    for (const key of keys.foundIn(entry.trials)) trials.delete(key);
  }
}
