import { ServiceError } from '../../../src/base/errors.ts';
import type { Cluster, ClusterState } from '../../../src/deploy/kubernetes/cluster.ts';
import type { KubernetesObject } from '../../../src/deploy/kubernetes/manifests.ts';

/** A cluster in memory: applied objects exist at once, with a pod for each workload. */
export interface FakeCluster extends Cluster {
  /** Objects by `Kind/name`. */
  readonly objects: ReadonlyMap<string, KubernetesObject>;
  /** Requests in order: `apply Secret/…`, `scale 0` and so on. */
  readonly asked: readonly string[];
  /** Error with which all requests fail; undefined if they succeed. */
  fail: ServiceError | undefined;
  /** Whether a pod continues although it should end. */
  isStuck: boolean;
  /** Changes the state that the cluster reports from now on. */
  readonly show: (deployment_id: string, change: Partial<ClusterState>) => void;
  /** The token of the runner, as its pod reads it. */
  readonly token: (deployment_id: string) => string;
  /** Removes all objects of a deployment without a request. */
  readonly lose: (deployment_id: string) => void;
}

const POD = { ready: false, restarts: 0, reason: null, message: null };
const MISSING: ClusterState = {
  phase: 'missing',
  message: null,
  reason: null,
  version: null,
  pods: [],
  observed_at: 0,
};
const LABELS = { deployment: 'service-local.dev/deployment', version: 'service-local.dev/version' };

export function newFakeCluster(): FakeCluster {
  const objects = new Map<string, KubernetesObject>();
  const asked: string[] = [];
  const states = new Map<string, ClusterState>();
  const watchers = new Map<string, Set<(state: ClusterState) => void>>();
  const stateOf = (id: string): ClusterState => states.get(id) ?? MISSING;
  const answer = (): void => {
    if (cluster.fail !== undefined) throw cluster.fail;
  };
  const show: FakeCluster['show'] = (id, change) => {
    const state = { ...stateOf(id), ...change };
    states.set(id, state);
    for (const tell of watchers.get(id) ?? []) tell(state);
  };
  const setPods = (id: string, version: number | null, count: number): void => {
    const pods = count === 0 ? [] : [{ name: 'pod-1', phase: 'Running', ...POD }];
    const phase = version === null ? 'missing' : count === 0 ? 'scaled_down' : 'progressing';
    show(id, { phase, version, pods, reason: null, message: null });
  };
  const ofDeployment = (id: string): KubernetesObject[] =>
    [...objects.values()].filter(({ metadata }) => metadata.labels?.[LABELS.deployment] === id);
  const nameOf = ({ kind, metadata }: KubernetesObject): string => `${kind}/${metadata.name}`;
  const cluster: FakeCluster = {
    objects,
    asked,
    fail: undefined,
    isStuck: false,
    show,
    token(id) {
      const secret = ofDeployment(id).find(({ kind }) => kind === 'Secret')!;
      const { token } = secret['data'] as { readonly token: string };
      return Buffer.from(token, 'base64').toString();
    },
    lose(id) {
      for (const object of ofDeployment(id)) objects.delete(nameOf(object));
      setPods(id, null, 0);
    },
    async apply(given) {
      for (const object of given) {
        answer();
        asked.push(`apply ${nameOf(object)}`);
        objects.set(nameOf(object), object);
        const { labels = {} } = object.metadata;
        const id = labels[LABELS.deployment]!;
        if (object.kind !== 'Deployment' || stateOf(id).pods.length > 0) continue;
        setPods(id, Number(labels[LABELS.version]), 1);
      }
    },
    async diff(given) {
      answer();
      return given.map(({ kind, metadata: { name } }) => {
        const isThere = objects.has(`${kind}/${name}`);
        return { kind, name, change: isThere ? 'none' : 'create', lines: [] };
      });
    },
    async scaleDown({ deployment_id: id }) {
      answer();
      asked.push('scale 0');
      const { version } = stateOf(id);
      if (version !== null && !cluster.isStuck) setPods(id, version, 0);
    },
    async remove({ deployment_id: id }) {
      answer();
      asked.push('remove');
      for (const object of ofDeployment(id)) {
        if (object.kind !== 'PersistentVolumeClaim') objects.delete(nameOf(object));
      }
      setPods(id, null, 0);
    },
    async state({ deployment_id: id }) {
      answer();
      return stateOf(id);
    },
    async watch({ deployment_id: id }, onState, signal) {
      if (signal.aborted) return;
      const own = watchers.get(id) ?? new Set();
      watchers.set(id, own.add(onState));
      onState(stateOf(id));
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      own.delete(onState);
    },
    async close() {},
  };
  return cluster;
}
