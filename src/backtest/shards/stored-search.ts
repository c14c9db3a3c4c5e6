/** A Job of a search in a store, by index of its pods. */
export interface StoredManifest {
  /** Digest of the search. */
  readonly search: string;
  /** Version of the client's package, which the pods must have. */
  readonly package: string;
  /** Ids of the shards, by index. */
  readonly shards: readonly string[];
}

/** `ShardResults` with the file in base64. */
export interface StoredResults {
  readonly parquet: string;
  readonly errors: readonly (readonly [row: number, message: string])[];
  readonly sums: number;
}

/** Why a shard cannot run. */
export interface StoredFailure {
  readonly failure: string;
}

/** Ends the names of failures, which are listed together with the results. */
export const FAILURE_SUFFIX = '.failure';

/** Keys of the objects of a search. */
export function storedKeys(search: string) {
  return {
    inputs: `${search}/inputs`,
    results: `${search}/results`,
    input: (digest: string): string => `${search}/inputs/${digest}`,
    shard: (id: string): string => `${search}/shards/${id}`,
    result: (id: string): string => `${search}/results/${id}`,
    failure: (id: string): string => `${search}/results/${id}${FAILURE_SUFFIX}`,
  };
}
