/**
 * Simulates the Deployment controller and one node. Pods are created and deleted as in a cluster.
 * They take the state that a test sets, or run a function of the test.
 */
import { createHash } from 'node:crypto';
import { stable, type Json } from './fields.ts';
import type { Store, Stored } from './store.ts';

export interface RunningPod {
  readonly name: string;
  readonly object: Stored;
  /** Contents of mounted ConfigMaps and Secrets, by directory, then by file. */
  readonly files: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** Aborted instead of SIGTERM. */
  readonly signal: AbortSignal;
  readonly ready: (isReady: boolean) => void;
}

/** Runs the container of a pod; resolves with its exit code. */
export type RunPod = (pod: RunningPod) => Promise<number>;

export type PodState =
  | 'pending'
  | 'running'
  | 'ready'
  | 'image_pull'
  | 'crash_loop'
  | 'out_of_memory'
  | 'unschedulable'
  | 'config_error';

export interface Kubelet {
  /** State of new pods after their volumes are mounted; `ready` by default. */
  startsAs: PodState | RunPod;
  /** Whether deleted pods keep running until `finish`. */
  lingers: boolean;
  /** Maximum number of pods per namespace; undefined for no maximum. */
  quota: number | undefined;
  /** Sets the state of every pod that is not stopping. */
  readonly set: (state: PodState) => void;
  /** Removes deleted pods that still run. */
  readonly finish: () => void;
  /** Marks all rollouts as having exceeded their deadline. */
  readonly exceedDeadline: () => void;
  /** Highest number of simultaneous pods of a Deployment. */
  readonly mostPods: (deployment: string) => number;
  readonly close: () => Promise<void>;
}

const NODE = 'node-1';

