import type { StrategySource } from '../strategy-source.ts';
import type { Search } from './plan-search.ts';
import { SavedTrials, type CountTrials } from './saved-trials.ts';
import { TrialLog } from './trial-log.ts';
import { TrialPool, type TrialLimits } from './trial-pool.ts';

export interface SearchOptions extends TrialLimits {
  /** Existing directory with the log of the search, from which it resumes; by default it has no log. */
  readonly directory?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called with ended trials before they are logged. */
  readonly count?: CountTrials | undefined;
  /** Called with the number of trials that have ended: once at the start, then after each trial. */
  readonly onProgress?: ((done: number) => void) | undefined;
}

/**
 * Runs the trials of a search on worker threads, and adds them to `search.results`. The results do not
 * depend on the number of workers.
 *
 * @throws the reason with which `signal` was aborted, once the workers have stopped; ServiceError
 *   `strategy_failed` if a worker fails, `conflict` if the directory contains another search
 */
export async function runSearch(
  search: Search,
  source: StrategySource,
  { directory, signal, count, onProgress, ...limits }: SearchOptions,
): Promise<void> {
  const { trials, results, setup } = search;
  const log =
    directory === undefined ? undefined : TrialLog.open(directory, search.digest, results);
  const workers = Math.min(limits.workers, Math.max(1, results.pending.length));
  const pool = new TrialPool(source, setup, { ...limits, workers });
  const stopped = Promise.withResolvers<never>();
  const saved = new SavedTrials(log, count, stopped.reject);
  const abort = (): void => stopped.reject(signal!.reason as Error);
  try {
    onProgress?.(results.done);
    signal?.throwIfAborted();
    signal?.addEventListener('abort', abort);
    const batch = { indices: results.pending, trial: (index: number) => trials.trial(index) };
    const run = pool.run(batch, (result) => {
      results.add(result.index, result);
      saved.add(result);
      onProgress?.(results.done);
    });
    await Promise.race([run, stopped.promise]);
  } finally {
    signal?.removeEventListener('abort', abort);
    await pool.end();
    saved.save();
    log?.close();
  }
}
