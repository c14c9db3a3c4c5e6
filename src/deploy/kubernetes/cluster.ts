import type { DeployPlan, KubernetesObject } from './manifests.ts';

/** Why a deployment is not healthy. The values are part of the API. */
export type ClusterReason =
  | 'namespace_missing'
  | 'namespace_terminating'
  | 'image_pull'
  | 'crash_loop'
  | 'out_of_memory'
  | 'unschedulable'
  | 'quota'
  | 'missing_secret'
  | 'container_config'
  | 'volume'
  | 'replica_failure'
  | 'deadline_exceeded'
  | 'not_ready'
  | 'unreachable';

export interface ClusterPod {
  readonly name: string;
  /** `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`; `Terminating` during deletion. */
  readonly phase: string;
  readonly ready: boolean;
  /** Total restarts of all containers. */
  readonly restarts: number;
  readonly reason: ClusterReason | null;
  readonly message: string | null;
}

/**
 * State of a deployment in a cluster. If the reason is `unreachable`, everything except the message
 * is as last seen: an empty list of pods then does not mean that no pod exists.
 */
export interface ClusterState {
  readonly phase: 'missing' | 'progressing' | 'ready' | 'degraded' | 'scaled_down';
  readonly message: string | null;
  readonly reason: ClusterReason | null;
  /** Version of the bot on the Deployment in the cluster. */
  readonly version: number | null;
  /**
   * All pods that have not stopped, of any version. Only the phase `scaled_down`
   * guarantees that no pod exists and none will be created; an empty list does not.
   */
  readonly pods: readonly ClusterPod[];
  /** Time of the last response from the cluster, ms since the epoch. */
  readonly observed_at: number;
}

export interface ObjectDiff {
  readonly kind: string;
  readonly name: string;
  readonly change: 'create' | 'change' | 'none';
  /** `+ path: value` or `- path: value`, sorted by path; the values of Secrets are hidden. */
  readonly lines: readonly string[];
}

/**
 * Operations of one deployment on a cluster. Every method except `watch` throws ServiceError:
 * `cluster_unavailable` without a usable response after several attempts, and `conflict` if the API
 * server rejects the request. The reason of a `conflict` is one of `field_conflict`,
 * `namespace_missing`, `namespace_terminating`, `quota`, `cluster_forbidden`, `cluster_credentials`
 * and `cluster_refused`.
 */
export interface Cluster {
  /** Server-side apply in the given order. Idempotent. */
  apply(objects: readonly KubernetesObject[]): Promise<void>;
  /** Returns what `apply` would change, from a dry run of the API server. */
  diff(objects: readonly KubernetesObject[]): Promise<readonly ObjectDiff[]>;
  /**
   * Permanently scales the deployment to zero pods, even if another manager set the number. Applying
   * its manifests afterward fails with `field_conflict`. Does nothing without a Deployment.
   */
  scaleDown(plan: DeployPlan): Promise<void>;
  /** Deletes all objects except the volume claim, which holds the log. Ignores missing objects. */
  remove(plan: DeployPlan): Promise<void>;
  /** Reads the current state. Use this to confirm that no pod exists, as `watch` can lag behind. */
  state(plan: DeployPlan): Promise<ClusterState>;
  /**
   * Reports the state immediately, then after each change. Resolves when `signal` is aborted and
   * never rejects: while the cluster does not respond, the state is `unreachable`.
   */
  watch(
    plan: DeployPlan,
    onState: (state: ClusterState) => void,
    signal: AbortSignal,
  ): Promise<void>;
  close(): Promise<void>;
}