export function startKubelet(store: Store): Kubelet {
  const most = new Map<string, number>();
  const running = new Map<string, { abort: AbortController; ended: Promise<unknown> }>();
  /** Started pods by uid. */
  const begun = new Set<string>();
  let isDue = false;
  let isClosed = false;
  let isLate = false;

  const podsOf = (deployment: Stored): readonly Stored[] =>
    store
      .all('Pod', deployment.metadata.namespace)
      .filter((pod) =>
        pod.metadata.ownerReferences?.some(({ uid }) => uid === deployment.metadata.uid),
      );

  const makePod = (deployment: Stored, hash: string): void => {
    const { metadata, spec } = (deployment.spec as { template: Stored }).template;
    const { name, namespace, uid } = deployment.metadata;
    const suffix = Math.random().toString(36).slice(2, 7).padEnd(5, '0');
    store.put({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        ...metadata,
        name: `${name}-${hash}-${suffix}`,
        namespace: namespace!,
        labels: { ...metadata.labels, 'pod-template-hash': hash },
        ownerReferences: [{ apiVersion: 'apps/v1', kind: 'Deployment', name, uid: uid! }],
      },
      spec: { ...spec, nodeName: NODE },
      status: { phase: 'Pending' },
    });
    most.set(name, Math.max(most.get(name) ?? 0, podsOf(deployment).length));
  };

  const endPod = (pod: Stored): void => {
    if (pod.metadata.deletionTimestamp !== undefined) return;
    const deletionTimestamp = new Date().toISOString();
    store.put({ ...pod, metadata: { ...pod.metadata, deletionTimestamp } });
  };

  const reconcile = (deployment: Stored): void => {
    const { replicas = 1, template } = deployment.spec as { replicas?: number; template: object };
    const hash = createHash('sha256').update(stable(template)).digest('hex').slice(0, 10);
    const isNew = (pod: Stored): boolean => pod.metadata.labels?.['pod-template-hash'] === hash;
    for (const old of podsOf(deployment).filter((pod) => !isNew(pod))) endPod(old);
    const lives = podsOf(deployment).filter(
      (pod) => isNew(pod) && pod.metadata.deletionTimestamp === undefined,
    );
    for (const surplus of lives.slice(replicas)) endPod(surplus);
    // The strategy `Recreate` removes all old pods before it creates new ones.
    const waits = podsOf(deployment).some((pod) => !isNew(pod));
    const isFull = store.all('Pod').length >= (kubelet.quota ?? Infinity);
    if (!waits && lives.length < replicas && !isFull) makePod(deployment, hash);
    tellStatus(store.find('Deployment', deployment.metadata.namespace!, deployment.metadata.name)!);
  };

  const tellStatus = (deployment: Stored): void => {
    const pods = podsOf(deployment).filter((pod) => pod.metadata.deletionTimestamp === undefined);
    const ready = pods.filter(isReady).length;
    const { replicas = 1 } = deployment.spec as { replicas?: number };
    const before = (deployment.status?.['conditions'] ?? []) as Json[];
    const wasDone = before.some(({ reason }) => reason === 'NewReplicaSetAvailable');
    const isSame = deployment.status?.['observedGeneration'] === deployment.metadata.generation;
    const isDone = ready >= replicas || (wasDone && isSame);
    const isShort = pods.length < replicas && kubelet.quota !== undefined;
    const condition = (type: string, isTrue: boolean, reason: string, message: string): Json => ({
      type,
      status: isTrue ? 'True' : 'False',
      reason,
      message,
    });
    const conditions = [
      condition('Available', ready >= replicas, 'MinimumReplicas', 'Deployment has its replicas.'),
      isLate && !isDone
        ? condition('Progressing', false, 'ProgressDeadlineExceeded', 'It has timed out.')
        : condition(
            'Progressing',
            true,
            isDone ? 'NewReplicaSetAvailable' : 'ReplicaSetUpdated',
            'ReplicaSet is progressing.',
          ),
      ...(isShort
        ? [
            condition(
              'ReplicaFailure',
              true,
              'FailedCreate',
              'pods "x" is forbidden: exceeded quota: pods, requested: pods=1, limited: pods=0',
            ),
          ]
        : []),
    ];
    store.put({
      ...deployment,
      status: {
        observedGeneration: deployment.metadata.generation,
        replicas: pods.length,
        updatedReplicas: pods.length,
        readyReplicas: ready,
        availableReplicas: ready,
        conditions,
      },
    });
  };

  const setPod = (pod: Stored, state: PodState): void => {
    store.put({ ...pod, status: statusOf(pod, state) });
  };

  /** Returns why a volume of a pod cannot be mounted. */
  const mountFault = ({ metadata, spec }: Stored): string | undefined => {
    const { volumes = [] } = spec as { volumes?: Volume[] };
    for (const { name, secret, configMap } of volumes) {
      const isThere = (kind: string, wanted: string | undefined): boolean =>
        wanted === undefined || store.find(kind, metadata.namespace!, wanted) !== undefined;
      const fault = (kind: string, wanted: string): string =>
        `MountVolume.SetUp failed for volume "${name}" : ${kind} "${wanted}" not found`;
      if (!isThere('Secret', secret?.secretName)) return fault('secret', secret!.secretName);
      if (!isThere('ConfigMap', configMap?.name)) return fault('configmap', configMap!.name);
    }
    return undefined;
  };

  const begin = (pod: Stored): void => {
    const { uid, namespace, name } = pod.metadata;
    if (begun.has(uid!) || pod.metadata.deletionTimestamp !== undefined) return;
    const fault = mountFault(pod);
    if (fault !== undefined) {
      setPod(pod, 'pending');
      store.put({
        apiVersion: 'v1',
        kind: 'Event',
        metadata: { name: `${name}.mount`, namespace: namespace! },
        involvedObject: { kind: 'Pod', namespace, name, uid },
        type: 'Warning',
        reason: 'FailedMount',
        message: fault,
      });
      return;
    }
    begun.add(uid!);
    if (typeof kubelet.startsAs === 'string') setPod(pod, kubelet.startsAs);
    else runPod(pod, kubelet.startsAs);
  };

  const runPod = (pod: Stored, run: RunPod): void => {
    const { uid, namespace, name } = pod.metadata;
    const abort = new AbortController();
    const current = (): Stored | undefined => store.find('Pod', namespace!, name);
    const go = async (): Promise<void> => {
      for (let restarts = 0; !abort.signal.aborted; restarts++) {
        const tell = (state: PodState): void => {
          const now = current();
          if (now !== undefined) store.put({ ...now, status: statusOf(now, state, 0, restarts) });
        };
        tell('running');
        const code = await run({
          name,
          object: pod,
          files: filesOf(store, pod),
          signal: abort.signal,
          ready(isNowReady) {
            tell(isNowReady ? 'ready' : 'running');
          },
        });
        const now = current();
        if (now === undefined || abort.signal.aborted) return;
        store.put({ ...now, status: statusOf(now, 'crash_loop', code, restarts + 1) });
        await new Promise((resolve) => setTimeout(resolve, 20 * (restarts + 1)).unref());
      }
    };
    running.set(uid!, { abort, ended: go() });
  };

  /** Stops a deleted pod, then removes it. */
  const end = (pod: Stored): void => {
    const { uid } = pod.metadata;
    const run = running.get(uid!);
    if (run === undefined) {
      if (!kubelet.lingers) store.remove(pod);
      return;
    }
    if (run.abort.signal.aborted) return;
    run.abort.abort();
    void run.ended.finally(() => {
      running.delete(uid!);
      const now = store.find('Pod', pod.metadata.namespace!, pod.metadata.name);
      if (now !== undefined && !kubelet.lingers) store.remove(now);
    });
  };

  const settle = (): void => {
    isDue = false;
    if (isClosed) return;
    for (const deployment of store.all('Deployment')) reconcile(deployment);
    for (const pod of store.all('Pod')) {
      const owners = pod.metadata.ownerReferences ?? [];
      const isOrphan =
        owners.length > 0 &&
        !store
          .all('Deployment')
          .some(({ metadata }) => owners.some(({ uid }) => uid === metadata.uid));
      if (isOrphan) endPod(pod);
    }
    for (const pod of store.all('Pod')) {
      if (pod.metadata.deletionTimestamp === undefined) begin(pod);
      else end(pod);
    }
  };
  const listener = (): void => {
    if (isDue || isClosed) return;
    isDue = true;
    setImmediate(settle);
  };
  store.listeners.add(listener);

  const kubelet: Kubelet = {
    startsAs: 'ready',
    lingers: false,
    quota: undefined,
    set(state) {
      for (const pod of store.all('Pod')) {
        if (pod.metadata.deletionTimestamp === undefined) setPod(pod, state);
      }
    },
    finish() {
      for (const pod of store.all('Pod')) {
        if (pod.metadata.deletionTimestamp !== undefined) store.remove(pod);
      }
    },
    exceedDeadline() {
      isLate = true;
      listener();
    },
    mostPods: (deployment) => most.get(deployment) ?? 0,
    async close() {
      isClosed = true;
      for (const { abort } of running.values()) abort.abort();
      await Promise.allSettled([...running.values()].map(({ ended }) => ended));
    },
  };
  return kubelet;
}

