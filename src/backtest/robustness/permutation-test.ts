import { join } from 'node:path';
import { LineLog } from '../line-log.ts';
import type { Search } from '../search/plan-search.ts';
import { TrialPool, type TrialLimits } from '../search/trial-pool.ts';
import { TrialResults } from '../search/trial-results.ts';
import type { TrialSetup } from '../search/trial.ts';
import type { StrategySource } from '../strategy-source.ts';

export interface PermutationOptions extends TrialLimits {
  readonly permutations: number;
  readonly seed: number;
  /** Directory of the log from which interrupted permutations resume. */
  readonly directory: string;
  readonly signal?: AbortSignal | undefined;
  /** Called with the number of permutations that have ended: once at the start, then after each. */
  readonly onProgress?: ((done: number) => void) | undefined;
}

/** Permutations of a round together have about as many trials, so that no worker waits for long. */
const TRIALS_OF_A_ROUND = 4096;

/**
 * Repeats a search over permutations of its bars; see `PermutedBars`. The results do not depend on the
 * number of workers.
 *
 * @returns the best Sharpe ratio of each permutation; NaN if no trial has one
 * @throws as `runSearch`
 */
export async function searchPermutations(
  search: Search,
  source: StrategySource,
  { permutations, seed, directory, signal, onProgress, ...limits }: PermutationOptions,
): Promise<Float64Array> {
  const best = new Float64Array(permutations);
  const isDone = new Uint8Array(permutations);
  const header = JSON.stringify({
    schema: 'service-local/permutations/v1',
    search: search.digest,
    seed,
  });
  const log = LineLog.open(join(directory, 'permutations.ndjson'), header, (line) => {
    const { permutation, best: value } = JSON.parse(line) as PermutationLine;
    if (permutation >= permutations) return;
    best[permutation] = value ?? Number.NaN;
    isDone[permutation] = 1;
  });
  const setup: TrialSetup = { ...search.setup, blocks: undefined, permutationSeed: seed };
  const pool = new TrialPool(source, [setup], limits);
  const pending = [...isDone.keys()].filter((permutation) => isDone[permutation] === 0);
  let done = permutations - pending.length;
  const end = (permutation: number, value: number): void => {
    best[permutation] = value;
    const line: PermutationLine = { permutation, best: Number.isNaN(value) ? null : value };
    log.append(JSON.stringify(line));
    done += 1;
    onProgress?.(done);
  };
  const aborted = Promise.withResolvers<never>();
  const abort = (): void => aborted.reject(signal!.reason as Error);
  try {
    onProgress?.(done);
    signal?.throwIfAborted();
    signal?.addEventListener('abort', abort);
    await Promise.race([runRounds(search, pool, pending, end), aborted.promise]);
  } finally {
    signal?.removeEventListener('abort', abort);
    await pool.end();
    log.close();
  }
  return best;
}

interface PermutationLine {
  readonly permutation: number;
  readonly best: number | null;
}

async function runRounds(
  { trials, goal }: Search,
  pool: TrialPool,
  pending: readonly number[],
  onEnd: (permutation: number, best: number) => void,
): Promise<void> {
  const size = Math.ceil(TRIALS_OF_A_ROUND / trials.count);
  for (let first = 0; first < pending.length; first += size) {
    const round = pending.slice(first, first + size);
    const results = new Map(
      round.map((permutation) => [permutation, new TrialResults(trials)] as const),
    );
    const batch = {
      indices: Uint32Array.from({ length: round.length * trials.count }, (_, place) => place),
      trial: (place: number) => ({
        ...trials.trial(place % trials.count),
        permutation: round[Math.floor(place / trials.count)]!,
      }),
    };
    await pool.run(batch, (result) => {
      const permutation = result.permutation!;
      const own = results.get(permutation)!;
      own.add(result);
      if (own.isComplete) onEnd(permutation, own.best(goal)?.metrics.sharpe ?? Number.NaN);
    });
  }
}
