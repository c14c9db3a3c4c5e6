import type { ExecutedTrial } from '../ledger/packed-trials.ts';
import type { TrialLog } from './trial-log.ts';
import type { TrialResult } from './trial.ts';

/** Counts executed trials in a ledger. */
export type CountTrials = (executed: readonly ExecutedTrial[]) => void;

/** Longest time until an ended trial is saved. */
const SAVE_WITHIN_MS = 250;
const MOST_AT_ONCE = 10_000;

/**
 * Saves ended trials: counts them in batches, because each entry of a ledger is written durably, and then
 * logs them, so that no trial in the log is uncounted if the process is killed.
 */
export class SavedTrials {
  readonly #log: TrialLog | undefined;
  readonly #count: CountTrials | undefined;
  readonly #onFailure: (error: unknown) => void;
  #unsaved: TrialResult[] = [];
  #timer: NodeJS.Timeout | undefined;

  /** @param onFailure called with an error of a write that no caller waits for */
  constructor(
    log: TrialLog | undefined,
    count: CountTrials | undefined,
    onFailure: (error: unknown) => void,
  ) {
    this.#log = log;
    this.#count = count;
    this.#onFailure = onFailure;
  }

  add(result: TrialResult): void {
    this.#unsaved.push(result);
    if (this.#count === undefined || this.#unsaved.length >= MOST_AT_ONCE) this.save();
    else this.#timer ??= setTimeout(() => this.#saveLate(), SAVE_WITHIN_MS);
  }

  /** Saves all trials that were added. */
  save(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const trials = this.#unsaved;
    this.#unsaved = [];
    if (trials.length > 0) this.#count?.(trials.map(executedTrial));
    for (const trial of trials) this.#log?.append(trial);
  }

  #saveLate(): void {
    try {
      this.save();
    } catch (error) {
      this.#onFailure(error);
    }
  }
}

function executedTrial({ params, ...result }: TrialResult): ExecutedTrial {
  return { params, sharpe: 'metrics' in result ? result.metrics.sharpe : null };
}
