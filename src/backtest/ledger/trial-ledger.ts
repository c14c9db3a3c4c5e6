import { join } from 'node:path';
import type { ChainHead } from '../../base/hash-chain.ts';
import type { BacktestJob } from '../job.ts';
import { earlierTrials, scopeOf } from './earlier-trials.ts';
import { openingOf, withUse } from './holdout-use.ts';
import type { LedgerEntry, LedgerFault } from './ledger-entry.ts';
import { LedgerFile } from './ledger-file.ts';
import { packTrials, trialKey, unpackTrials, type ExecutedTrial } from './packed-trials.ts';
import { trialLock } from './trial-lock.ts';
import type { EarlierTrials, Holdout } from '../summary.ts';

/** Command that executed a trial. */
export type TrialCommand = 'backtest' | 'sweep' | 'walk-forward' | 'robustness';

/**
 * The trials that were executed on this machine, each once: repeated and resumed trials, which have the
 * same `trialLock` and parameters, do not count again. The file is `trials/ledger.ndjson` in the home directory.
 */
export class TrialLedger {
  readonly #file: LedgerFile;
  #known: KnownTrials | undefined;

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

  /**
   * Captures the trials that are recorded now.
   *
   * @returns a function that counts those on the data of the job, except its own trials with
   *   the given parameters
   */
  capture(job: BacktestJob): (own: Iterable<Pick<ExecutedTrial, 'params'>>) => EarlierTrials {
    const entries = this.entries();
    const lock = trialLock(job);
    return (own) => {
      const keys = new Set<string>();
      // The keys of a large sweep take seconds.
      if (entries.some((entry) => entry.lock === lock)) {
        for (const { params } of own) keys.add(trialKey(params));
      }
      return earlierTrials(entries, scopeOf(job), { lock, keys });
    };
  }

  /** Records the trials that are not recorded yet. The entry is durable when this returns. */
  record(job: BacktestJob, by: TrialCommand, executed: readonly ExecutedTrial[]): void {
    const lock = trialLock(job);
    this.#file.append(Date.now(), (entries) => {
      const known = this.#keysOf(lock, entries);
      const trials = new Map<string, ExecutedTrial['sharpe']>();
      for (const { params, sharpe } of executed) {
        const key = trialKey(params);
        if (!known.has(key)) trials.set(key, sharpe);
      }
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

  /** Keys of the recorded trials of a lock. */
  #keysOf(lock: string, entries: readonly LedgerEntry[]): ReadonlySet<string> {
    let known = this.#known;
    // The file may have been replaced.
    if (known?.lock !== lock || entries[known.searched - 1] !== known.last) {
      known = { lock, keys: new Set(), searched: 0, last: undefined };
    }
    for (const entry of entries.slice(known.searched)) {
      if (entry.kind !== 'trials' || entry.lock !== lock) continue;
      for (const { key } of unpackTrials(entry.trials)) known.keys.add(key);
    }
    this.#known = { ...known, searched: entries.length, last: entries.at(-1) };
    return known.keys;
  }
}

/** Keys of the recorded trials of a lock in the first entries of the ledger. */
interface KnownTrials {
  readonly lock: string;
  readonly keys: Set<string>;
  /** Number of these entries, and the last of them. */
  readonly searched: number;
  readonly last: LedgerEntry | undefined;
}
