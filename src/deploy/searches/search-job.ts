import { createHash } from 'node:crypto';
import { DAY } from '../../base/durations.ts';
import type { ClusterDefinition } from '../kubernetes/clusters-file.ts';
import { LABEL_PREFIX, type KubernetesObject } from '../kubernetes/manifests.ts';

/** Shards of a search that one Job runs, one pod each. */
export interface SearchJobPlan {
  /** Identifies the search. */
  readonly digest: string;
  /** Ids of the shards, by the index of their pods. */
  readonly shards: readonly string[];
  readonly definition: ClusterDefinition & { readonly searches: SearchPlace };
}

export type SearchPlace = NonNullable<ClusterDefinition['searches']>;

/** Exit codes of a pod that would fail again, by the conventions of the CLI: invalid input, another version. */
const INVALID = [2, 3, 6];
const VOLUME_DIRECTORY = '/searches';
const USER_ID = 10_001;
const ATTEMPTS_OF_A_SHARD = 3;
/** Shards that fail before the Job ends. */
const MOST_FAILED = 10;
const PARALLELISM = 16;
/** Longest run of a Job, and time until it is deleted after its end. Its results stay in the store. */
const KEPT_SECONDS = (7 * DAY) / 1000;
const DEFAULT_RESOURCES = { cpu: '1', memory: '2Gi' };

/** Name of a Job: the same shards are always the same Job. */
export function jobName({ digest, shards }: Pick<SearchJobPlan, 'digest' | 'shards'>): string {
  const own = createHash('sha256')
    .update(JSON.stringify([digest, shards]))
    .digest('hex');
  return `search-${own.slice(0, 16)}`;
}

const SEARCH_LABEL = `${LABEL_PREFIX}/search`;

/** Label values have at most 63 characters. */
const labelValue = (digest: string): string => digest.slice(0, 40);

/** Selects the Jobs of a search. */
export function searchSelector(digest: string): string {
  return `${SEARCH_LABEL}=${labelValue(digest)}`;
}

/** Key of the manifest of a Job in the store. */
export function manifestKey(plan: Pick<SearchJobPlan, 'digest' | 'shards'>): string {
  return `${plan.digest}/jobs/${jobName(plan)}`;
}

/**
 * An Indexed Job (Kubernetes 1.33 or newer) whose pods each run the shard of their index. The
 * client deletes it once the results are collected. The cluster deletes a Job whose client never returns.
 * The pods meet the Pod Security Standard `restricted`.
 */
export function searchJob(plan: SearchJobPlan): KubernetesObject {
  const { definition, shards, digest } = plan;
  const { searches } = definition;
  const labels = {
    'app.kubernetes.io/name': 'service-local-search',
    'app.kubernetes.io/managed-by': 'service-local',
    [SEARCH_LABEL]: labelValue(digest),
  };
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name: jobName(plan), namespace: definition.namespace, labels },
    spec: {
      completionMode: 'Indexed',
      completions: shards.length,
      parallelism: Math.min(shards.length, searches.parallelism ?? PARALLELISM),
      activeDeadlineSeconds: KEPT_SECONDS,
      ttlSecondsAfterFinished: KEPT_SECONDS,
      backoffLimitPerIndex: ATTEMPTS_OF_A_SHARD,
      maxFailedIndexes: Math.min(shards.length, MOST_FAILED),
      podFailurePolicy: {
        rules: [
          {
            action: 'FailIndex',
            onExitCodes: { containerName: 'shard', operator: 'In', values: INVALID },
          },
          { action: 'Ignore', onPodConditions: [{ type: 'DisruptionTarget', status: 'True' }] },
        ],
      },
      template: { metadata: { labels }, spec: podSpec(plan) },
    },
  };
}

function podSpec(plan: SearchJobPlan): object {
  const { definition } = plan;
  const { searches, image, resources } = definition;
  const { cpu, memory } = resources ?? DEFAULT_RESOURCES;
  const store = searches.claim === undefined ? searches.store : VOLUME_DIRECTORY;
  const volumes = [
    { name: 'tmp', at: '/tmp', source: { emptyDir: {} } },
    ...(searches.claim === undefined
      ? []
      : [
          {
            name: 'searches',
            at: VOLUME_DIRECTORY,
            source: { persistentVolumeClaim: { claimName: searches.claim } },
          },
        ]),
  ];
  return {
    restartPolicy: 'Never',
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    ...(searches.service_account !== undefined && {
      serviceAccountName: searches.service_account,
    }),
    securityContext: {
      runAsNonRoot: true,
      runAsUser: USER_ID,
      runAsGroup: USER_ID,
      fsGroup: USER_ID,
      fsGroupChangePolicy: 'OnRootMismatch',
      seccompProfile: { type: 'RuntimeDefault' },
    },
    containers: [
      {
        name: 'shard',
        image,
        command: ['service-local', 'run', 'shard', store, manifestKey(plan)],
        env: environment(searches),
        ...(searches.secret !== undefined && {
          envFrom: [{ secretRef: { name: searches.secret } }],
        }),
        resources: { requests: { cpu, memory }, limits: { cpu, memory } },
        securityContext: {
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        },
        volumeMounts: volumes.map(({ name, at }) => ({ name, mountPath: at })),
      },
    ],
    volumes: volumes.map(({ name, source }) => ({ name, ...source })),
  };
}

function environment({ endpoint, region }: SearchPlace): object[] {
  return [
    { name: 'HOME', value: '/tmp' },
    ...(endpoint === undefined ? [] : [{ name: 'AWS_ENDPOINT_URL_S3', value: endpoint }]),
    ...(region === undefined ? [] : [{ name: 'AWS_REGION', value: region }]),
  ];
}