interface Volume {
  readonly name: string;
  readonly secret?: { readonly secretName: string };
  readonly configMap?: { readonly name: string };
}

function filesOf(store: Store, { metadata, spec }: Stored): RunningPod['files'] {
  const { volumes = [], containers } = spec as {
    volumes?: Volume[];
    containers: { volumeMounts?: { name: string; mountPath: string }[] }[];
  };
  const mounts = containers.flatMap(({ volumeMounts = [] }) => volumeMounts);
  const found = mounts.flatMap(({ name, mountPath }) => {
    const { secret, configMap } = volumes.find((volume) => volume.name === name)!;
    const source = secret
      ? store.find('Secret', metadata.namespace!, secret.secretName)
      : configMap && store.find('ConfigMap', metadata.namespace!, configMap.name);
    if (source === undefined) return [];
    const texts = Object.entries((source['data'] ?? {}) as Record<string, string>).map(
      ([file, text]) => [file, secret ? Buffer.from(text, 'base64').toString() : text] as const,
    );
    return [[mountPath, Object.fromEntries(texts)] as const];
  });
  return Object.fromEntries(found);
}

function isReady({ status }: Stored): boolean {
  const conditions = (status?.['conditions'] ?? []) as Json[];
  return conditions.some(({ type, status: value }) => type === 'Ready' && value === 'True');
}

function statusOf(pod: Stored, state: PodState, exitCode = 1, restartCount = 0): Json {
  const { containers } = pod.spec as { containers: { name: string; image: string }[] };
  const terminated = { exitCode, reason: exitCode === 0 ? 'Completed' : 'Error' };
  const restarted = Math.max(1, restartCount);
  const killed = { exitCode: 137, reason: 'OOMKilled' };
  const backOff = { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 5m0s restarting' } };
  const details: Readonly<Record<PodState, Json>> = {
    pending: { state: { waiting: { reason: 'ContainerCreating' } } },
    running: { state: { running: {} } },
    ready: { ready: true, state: { running: {} } },
    image_pull: {
      state: {
        waiting: {
          reason: 'ImagePullBackOff',
          message: `Back-off pulling image "${containers[0]!.image}"`,
        },
      },
    },
    crash_loop: { restartCount: restarted, state: backOff, lastState: { terminated } },
    out_of_memory: { restartCount: restarted, state: backOff, lastState: { terminated: killed } },
    unschedulable: {},
    config_error: {
      state: {
        waiting: { reason: 'CreateContainerConfigError', message: 'secret "keys" not found' },
      },
    },
  };
  const isPlaced = state !== 'unschedulable';
  const placed = isPlaced
    ? { type: 'PodScheduled', status: 'True' }
    : {
        type: 'PodScheduled',
        status: 'False',
        reason: 'Unschedulable',
        message: '0/1 nodes are available: 1 Insufficient memory.',
      };
  return {
    phase:
      state === 'ready' || state === 'running' || state === 'crash_loop' ? 'Running' : 'Pending',
    conditions: [placed, { type: 'Ready', status: state === 'ready' ? 'True' : 'False' }],
    ...(isPlaced
      ? {
          containerStatuses: containers.map(({ name, image }) => ({
            name,
            image,
            imageID: '',
            ready: false,
            restartCount,
            ...details[state],
          })),
        }
      : {}),
  };
}
