import { ServiceError } from '../../base/errors.ts';
import { needsEvents, podFault } from '../kubernetes/cluster-state.ts';
import type { ClusterDefinition } from '../kubernetes/clusters-file.ts';
import type { KubernetesObject } from '../kubernetes/manifests.ts';
import { objectRequests, pathOf, rejectionOf, type ObjectRequests } from '../kubernetes/objects.ts';
import { connectRest, USUAL_PACE } from '../kubernetes/rest.ts';
import type { Condition, Pod, PodEvent } from '../kubernetes/wire.ts';
import { searchJob, searchSelector, type SearchJobPlan } from './search-job.ts';
import { JOB_LABEL, searchPolicy } from './search-policy.ts';

/** Status of a Job and of its indexes. */
export interface JobStatus {
  /** Why it has ended without success; undefined while it runs. */
  readonly failure: string | undefined;
  /** Indexes that have failed for good, such as `1,3-5`. */
  readonly failedIndexes: string | undefined;
  /** Whether a pod of each index has ended with success. */
  readonly isComplete: boolean;
}

export interface SearchJobs {
  /** Creates a Job and its network policy after dry runs of the API server; changes nothing if they exist. */
  readonly start: (plan: SearchJobPlan) => Promise<void>;
  /** @returns undefined if the Job is missing */
  readonly status: (name: string) => Promise<JobStatus | undefined>;
  /** Why pods of a Job do not start, each reason once. */
  readonly faults: (name: string) => Promise<readonly string[]>;
  /** Names of the Jobs of a search. */
  readonly list: (digest: string) => Promise<readonly string[]>;
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
  const requests = objectRequests(rest, name);
  const { namespace } = definition;
  return {
    async start(plan) {
      const job = searchJob(plan);
      await requests.applyObject(searchPolicy(plan, undefined), { dryRun: 'All' });
      await requests.applyObject(job, { dryRun: 'All' });
      // The policy comes first, so that no pod of the Job runs without it, whatever happens in between.
      await requests.applyObject(searchPolicy(plan, undefined));
      const { body } = await requests.applyObject(job);
      const { uid } = body['metadata'] as { readonly uid: string };
      await requests.applyObject(searchPolicy(plan, uid));
    },
    async status(job) {
      const answer = await rest.ask({ method: 'GET', path: pathOf('Job', namespace, job) });
      if (answer.status === 404) return undefined;
      if (answer.status >= 300) {
        throw rejectionOf(rest, name, answer, { kind: 'Job', metadata: { namespace, name: job } });
      }
      return statusOf(answer.body['status']);
    },
    faults: (job) => findFaults(requests, namespace, job),
    async list(digest) {
      const query = { labelSelector: searchSelector(digest) };
      const jobs = await requests.listObjects<KubernetesObject>('Job', namespace, query);
      return jobs.map(({ metadata }) => metadata.name);
    },
    remove: (job) => requests.deleteObject('Job', namespace, job),
    close: () => rest.close(),
  };
}

function statusOf(status: unknown): JobStatus {
  const { conditions = [], failedIndexes } = (status ?? {}) as {
    readonly conditions?: readonly Condition[];
    readonly failedIndexes?: string;
  };
  const find = (type: string) =>
    conditions.find((condition) => condition.type === type && condition.status === 'True');
  const failed = find('Failed');
  return {
    failure: failed && `${failed.reason ?? 'Failed'}: ${failed.message ?? ''}`.trim(),
    failedIndexes: failedIndexes || undefined,
    isComplete: find('Complete') !== undefined,
  };
}

async function findFaults(
  { listObjects }: Pick<ObjectRequests, 'listObjects'>,
  namespace: string,
  job: string,
): Promise<readonly string[]> {
  const pods = await listObjects<Pod>('Pod', namespace, {
    labelSelector: `${JOB_LABEL}=${job}`,
    fieldSelector: 'status.phase=Pending',
  });
  const warnings = (kind: string, more: string): Promise<readonly PodEvent[]> =>
    listObjects<PodEvent>('Event', namespace, {
      fieldSelector: `involvedObject.kind=${kind},type=Warning${more}`,
    });
  const ofPods = pods.some(needsEvents) ? await warnings('Pod', '') : [];
  const messages = pods.map((pod) => podFault(pod, ofPods)?.message);
  // Without a pod, the controller says why it cannot create one, for example because of a quota.
  const ofJob = pods.length > 0 ? [] : await warnings('Job', `,involvedObject.name=${job}`);
  const last = ofJob.at(-1)?.message;
  return [...new Set([...messages, last])].filter((message) => message !== undefined);
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
