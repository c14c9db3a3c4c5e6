import type { ExecutedTrial } from '../ledger/packed-trials.ts';
import type { TrialLog } from './trial-log.ts';
import type { TrialResult } from './trial.ts';
import type { Search } from './plan-search.ts';
import { unselectedSharpe } from './pruning.ts';

/** Counts executed trials in a ledger. */
export type CountTrials = (executed: readonly ExecutedTrial[]) => void;

/** Longest time until an ended trial is saved. */
const SAVE_WITHIN_MS = 250;
const MOST_AT_ONCE = 10_000;

/**
 * Saves ended trials. It counts them first and then logs them, so that every trial in the log is counted
 * even if the process is killed. It counts in batches, because each ledger entry is written durably.
 */
export class SavedTrials {
  readonly #search: Search;
  readonly #log: TrialLog | undefined;
  readonly #count: CountTrials | undefined;
  readonly #onFailure: (error: unknown) => void;
  #unlogged: TrialResult[] = [];
  #uncounted: ExecutedTrial[] = [];
  #timer: NodeJS.Timeout | undefined;

  /** @param onFailure called with an error of a write that no caller waits for */
  constructor(
    search: Search,
    log: TrialLog | undefined,
    count: CountTrials | undefined,
    onFailure: (error: unknown) => void,
  ) {
    this.#search = search;
    this.#log = log;
    this.#count = count;
    this.#onFailure = onFailure;
  }

  /** Logs a trial, and counts it unless it may run over more bars. The search has its result. */
  add(result: TrialResult, isEnd: boolean): void {
    this.#unlogged.push(result);
    if (isEnd) this.#uncounted.push(this.#executedTrial(result.index));
    this.#saveSoon();
  }

  /** Counts a logged trial that does not run over more bars. */
  countPruned(index: number): void {
    this.#uncounted.push(this.#executedTrial(index));
    this.#saveSoon();
  }

  /** Counts trials of the log again, because an earlier count may have failed. A ledger counts each once. */
  countAgain(): void {
    for (const index of this.#search.results.ended) {
      this.#uncounted.push(this.#executedTrial(index));
      if (this.#uncounted.length === MOST_AT_ONCE) this.save();
    }
  }

  /** Saves all trials that were added. */
  save(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const [trials, executed] = [this.#unlogged, this.#uncounted];
    this.#unlogged = [];
    this.#uncounted = [];
    if (executed.length > 0) this.#count?.(executed);
    for (const trial of trials) this.#log?.append(trial);
  }

  #saveSoon(): void {
    const size = Math.max(this.#unlogged.length, this.#uncounted.length);
    if (this.#count === undefined || size >= MOST_AT_ONCE) this.save();
    else this.#timer ??= setTimeout(() => this.#saveLate(), SAVE_WITHIN_MS);
  }

  #saveLate(): void {
    try {
      this.save();
    } catch (error) {
      this.#onFailure(error);
    }
  }

  #executedTrial(index: number): ExecutedTrial {
    const { params } = this.#search.trials.trial(index);
    return { params, sharpe: unselectedSharpe(this.#search, index) };
  }
}
