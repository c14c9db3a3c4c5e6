import type { Search } from '../search/plan-search.ts';
import type { TrialRunner } from '../search/trial-runner.ts';
import type { TrialResult } from '../search/trial.ts';
import { encodeInput, type SentStrategy } from './search-input.ts';
import { encodeResults } from './shard-results.ts';
import { shardSize } from './shard.ts';

/** Cost of a whole search. Times are for one processor of this machine. */
export interface SearchEstimate {
  readonly trials: number;
  /** Combinations that the strategy does not accept. */
  readonly skipped: number;
  readonly shards: number;
  readonly trials_per_shard: number;
  /** Shards that can run at once, since generations run one after another. */
  readonly parallel_shards: number;
  readonly bars: number;
  readonly pilot: { readonly trials: number; readonly failed: number };
  /** Mean time of a trial in the second half of the pilot. */
  readonly seconds_per_trial: number;
  /** Time to write the results of a shard. */
  readonly seconds_per_shard: number;
  readonly core_hours: number;
  /** Bytes that each worker receives once. */
  readonly input_bytes: number;
  /** Bytes of the results of all shards. */
  readonly result_bytes: number;
}

/**
 * Runs evenly distributed trials of a search on one thread for about three seconds, and extrapolates from
 * the second half of them, since the first ones also start the thread, compile code and compute shared
 * indicators. If there are few trials, they run several times, so that the second half is free of this.
 * Pruning is left out of the estimate, so a pruned search takes less.
 *
 * @param runner with one thread
 * @param pilot maximum number of different trials to run
 */
export async function estimateSearch(
  search: Search,
  strategy: SentStrategy,
  runner: TrialRunner,
  pilot: number,
): Promise<SearchEstimate> {
  const { trials, setup, results } = search;
  const generation = trials.nextGeneration(results);
  const total = trials.capacity;
  const chosen = spread(generation, Math.min(pilot, generation.length));
  const ended: TrialResult[] = [];
  const rounds: { readonly trials: number; readonly ms: number }[] = [];
  const startedAt = performance.now();
  for (let runs = 0; runs < Math.max(chosen.length, LEAST_RUNS);) {
    const roundAt = performance.now();
    if (roundAt - startedAt > LONGEST_MS) break;
    const from = runs % chosen.length;
    // The first trial is a round of its own, because it starts the thread.
    const indices = chosen.subarray(from, from + (runs === 0 ? 1 : ROUND));
    const batch = { indices, setups: [setup], trial: (index: number) => trials.trial(index) };
    await runner.run(batch, (result) => {
      if (ended.length < chosen.length) ended.push(result);
    });
    runs += indices.length;
    rounds.push({ trials: indices.length, ms: performance.now() - roundAt });
  }
  const count = ended.length;
  const seconds = secondsOf(rounds.slice(rounds.length >> 1));
  const { batchSize } = trials;
  const size = shardSize(batchSize);
  const shards =
    Math.floor(total / batchSize) * Math.ceil(batchSize / size) +
    Math.ceil((total % batchSize) / size);
  await encodeResults(ended);
  const encodedAt = performance.now();
  const { parquet, errors } = await encodeResults(ended);
  const shardSeconds = (performance.now() - encodedAt) / 1000;
  const bytes = parquet.length + JSON.stringify(errors).length;
  return {
    trials: total,
    skipped: trials.skipped.total,
    shards,
    trials_per_shard: size,
    parallel_shards: Math.ceil(batchSize / size),
    bars: Math.max(...setup.instruments.map(({ bars }) => bars.length)),
    pilot: { trials: count, failed: ended.filter((one) => 'error' in one).length },
    seconds_per_trial: seconds,
    seconds_per_shard: shardSeconds,
    core_hours: (seconds * total + shardSeconds * shards) / 3600,
    input_bytes: (await encodeInput({ strategy, setups: [setup] })).bytes.length,
    result_bytes: Math.ceil((bytes / count) * total),
  };
}

/** Trials of which some run between two looks at the clock. */
const ROUND = 8;
/** Least number of runs of a pilot, after which code is compiled. */
const LEAST_RUNS = 64;
/** Time after which the pilot ends. */
const LONGEST_MS = 3000;

/** Some of the trials, evenly distributed, in an order in which any beginning is as well. */
function spread(trials: Uint32Array, count: number): Uint32Array {
  const chosen = Uint32Array.from(
    { length: count },
    (_, place) => trials[Math.floor(((place + 0.5) * trials.length) / count)]!,
  );
  // The fractional parts of the multiples of the golden ratio are evenly distributed.
  const orderOf = new Map(Array.from(chosen, (trial, place) => [trial, (place * GOLDEN) % 1]));
  return chosen.toSorted((a, b) => orderOf.get(a)! - orderOf.get(b)!);
}

const GOLDEN = (Math.sqrt(5) - 1) / 2;

function secondsOf(rounds: readonly { readonly trials: number; readonly ms: number }[]): number {
  const ms = rounds.reduce((sum, round) => sum + round.ms, 0);
  return ms / 1000 / rounds.reduce((sum, round) => sum + round.trials, 0);
}
