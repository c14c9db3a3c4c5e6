import { ServiceError } from '../../base/errors.ts';
import type { ClusterDefinition } from '../kubernetes/clusters-file.ts';
import type { KubernetesObject } from '../kubernetes/manifests.ts';
import { objectRequests, pathOf, rejectionOf } from '../kubernetes/objects.ts';
import { connectRest, USUAL_PACE } from '../kubernetes/rest.ts';

/** What a Job reports about its indexes. */
export interface JobStatus {
  /** Why it has ended without success; undefined while it runs. */
  readonly failure: string | undefined;
  /** Indexes that have failed for good, such as `1,3-5`. */
  readonly failedIndexes: string | undefined;
}

export interface SearchJobs {
  /** Creates a Job after a dry run of the API server; does nothing if it exists. */
  readonly start: (job: KubernetesObject) => Promise<void>;
  /** @returns undefined if the Job is missing */
  readonly status: (name: string) => Promise<JobStatus | undefined>;
  /** Deletes a Job and its pods. */
  readonly remove: (name: string) => Promise<void>;
  readonly close: () => Promise<void>;
}

/** @throws as `connectRest` */
export function connectSearchJobs(
  definition: ClusterDefinition,
  { name, signal }: { readonly name: string; readonly signal: AbortSignal },
): SearchJobs {
  const rest = connectRest(definition, { name, signal, pace: USUAL_PACE });
  const { applyObject, deleteObject } = objectRequests(rest, name);
  const { namespace } = definition;
  return {
    async start(job) {
      await applyObject(job, { dryRun: 'All' });
      await applyObject(job);
    },
    async status(job) {
      const answer = await rest.ask({ method: 'GET', path: pathOf('Job', namespace, job) });
      if (answer.status === 404) return undefined;
      if (answer.status >= 300) {
        throw rejectionOf(rest, name, answer, { kind: 'Job', metadata: { namespace, name: job } });
      }
      return statusOf(answer.body['status']);
    },
    remove: (job) => deleteObject('Job', namespace, job),
    close: () => rest.close(),
  };
}

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
}

function statusOf(status: unknown): JobStatus {
  const { conditions = [], failedIndexes } = (status ?? {}) as {
    readonly conditions?: readonly Condition[];
    readonly failedIndexes?: string;
  };
  const failed = conditions.find(({ type, status: is }) => type === 'Failed' && is === 'True');
  return {
    failure: failed && `${failed.reason ?? 'Failed'}: ${failed.message ?? ''}`.trim(),
    failedIndexes: failedIndexes || undefined,
  };
}

/** @throws ServiceError `conflict` for a cluster without `searches` */
export function requireSearches(
  definition: ClusterDefinition,
  name: string,
): ClusterDefinition & { readonly searches: NonNullable<ClusterDefinition['searches']> } {
  const { searches } = definition;
  if (searches !== undefined) return { ...definition, searches };
  throw new ServiceError('conflict', `the cluster ${name} has no store for searches`, {
    reason: 'no_store',
    remedy: `Set ${name}.searches.store in clusters_file to s3://BUCKET/PREFIX or to a directory.`,
  });
}
