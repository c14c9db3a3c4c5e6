import { ServiceError } from '../../src/errors.ts';
import type { Cluster, ClusterState } from '../../src/kubernetes/cluster.ts';
import type { DeployPlan, KubernetesObject } from '../../src/kubernetes/manifests.ts';

/** A cluster in memory: what is applied is there, with a pod where there is to be one. */
export interface FakeCluster extends Cluster {
  /** By `Kind/name`. */
  readonly objects: ReadonlyMap<string, KubernetesObject>;
  /** What was asked of it, in order: `apply Secret/…`, `scale 0` and so on. */
  readonly asked: readonly string[];
  /** Has it answer nothing, or everything with an error; undefined for well again. */
  fail: ServiceError | undefined;
  /** Whether a pod outlives that it is to end. */
  isStuck: boolean;
  /** What it tells from now on. */
  readonly show: (change: Partial<ClusterState>) => void;
  /** The token of the runner, as a pod gets to see it. */
  readonly token: () => string;
  /** Without anybody's asking. */
  readonly lose: () => void;
}

const POD = { ready: false, restarts: 0, reason: null, message: null };
const MISSING = { phase: 'missing', message: null, reason: null, version: null, pods: [] } as const;

export function newFakeCluster(): FakeCluster {
  const objects = new Map<string, KubernetesObject>();
  const asked: string[] = [];
  const watchers = new Set<(state: ClusterState) => void>();
  let state: ClusterState = { ...MISSING, observed_at: 0 };
  const answer = (): void => {
    if (cluster.fail !== undefined) throw cluster.fail;
  };
  const show: FakeCluster['show'] = (change) => {
    state = { ...state, ...change };
    for (const tell of watchers) tell(state);
  };
  const setPods = (version: number | null, count: number): void => {
    const pods = count === 0 ? [] : [{ name: 'pod-1', phase: 'Running', ...POD }];
    const isDown = version !== null && count === 0;
    show({
      phase: isDown ? 'scaled_down' : version === null ? 'missing' : 'progressing',
      version,
      pods,
    });
  };
  const cluster: FakeCluster = {
    objects,
    asked,
    fail: undefined,
    isStuck: false,
    show,
    token() {
      const secret = [...objects.values()].find(({ kind }) => kind === 'Secret')!;
      const { token } = secret['data'] as { readonly token: string };
      return Buffer.from(token, 'base64').toString();
    },
    lose() {
      objects.clear();
      setPods(null, 0);
    },
    async apply(given) {
      for (const object of given) {
        answer();
        const { kind, metadata } = object;
        const name = `${kind}/${metadata.name}`;
        asked.push(`apply ${name}`);
        objects.set(name, object);
        if (kind !== 'Deployment' || state.pods.length > 0) continue;
        setPods(Number(metadata.labels!['service-local.dev/version']), 1);
      }
    },
    async diff(given) {
      answer();
      return given.map(({ kind, metadata: { name } }) => {
        const isThere = objects.has(`${kind}/${name}`);
        return { kind, name, change: isThere ? 'none' : 'create', lines: [] };
      });
    },
    async scale(plan: DeployPlan, replicas) {
      answer();
      asked.push(`scale ${replicas}`);
      if (!cluster.isStuck) setPods(state.version, replicas);
    },
    async remove() {
      answer();
      asked.push('remove');
      for (const name of objects.keys()) {
        if (!name.startsWith('PersistentVolumeClaim')) objects.delete(name);
      }
      setPods(null, 0);
    },
    async state() {
      answer();
      return state;
    },
    async watch(_plan, onState, signal) {
      if (signal.aborted) return;
      watchers.add(onState);
      onState(state);
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      watchers.delete(onState);
    },
    async close() {},
  };
  return cluster;
}
