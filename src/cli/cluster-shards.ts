import { setTimeout as sleep } from 'node:timers/promises';
import type { EndedShard, ShardService } from '../backtest/shards/remote-trials.ts';
import type { EncodedInput } from '../backtest/shards/search-input.ts';
import type { Shard } from '../backtest/shards/shard.ts';
import {
  storedKeys,
  type StoredManifest,
  type StoredOutcome,
} from '../backtest/shards/stored-search.ts';
import { ServiceError } from '../base/errors.ts';
import { packageVersion } from '../base/package-version.ts';
import { chooseCluster, readClusters } from '../deploy/kubernetes/clusters-file.ts';
import { openObjectStore, type ObjectStore } from '../deploy/searches/object-store.ts';
import {
  jobName,
  manifestKey,
  searchJob,
  type SearchJobPlan,
} from '../deploy/searches/search-job.ts';
import {
  connectSearchJobs,
  requireSearches,
  type SearchJobs,
} from '../deploy/searches/search-jobs.ts';
import type { Context } from './verb.ts';

/** Objects that are read or written at once. */
const AT_ONCE = 16;
const POLL_MS = 1000;
/** Polls between two questions to the cluster. */
const POLLS_OF_A_STATUS = 5;

/**
 * Prepares Jobs for the shards of a search on a cluster of the clusters file.
 *
 * @param digest identifies the command, so that an interrupted one finds its results again
 * @throws ServiceError `conflict` for an unknown cluster or one without a store
 */
export async function openClusterShards(
  { settings, signal }: Context,
  name: string,
  digest: string,
): Promise<ShardService> {
  const clusters = readClusters(settings.clusters_file);
  const definition = requireSearches(clusters[chooseCluster(clusters, name)]!, name);
  const { store: place, endpoint, region } = definition.searches;
  const store = await openObjectStore(place, { endpoint, region });
  const jobs = connectSearchJobs(definition, { name, signal });
  return new ClusterShards({ store, jobs, definition, digest, signal });
}

interface ClusterShardsOptions {
  readonly store: ObjectStore;
  readonly jobs: SearchJobs;
  readonly definition: SearchJobPlan['definition'];
  readonly digest: string;
  readonly signal: AbortSignal;
}

class ClusterShards implements ShardService {
  readonly mostOpen = Infinity;
  readonly #options: ClusterShardsOptions;
  readonly #keys: ReturnType<typeof storedKeys>;
  /** Ids of the shards that have not ended. */
  readonly #open = new Set<string>();
  readonly #jobs = new Set<string>();

  constructor(options: ClusterShardsOptions) {
    this.#options = options;
    this.#keys = storedKeys(options.digest);
  }

  async putInput({ digest, bytes }: EncodedInput): Promise<void> {
    const { store } = this.#options;
    const stored = await store.list(this.#keys.inputs);
    if (!stored.includes(digest)) await store.put(this.#keys.input(digest), bytes);
  }

  async submit(shards: readonly Shard[]): Promise<void> {
    const { store, jobs, definition, digest } = this.#options;
    for (const { id } of shards) this.#open.add(id);
    const ended = new Set(await store.list(this.#keys.results));
    const missing = shards.filter(({ id }) => !ended.has(id));
    if (missing.length === 0) return;
    await inGroups(missing, (shard) =>
      store.put(this.#keys.shard(shard.id), Buffer.from(JSON.stringify(shard))),
    );
    const ids = missing.map(({ id }) => id);
    const plan = { digest, shards: ids, definition };
    const manifest: StoredManifest = { search: digest, package: packageVersion(), shards: ids };
    await store.put(manifestKey(plan), Buffer.from(JSON.stringify(manifest)));
    const name = jobName(plan);
    this.#jobs.add(name);
    // A Job that an earlier command left may have failed.
    const status = await jobs.status(name);
    if (status?.failure !== undefined || status?.failedIndexes !== undefined) {
      await jobs.remove(name);
    }
    await jobs.start(searchJob(plan));
  }

  async nextEnded(): Promise<readonly EndedShard[]> {
    const { store, signal } = this.#options;
    for (let poll = 0; ; poll += 1) {
      const stored = await store.list(this.#keys.results);
      const ids = stored.filter((id) => this.#open.has(id)).slice(0, AT_ONCE);
      if (ids.length > 0) {
        for (const id of ids) this.#open.delete(id);
        return Promise.all(ids.map((id) => this.#read(id)));
      }
      if (poll % POLLS_OF_A_STATUS === POLLS_OF_A_STATUS - 1) await this.#refuseFailed();
      await sleep(POLL_MS, undefined, { signal });
    }
  }

  async close(isComplete: boolean): Promise<void> {
    const { definition, digest, store } = this.#options;
    // The signal of the command may be aborted already.
    const jobs = connectSearchJobs(definition, { name: '', signal: new AbortController().signal });
    try {
      for (const name of this.#jobs) await jobs.remove(name);
      if (isComplete) await store.remove(digest);
    } finally {
      await Promise.all([jobs.close(), this.#options.jobs.close()]);
    }
  }

  async #read(id: string): Promise<EndedShard> {
    const bytes = await this.#options.store.get(this.#keys.result(id));
    const outcome = JSON.parse(Buffer.from(bytes!).toString()) as StoredOutcome;
    if ('failure' in outcome) return { id, outcome };
    return { id, outcome: { ...outcome, parquet: Buffer.from(outcome.parquet, 'base64') } };
  }

  /** @throws ServiceError `strategy_failed` if a Job can no longer succeed */
  async #refuseFailed(): Promise<void> {
    const { jobs, definition } = this.#options;
    for (const name of this.#jobs) {
      const status = await jobs.status(name);
      const why =
        status === undefined
          ? 'it was deleted'
          : (status.failure ??
            (status.failedIndexes && `the pods of the indexes ${status.failedIndexes} failed`));
      if (why === undefined) continue;
      throw new ServiceError('strategy_failed', `the Job ${name} failed: ${why}`, {
        remedy: `Read the log with \`kubectl --namespace ${definition.namespace} logs job/${name}\`, and run the same command again to resume.`,
      });
    }
  }
}

async function inGroups<T>(
  items: readonly T[],
  work: (item: T) => Promise<unknown>,
): Promise<void> {
  for (let first = 0; first < items.length; first += AT_ONCE) {
    await Promise.all(items.slice(first, first + AT_ONCE).map(work));
  }
}
