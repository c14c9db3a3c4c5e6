import { ServiceError } from '../../base/errors.ts';
import { packageVersion } from '../../base/package-version.ts';
import { strategyOf, unpackInput } from '../../backtest/shards/search-input.ts';
import { encodeResults } from '../../backtest/shards/shard-results.ts';
import type { Shard } from '../../backtest/shards/shard.ts';
import type {
  StoredFailure,
  StoredManifest,
  StoredResults,
} from '../../backtest/shards/stored-search.ts';
import { storedKeys } from '../../backtest/shards/stored-search.ts';
import { SandboxedTrials } from './sandboxed-trials.ts';

/** Where a search keeps its inputs and results, by key. */
export interface StoredObjects {
  readonly get: (key: string) => Promise<Uint8Array | undefined>;
  readonly put: (key: string, bytes: Uint8Array) => Promise<void>;
}

export interface StoredShardOptions {
  /** Key of the manifest. */
  readonly manifest: string;
  /** Place of the shard in the manifest. */
  readonly index: number;
  /** Memory of the strategy, MB. */
  readonly memoryMb: number;
  readonly signal: AbortSignal;
}

/** Memory of a built-in strategy, MB. */
const BUILT_IN_MB = 512;

/**
 * Runs a shard of a stored search, and stores its outcome; does nothing if that exists. Several processes
 * may run the same shard, since all of them store the same outcome.
 *
 * @throws ServiceError `conflict` for another version, `file_not_found` without the objects of the shard,
 *   errors of the store; the reason with which `signal` was aborted
 */
export async function runStoredShard(
  store: StoredObjects,
  { manifest: manifestKey, index, memoryMb, signal }: StoredShardOptions,
): Promise<void> {
  const manifest = JSON.parse(await textOf(store, manifestKey)) as StoredManifest;
  const own = packageVersion();
  if (manifest.package !== own) {
    throw new ServiceError(
      'conflict',
      `this image has version ${own}, and the client ${manifest.package}`,
      {
        reason: 'version_differs',
        remedy: `Set the image of the cluster in clusters_file to version ${manifest.package}.`,
      },
    );
  }
  const id = manifest.shards[index];
  if (id === undefined) {
    throw new ServiceError('usage', `the manifest has no shard with the index ${index}`);
  }
  const keys = storedKeys(manifest.search);
  if ((await store.get(keys.result(id))) !== undefined) return;
  const shard = JSON.parse(await textOf(store, keys.shard(id))) as Shard;
  const bytes = await bytesOf(store, keys.input(shard.input));
  const input = await unpackInput({ digest: shard.input, bytes });
  const limit = 'files' in strategyOf(input) ? memoryMb : BUILT_IN_MB;
  const outcome = await outcomeOf(shard, new SandboxedTrials(shard.input, input, limit), signal);
  const key = 'failure' in outcome ? keys.failure(id) : keys.result(id);
  await store.put(key, Buffer.from(JSON.stringify(outcome)));
}

async function outcomeOf(
  { trials }: Shard,
  sandbox: SandboxedTrials,
  signal: AbortSignal,
): Promise<StoredResults | StoredFailure> {
  try {
    const { parquet, ...rest } = await encodeResults(await sandbox.run(trials, signal));
    return { ...rest, parquet: Buffer.from(parquet).toString('base64') };
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code !== 'invalid_strategy') throw error;
    return { failure: error.message };
  } finally {
    await sandbox.end();
  }
}

async function bytesOf({ get }: StoredObjects, key: string): Promise<Uint8Array> {
  const bytes = await get(key);
  if (bytes !== undefined) return bytes;
  throw new ServiceError('file_not_found', `the store has no object ${key}`, {
    remedy: 'Run the command of the search again, which stores it.',
  });
}

async function textOf(store: StoredObjects, key: string): Promise<string> {
  return Buffer.from(await bytesOf(store, key)).toString();
}
