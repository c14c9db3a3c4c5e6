import type { DeployPlan, KubernetesObject } from './manifests.ts';

/** Why a deployment is not as it should be; stable, for programs. */
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
  /** `Pending`, `Running`, `Succeeded`, `Failed`, `Unknown`; `Terminating` while it is deleted. */
  readonly phase: string;
  readonly ready: boolean;
  /** Of its containers. */
  readonly restarts: number;
  readonly reason: ClusterReason | null;
  readonly message: string | null;
}

/**
 * What a cluster has of a deployment. With the reason `unreachable`, everything but the message is
 * what was last seen, so that no pod listed does not mean that there is none.
 */
export interface ClusterState {
  readonly phase: 'missing' | 'progressing' | 'ready' | 'degraded' | 'scaled_down';
  /** For people. */
  readonly message: string | null;
  readonly reason: ClusterReason | null;
  /** Of the bot, as the cluster's Deployment has it. */
  readonly version: number | null;
  /**
   * All that have not ended, those of other versions included. There is none and comes none when the
   * phase is `scaled_down`; that there is none now does not say that.
   */
  readonly pods: readonly ClusterPod[];
  /** When the cluster told: ms since the epoch. */
  readonly observed_at: number;
}

export interface ObjectDiff {
  readonly kind: string;
  readonly name: string;
  readonly change: 'create' | 'change' | 'none';
  /** `+ path: value`, `- path: value`, in order of path; of Secrets without the values. */
  readonly lines: readonly string[];
}

/**
 * A cluster as one deployment needs it. Every method but `watch` throws ServiceError
 * `cluster_unavailable` when the API server gives no usable answer after several attempts, and
 * `conflict` for what it refuses, the reason one of `field_conflict`, `namespace_missing`,
 * `namespace_terminating`, `quota`, `cluster_forbidden`, `cluster_credentials`, `cluster_refused`.
 */
export interface Cluster {
  /** Server-side apply, in the order given: doing it again changes nothing. */
  apply(objects: readonly KubernetesObject[]): Promise<void>;
  /** What `apply` would change, as the API server says. */
  diff(objects: readonly KubernetesObject[]): Promise<readonly ObjectDiff[]>;
  /**
   * To no pod, whoever else has set the number, and for good: to apply the manifests again is a
   * `field_conflict` from then on. Nothing happens where there is no Deployment.
   */
  scaleDown(plan: DeployPlan): Promise<void>;
  /** All but the volume claim, which has the log; what is gone already is no error. */
  remove(plan: DeployPlan): Promise<void>;
  /** Read anew: where it matters that there is no pod, ask this and not `watch`, which may be behind. */
  state(plan: DeployPlan): Promise<ClusterState>;
  /**
   * The state at once, then each time it changes; resolves when `signal` is aborted, and never
   * rejects: while the cluster does not answer, the state says since when.
   */
  watch(
    plan: DeployPlan,
    onState: (state: ClusterState) => void,
    signal: AbortSignal,
  ): Promise<void>;
  close(): Promise<void>;
}
