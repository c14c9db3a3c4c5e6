import type { TrialBatch } from '../search/trial-runner.ts';
import type { Trial } from '../search/trial.ts';
import { canonicalDigest } from '../run-lock.ts';

/** Trials of a search that one worker runs. */
export interface Shard {
  /** Digest of the rest, so that the same trials over the same input are one shard. */
  readonly id: string;
  /** Digest of the `SearchInput`. */
  readonly input: string;
  readonly trials: readonly Trial[];
}

/** A batch has about this many shards, so that a hundred workers end at about the same time. */
const SHARDS_OF_A_BATCH = 256;
const MIN_TRIALS = 4;
const MAX_TRIALS = 1000;
/** Longest list of trials in JSON, which must fit into a request. */
const MAX_BYTES = 256 * 1024;

/**
 * Divides a batch into shards by the index of its trials. The same trials are divided at the same places
 * after an interruption, even if some shards have ended, so that finished work is found again.
 */
export function* shardsOf(
  { indices, trial, batchSize = indices.length }: TrialBatch,
  input: string,
): Generator<Shard, void> {
  const size = shardSize(batchSize);
  for (let first = 0; first < indices.length;) {
    const group = Math.floor(indices[first]! / size);
    let end = first + 1;
    while (end < indices.length && Math.floor(indices[end]! / size) === group) end += 1;
    yield* fitting(input, Array.from(indices.subarray(first, end), trial));
    first = end;
  }
}

/** Number of trials in a shard, unless their parameters are very long. @param trials of the batch */
export function shardSize(trials: number): number {
  return Math.min(MAX_TRIALS, Math.max(MIN_TRIALS, Math.ceil(trials / SHARDS_OF_A_BATCH)));
}

function* fitting(input: string, trials: readonly Trial[]): Generator<Shard, void> {
  const isTooLong = trials.length > 1 && JSON.stringify(trials).length > MAX_BYTES;
  if (isTooLong) {
    const half = trials.length >> 1;
    yield* fitting(input, trials.slice(0, half));
    yield* fitting(input, trials.slice(half));
  } else {
    yield { id: canonicalDigest({ input, trials }), input, trials };
  }
}
