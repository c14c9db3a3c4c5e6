import {
  runStoredShard,
  type StoredObjects,
  type StoredShardOptions,
} from '../fleet/searches/stored-shard.ts';

/** Runs the shard of a pod, without a database. @throws as `runStoredShard` */
export function runShardOfJob(store: StoredObjects, options: StoredShardOptions): Promise<void> {
  return runStoredShard(store, options);
}
