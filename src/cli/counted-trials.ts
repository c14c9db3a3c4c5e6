import type { BacktestJob } from '../backtest/job.ts';
import { TrialLedger, type TrialCommand } from '../backtest/ledger/trial-ledger.ts';
import type { ExecutedTrial } from '../backtest/ledger/packed-trials.ts';
import { ServiceError } from '../base/errors.ts';
import type { Context } from './verb.ts';

/**
 * Counts the trials of a command in the ledger of this machine. If the ledger cannot be used, for example
 * because the home directory is read-only, a message says so, and the command continues without it.
 */
export class CountedTrials {
  readonly #ledger: TrialLedger;
  readonly #message: Context['message'];
  #isUsable = true;

  constructor({ settings, message }: Context) {
    this.#ledger = new TrialLedger(settings.home);
    this.#message = message;
  }

  /** Returns the job with its earlier trials in the lock. */
  capture(job: BacktestJob, trials: Iterable<ExecutedTrial['params']>): BacktestJob {
    const earlier = this.#use((ledger) => ledger.earlierThan(job, trials));
    return { ...job, lock: { ...job.lock, trials: earlier } };
  }

  record(job: BacktestJob, by: TrialCommand, executed: readonly ExecutedTrial[]): void {
    this.#use((ledger) => ledger.record(job, by, executed));
  }

  #use<T>(work: (ledger: TrialLedger) => T): T | undefined {
    if (!this.#isUsable) return undefined;
    try {
      return work(this.#ledger);
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      this.#isUsable = false;
      this.#message(`warning: trials are not counted: ${error.message}`);
      return undefined;
    }
  }
}
