import { setTimeout as sleep } from 'node:timers/promises';
import type { EndedShard, ShardService } from '../backtest/shards/remote-trials.ts';
import type { EncodedInput } from '../backtest/shards/search-input.ts';
import type { Shard } from '../backtest/shards/shard.ts';
import {
  FAILURE_SUFFIX,
  storedKeys,
  type StoredFailure,
  type StoredManifest,
  type StoredResults,
} from '../backtest/shards/stored-search.ts';
import { closest } from '../base/closest.ts';
import { DAY } from '../base/durations.ts';
import { ServiceError } from '../base/errors.ts';
import { packageVersion } from '../base/package-version.ts';
import { readClusters, type ClusterDefinition } from '../deploy/kubernetes/clusters-file.ts';
import { openObjectStore, type ObjectStore } from '../deploy/searches/object-store.ts';
import { jobName, manifestKey, type SearchJobPlan } from '../deploy/searches/search-job.ts';
import {
  connectSearchJobs,
  requireSearches,
  type SearchJobs,
} from '../deploy/searches/search-jobs.ts';
import { persist } from './persist.ts';
import type { Context } from './verb.ts';

/** Objects that are read or written at once. */
const AT_ONCE = 16;
const POLL_MS = 1000;
/** Polls between two questions to the cluster. */
const POLLS_OF_A_STATUS = 5;
/** Shortest time between two warnings. */
const WARN_EVERY_MS = 60_000;
const MARK_EVERY_MS = 60 * 60_000;
/** A search that no command has used for this long is deleted. */
const KEPT_MS = 7 * DAY;
/** Folder of the store with an object for each search. The command of the search rewrites it while it runs. */
const USED = 'used';
const DIGEST = /^[0-9a-f]{64}$/;

/**
 * Prepares Jobs for the shards of a search on a cluster of the clusters file. Jobs that a killed run of
 * the same command left are deleted; their results stay.
 *
 * @param digest identifies the command, so that an interrupted one finds its results again
 * @throws ServiceError `conflict` for an unknown cluster or one without a store
 */
export async function openClusterShards(
  context: Context,
  name: string,
  digest: string,
): Promise<ShardService> {
  const { settings, signal } = context;
  const definition = requireSearches(findCluster(settings.clusters_file, name), name);
  const { store: place, endpoint, region } = definition.searches;
  const store = persistent(context, await openObjectStore(place, { endpoint, region }));
  const jobs = connectSearchJobs(definition, { name, signal });
  for (const job of await jobs.list(digest)) await jobs.remove(job);
  await deleteUnused(store);
  const shards = new ClusterShards({ context, name, store, jobs, definition, digest });
  await shards.markUsed();
  return shards;
}

/** @throws ServiceError `conflict`, reason `unknown_cluster`; as `readClusters` */
function findCluster(file: string, name: string): ClusterDefinition {
  const clusters = readClusters(file);
  if (Object.hasOwn(clusters, name)) return clusters[name]!;
  const names = Object.keys(clusters);
  const suggestion = closest(name, names);
  throw new ServiceError('conflict', `the clusters file ${file} names no cluster '${name}'`, {
    reason: 'unknown_cluster',
    remedy: suggestion
      ? `Did you mean --on cluster:${suggestion}?`
      : `${names.length > 0 ? `Name one of ${names.join(', ')}, or describe` : 'Describe'} the cluster in that file on this machine; docs/how-to/large-searches.md has an example.`,
  });
}

/** The same store, with requests that are repeated for up to ten minutes while it does not answer. */
function persistent(context: Context, store: ObjectStore): ObjectStore {
  const keep = <T>(request: () => Promise<T>): Promise<T> => persist(context, 'the store', request);
  return {
    put: (key, bytes) => keep(() => store.put(key, bytes)),
    get: (key) => keep(() => store.get(key)),
    list: (folder) => keep(() => store.list(folder)),
    listUnchanged: (folder, since) => keep(() => store.listUnchanged(folder, since)),
    // Removal also runs after Ctrl-C, when the command must not wait.
    remove: (key) => store.remove(key),
  };
}

