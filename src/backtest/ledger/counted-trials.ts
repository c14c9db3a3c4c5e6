import { ServiceError } from '../../base/errors.ts';
import type { BacktestJob } from '../job.ts';
import type { Holdout, Lock } from '../summary.ts';
import type { ExecutedTrial } from './packed-trials.ts';
import { TrialLedger, type TrialCommand } from './trial-ledger.ts';

/**
 * Counts the trials of a command or function in the ledger of this machine. If the ledger cannot be
 * used, for example because the home directory is read-only, the work continues without it.
 */
export class CountedTrials {
  readonly #ledger: TrialLedger;
  readonly #onFault: (fault: ServiceError) => void;
  #isUsable = true;

  /** @param onFault called at most once, if the ledger cannot be used */
  constructor(home: string, onFault: (fault: ServiceError) => void) {
    this.#ledger = new TrialLedger(home);
    this.#onFault = onFault;
  }

  /**
   * Captures the trials that are recorded now.
   *
   * @returns a function that adds them to the lock, except those with the parameters of the run's own
   *   trials
   */
  capture(job: BacktestJob): (own: Iterable<Pick<ExecutedTrial, 'params'>>) => Lock {
    const earlierThan = this.#use((ledger) => ledger.capture(job));
    return (own) => ({ ...job.lock, trials: earlierThan?.(own) });
  }

  /**
   * Records a job that opens its holdout, and returns the use of the holdout so far.
   * @throws ServiceError if the opening cannot be recorded
   */
  useHoldout(job: BacktestJob): Holdout | undefined {
    if (job.holdout?.is_open) return this.#ledger.openHoldout(job, job.holdout);
    return this.#use((ledger) => ledger.holdoutOf(job)) ?? job.holdout;
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
      this.#onFault(error);
      return undefined;
    }
  }
}
