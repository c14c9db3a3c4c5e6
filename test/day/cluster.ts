/** A Kubernetes cluster in memory, which starts, restarts and ends the pods of deployments. */
import { ServiceError } from '../../src/base/errors.ts';
import type { Cluster, ClusterState } from '../../src/deploy/kubernetes/cluster.ts';
import type { KubernetesObject } from '../../src/deploy/kubernetes/manifests.ts';
import type { Link, Machine } from './machine.ts';
import type { PodFiles } from './pod.ts';
import { currentProcess, SimulatedProcess } from './process.ts';

/** A process that was started in a pod. */
export interface RunningPod {
  readonly process: SimulatedProcess;
  /** Sends SIGTERM. */
  readonly terminate: () => void;
  /** Resolves when the process exits by itself. */
  readonly exited: Promise<string>;
}

export interface PodStart {
  readonly deployment_id: string;
  readonly name: string;
  readonly files: PodFiles;
  /** Content of the mounted Secret. */
  readonly token: () => string;
  readonly onKill: () => void;
}

interface Workload {
  readonly deployment_id: string;
  version: number;
  files: PodFiles | undefined;
  token: string | undefined;
  replicas: 0 | 1;
  pod: RunningPod | undefined;
  isStarting: boolean;
  isTerminating: boolean;
  /** Pods on disconnected nodes, which still run. */
  readonly lost: Set<RunningPod>;
  restarts: number;
  readonly watchers: Set<() => void>;
}

const LABELS = { deployment: 'service-local.dev/deployment', version: 'service-local.dev/version' };
/** `terminationGracePeriodSeconds` of the manifests. */
const GRACE_MS = 60_000;

export class SimulatedCluster {
  readonly #machine: Machine;
  readonly #start: (start: PodStart) => RunningPod;
  readonly #workloads = new Map<string, Workload>();
  #pods = 0;

  constructor(machine: Machine, start: (start: PodStart) => RunningPod) {
    this.#machine = machine;
    this.#start = start;
  }

  /** Deployments with a running pod. */
  get running(): readonly Workload[] {
    return [...this.#workloads.values()].filter(({ pod }) => pod !== undefined);
  }

  /** Whether any process runs for the deployment. */
  isAlive(deployment_id: string): boolean {
    const { pod, isStarting = false, lost } = this.#workloads.get(deployment_id) ?? {};
    return pod !== undefined || isStarting || (lost?.size ?? 0) > 0;
  }

  /**
   * Disconnects the node of a pod from the cluster: the pod continues, and another one is started.
   * The volume is moved to the other pod.
   */
  loseNode(workload: Workload): RunningPod | undefined {
    const { pod } = workload;
    if (pod === undefined) return undefined;
    workload.lost.add(pod);
    workload.pod = undefined;
    this.#restartLater(workload);
    return pod;
  }

  /** Ends a pod that `loseNode` has left running. */
  removeLost(pod: RunningPod): void {
    for (const workload of this.#workloads.values()) workload.lost.delete(pod);
    pod.process.kill();
  }

  /** The cluster as a worker reaches it. */
  connect(link: Link): Cluster {
    const ask = <T>(work: () => T): Promise<T> => this.#machine.send(link, work);
    return {
      apply: async (objects) => {
        for (const object of objects) await ask(() => this.#apply(object));
      },
      diff: async () => [],
      scaleDown: ({ deployment_id }) => ask(() => this.#scaleDown(deployment_id)),
      remove: ({ deployment_id }) => ask(() => this.#scaleDown(deployment_id)),
      state: ({ deployment_id }) => ask(() => this.#stateOf(deployment_id)),
      watch: async ({ deployment_id }, onState, signal) => {
        const watcher = currentProcess();
        const { watchers } = this.#workload(deployment_id);
        const report = (): void => {
          this.#machine.after(this.#machine.random() * link.latencyMs, () => {
            if (signal.aborted || watcher === undefined || watcher.isOver || link.isCut) return;
            this.#machine.time.live(watcher, () => onState(this.#stateOf(deployment_id)));
          });
        };
        watchers.add(report);
        report();
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        watchers.delete(report);
      },
      close: async () => {},
    };
  }

  #workload(deployment_id: string): Workload {
    let workload = this.#workloads.get(deployment_id);
    if (workload === undefined) {
      workload = {
        deployment_id,
        version: 0,
        files: undefined,
        token: undefined,
        replicas: 0,
        pod: undefined,
        isStarting: false,
        isTerminating: false,
        lost: new Set(),
        restarts: 0,
        watchers: new Set(),
      };
      this.#workloads.set(deployment_id, workload);
    }
    return workload;
  }

  #apply({ kind, metadata, ...fields }: KubernetesObject): void {
    const { labels = {} } = metadata;
    const workload = this.#workload(labels[LABELS.deployment]!);
    if (kind === 'ConfigMap') workload.files = fields['data'] as PodFiles;
    if (kind === 'Secret') {
      const { token } = fields['data'] as { readonly token: string };
      workload.token = Buffer.from(token, 'base64').toString();
    }
    if (kind !== 'Deployment') return;
    workload.version = Number(labels[LABELS.version]);
    workload.replicas = 1;
    if (workload.pod === undefined && !workload.isStarting) this.#startLater(workload, 2000);
    this.#notify(workload);
  }

  #scaleDown(deployment_id: string): void {
    const workload = this.#workload(deployment_id);
    workload.replicas = 0;
    const { pod } = workload;
    if (pod === undefined || workload.isTerminating) return this.#notify(workload);
    workload.isTerminating = true;
    pod.terminate();
    this.#machine.after(GRACE_MS, () => {
      if (workload.pod === pod) pod.process.kill();
    });
    this.#notify(workload);
  }

  #startLater(workload: Workload, withinMs: number): void {
    workload.isStarting = true;
    this.#machine.after(this.#machine.random() * withinMs, () => {
      workload.isStarting = false;
      if (workload.replicas === 0) return this.#notify(workload);
      this.#pods += 1;
      const pod = this.#start({
        deployment_id: workload.deployment_id,
        name: `pod-${this.#pods}`,
        files: workload.files!,
        token: () => workload.token!,
        onKill: () => this.#ended(workload, pod),
      });
      workload.pod = pod;
      void pod.exited.then(() => pod.process.kill());
      this.#notify(workload);
    });
  }

  #ended(workload: Workload, pod: RunningPod): void {
    workload.lost.delete(pod);
    if (workload.pod !== pod) return;
    workload.pod = undefined;
    workload.isTerminating = false;
    if (workload.replicas === 1) this.#restartLater(workload);
    this.#notify(workload);
  }

  #restartLater(workload: Workload): void {
    workload.restarts += 1;
    this.#startLater(workload, Math.min(10_000, 2000 * workload.restarts));
  }

  #notify(workload: Workload): void {
    for (const report of workload.watchers) report();
  }

  #stateOf(deployment_id: string): ClusterState {
    const { replicas, pod, version, restarts, isStarting } = this.#workload(deployment_id);
    const state = { phase: 'Running', ready: true, restarts, reason: null, message: null };
    const isScaledDown = replicas === 0 && pod === undefined && !isStarting;
    return {
      phase: version === 0 ? 'missing' : isScaledDown ? 'scaled_down' : 'progressing',
      message: null,
      reason: null,
      version: version === 0 ? null : version,
      pods: pod === undefined && !isStarting ? [] : [{ name: 'pod', ...state }],
      observed_at: Date.now(),
    };
  }
}

export function clusterUnavailable(): ServiceError {
  return new ServiceError('cluster_unavailable', 'the cluster does not answer');
}