/** Deletes searches whose commands were not started again. */
async function deleteUnused(store: ObjectStore): Promise<void> {
  const unused = await store.listUnchanged(USED, Date.now() - KEPT_MS);
  for (const digest of unused.filter((name) => DIGEST.test(name))) {
    await store.remove(digest);
    await store.remove(`${USED}/${digest}`);
  }
}

interface ClusterShardsOptions {
  readonly context: Context;
  /** Name of the cluster. */
  readonly name: string;
  readonly store: ObjectStore;
  readonly jobs: SearchJobs;
  readonly definition: SearchJobPlan['definition'];
  readonly digest: string;
}

class ClusterShards implements ShardService {
  readonly mostOpen = Infinity;
  readonly #options: ClusterShardsOptions;
  readonly #keys: ReturnType<typeof storedKeys>;
  /** Shards that have not ended, by id, with their Job if they need one. */
  readonly #open = new Map<string, string | undefined>();
  /** Jobs that have not ended. */
  readonly #jobs = new Set<string>();
  #markedAt = -Infinity;
  #warning: { readonly text: string; readonly at: number } | undefined;

  constructor(options: ClusterShardsOptions) {
    this.#options = options;
    this.#keys = storedKeys(options.digest);
  }

  /** Protects the search from `deleteUnused`. */
  async markUsed(): Promise<void> {
    if (performance.now() - this.#markedAt < MARK_EVERY_MS) return;
    const { store, digest } = this.#options;
    await store.put(`${USED}/${digest}`, new Uint8Array());
    this.#markedAt = performance.now();
  }

  async putInput({ digest, bytes }: EncodedInput): Promise<void> {
    const { store } = this.#options;
    const stored = await store.list(this.#keys.inputs);
    if (!stored.includes(digest)) await store.put(this.#keys.input(digest), bytes);
  }

  async submit(shards: readonly Shard[]): Promise<void> {
    const { store, jobs, definition, digest } = this.#options;
    const stored = new Set(await store.list(this.#keys.results));
    const failed = shards.filter(({ id }) => stored.has(`${id}${FAILURE_SUFFIX}`));
    await inGroups(failed, ({ id }) => store.remove(this.#keys.failure(id)));
    for (const { id } of shards) this.#open.set(id, undefined);
    const missing = shards.filter(({ id }) => !stored.has(id));
    if (missing.length === 0) return;
    await inGroups(missing, (shard) =>
      store.put(this.#keys.shard(shard.id), Buffer.from(JSON.stringify(shard))),
    );
    const ids = missing.map(({ id }) => id);
    const plan = { digest, shards: ids, definition };
    const manifest: StoredManifest = { search: digest, package: packageVersion(), shards: ids };
    await store.put(manifestKey(plan), Buffer.from(JSON.stringify(manifest)));
    const name = jobName(plan);
    for (const id of ids) this.#open.set(id, name);
    this.#jobs.add(name);
    await this.#persist(() => jobs.start(plan));
  }

  async nextEnded(): Promise<readonly EndedShard[]> {
    const { signal } = this.#options.context;
    for (let poll = 1; ; poll += 1) {
      const ended = (await this.#listEnded()).slice(0, AT_ONCE);
      if (ended.length > 0) {
        const read = await Promise.all(ended.map((name) => this.#read(name)));
        for (const { id } of read) this.#open.delete(id);
        await this.#removeEndedJobs();
        return read;
      }
      if (poll % POLLS_OF_A_STATUS === 0) await this.#checkJobs();
      await this.markUsed();
      await sleep(POLL_MS, undefined, { signal });
    }
  }

  async close(isComplete: boolean): Promise<void> {
    const { name, definition, digest, store } = this.#options;
    // The signal of the command may be aborted already.
    const jobs = connectSearchJobs(definition, { name, signal: new AbortController().signal });
    try {
      for (const job of this.#jobs) await jobs.remove(job);
      // A pod that has not ended yet may store results again, which `deleteUnused` then finds.
      if (isComplete) await store.remove(digest);
    } finally {
      await Promise.all([jobs.close(), this.#options.jobs.close()]);
    }
  }

  #persist<T>(request: () => Promise<T>): Promise<T> {
    return persist(this.#options.context, 'the cluster', request);
  }

  /** Names of the stored outcomes of open shards. */
  async #listEnded(): Promise<string[]> {
    const names = await this.#options.store.list(this.#keys.results);
    return names.filter((name) => this.#open.has(idOf(name)));
  }

  async #read(name: string): Promise<EndedShard> {
    const id = idOf(name);
    const bytes = await this.#options.store.get(`${this.#keys.results}/${name}`);
    const outcome = JSON.parse(Buffer.from(bytes!).toString()) as StoredResults | StoredFailure;
    if ('failure' in outcome) return { id, outcome };
    return { id, outcome: { ...outcome, parquet: Buffer.from(outcome.parquet, 'base64') } };
  }

  async #removeEndedJobs(): Promise<void> {
    const needed = new Set(this.#open.values());
    for (const name of this.#jobs) {
      if (needed.has(name)) continue;
      await this.#persist(() => this.#options.jobs.remove(name));
      this.#jobs.delete(name);
    }
  }

  /** @throws ServiceError `strategy_failed` if a Job can no longer succeed */
  async #checkJobs(): Promise<void> {
    const { jobs, definition } = this.#options;
    for (const name of this.#jobs) {
      const status = await this.#persist(() => jobs.status(name));
      if (status === undefined) throw deletedJob(name);
      const { failure, failedIndexes, isComplete } = status;
      const why = failure ?? (failedIndexes && `the pods of the indexes ${failedIndexes} failed`);
      if (why !== undefined) {
        throw new ServiceError('strategy_failed', `the Job ${name} failed: ${why}`, {
          remedy: `Read the log with \`kubectl --namespace ${definition.namespace} logs job/${name}\`, and run the same command again to resume.`,
        });
      }
      // Pods store their results before they end.
      if (isComplete && (await this.#listEnded()).length === 0) throw this.#missingResults(name);
      if (!isComplete) await this.#warnOfFaults(name);
    }
  }

  #missingResults(name: string): ServiceError {
    const { searches } = this.#options.definition;
    const text = `the Job ${name} is complete, but its results are missing in ${searches.store}`;
    return new ServiceError('conflict', text, {
      reason: 'no_results',
      remedy:
        searches.claim === undefined
          ? 'Check `endpoint` of the cluster in clusters_file: pods must reach the same bucket.'
          : `Mount the volume of the claim ${searches.claim} at this directory.`,
    });
  }

  async #warnOfFaults(name: string): Promise<void> {
    const { context, jobs } = this.#options;
    if (performance.now() - (this.#warning?.at ?? -Infinity) < WARN_EVERY_MS) return;
    const faults = await jobs.faults(name).catch((error: unknown) => {
      if (error instanceof ServiceError) return [error.message];
      throw error;
    });
    const text = faults.join('; ');
    if (text === '' || text === this.#warning?.text) return;
    context.message(`warning: pods of the Job ${name} wait: ${text}`);
    this.#warning = { text, at: performance.now() };
  }
}

function deletedJob(name: string): ServiceError {
  return new ServiceError('strategy_failed', `the Job ${name} failed: it was deleted`, {
    remedy:
      'Run the same command again to resume. Run it only once at a time, since it deletes the Jobs of another run.',
  });
}

/** Id of the shard of a stored outcome. */
function idOf(name: string): string {
  return name.endsWith(FAILURE_SUFFIX) ? name.slice(0, -FAILURE_SUFFIX.length) : name;
}

async function inGroups<T>(
  items: readonly T[],
  work: (item: T) => Promise<unknown>,
): Promise<void> {
  for (let first = 0; first < items.length; first += AT_ONCE) {
    await Promise.all(items.slice(first, first + AT_ONCE).map(work));
  }
}
