import type { Search } from './plan-search.ts';
import { shareOfBars, survivorsOf } from './pruning.ts';
import { SavedTrials, type CountTrials } from './saved-trials.ts';
import { TrialLog } from './trial-log.ts';
import type { Trial } from './trial.ts';
import type { TrialRunner } from './trial-runner.ts';

export interface SearchOptions {
  /** Existing directory with the log of the search, from which it resumes; by default it has no log. */
  readonly directory?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called with ended trials before they are logged. */
  readonly count?: CountTrials | undefined;
  /** Called with the number of trials that have ended: once at the start, then after each trial. */
  readonly onProgress?: ((done: number) => void) | undefined;
}

/**
 * Runs the trials of a search, and adds them to `search.results`. The results do not depend on where
 * and on how many workers the trials run.
 *
 * @throws the reason with which `signal` was aborted, once the workers have stopped; ServiceError
 *   `strategy_failed` if a worker fails, `conflict` if the directory contains another search
 */
export async function runSearch(
  search: Search,
  runner: TrialRunner,
  { directory, signal, count, onProgress = () => {} }: SearchOptions,
): Promise<void> {
  const { results } = search;
  const log = directory === undefined ? undefined : new TrialLog(directory, search);
  const stopped = Promise.withResolvers<never>();
  const saved = new SavedTrials(search, log, count, stopped.reject);
  const abort = (): void => stopped.reject(signal!.reason as Error);
  try {
    onProgress(results.done);
    signal?.throwIfAborted();
    signal?.addEventListener('abort', abort);
    saved.countAgain();
    const run = runGenerations(search, runner, saved, () => onProgress(results.done));
    await Promise.race([run, stopped.promise]);
  } catch (error) {
    // No result may arrive once the log is closed.
    await runner.end();
    throw error;
  } finally {
    signal?.removeEventListener('abort', abort);
    saved.save();
    log?.close();
  }
}

async function runGenerations(
  search: Search,
  runner: TrialRunner,
  saved: SavedTrials,
  onProgress: () => void,
): Promise<void> {
  const { trials, results, setup, parts } = search;
  const setups = [...parts, setup];
  for (;;) {
    let running = trials.nextGeneration(results);
    if (running.length === 0) return;
    for (const index of running) results.forgetIfOther(trials.trial(index));
    for (let rung = 0; rung <= results.lastRung; rung++) {
      const isLast = rung === results.lastRung;
      const indices = running.filter((index) => !results.has(index, rung));
      const trial = (index: number): Trial => ({
        ...trials.trial(index),
        ...(results.lastRung > 0 && { rung }),
      });
      await runner.run({ indices, trial, setups, batchSize: trials.batchSize }, (result) => {
        results.add(result);
        saved.add(result, isLast || 'error' in result);
        onProgress();
      });
      if (isLast) break;
      running = prune(search, running, rung, saved);
      onProgress();
    }
  }
}

/** Ends the trials that do not continue after a rung, and returns the others. */
function prune(
  { results, setup, parts, goal }: Search,
  running: Uint32Array,
  rung: number,
  saved: SavedTrials,
): Uint32Array {
  const compared = running.filter((index) => !results.hasFailed(index));
  const share = shareOfBars({ setup, parts }, rung);
  const survivors = survivorsOf(compared, results, { rung, share, goal });
  const continues = new Set(survivors);
  for (const index of compared) {
    if (continues.has(index)) continue;
    results.prune(index, rung);
    saved.countPruned(index);
  }
  return survivors;
}
