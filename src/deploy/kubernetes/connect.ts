import { ServiceError } from '../../base/errors.ts';
import type { Cluster, ClusterState } from './cluster.ts';
import { needsEvents, stateOf, type ObservedObjects } from './cluster-state.ts';
import type { ClusterDefinition } from './clusters-file.ts';
import { diffOf } from './diff.ts';
import {
  labelSelector,
  resourceName,
  runnerSecretName,
  type DeployPlan,
  type KubernetesObject,
} from './manifests.ts';
import { objectRequests, pathOf, rejectionOf } from './objects.ts';
import { reflect } from './reflect.ts';
import { connectRest, USUAL_PACE, type Pace, type Rest, type RestAnswer } from './rest.ts';
import type { Deployment, Namespace, Pod, PodEvent } from './wire.ts';

/**
 * A separate field manager for scaling to zero. A process that is delayed and applies the manifests
 * afterward gets a conflict instead of starting a pod.
 */
const END_MANAGER = 'service-local-end';

export interface ConnectOptions {
  /** Aborts all requests. */
  readonly signal: AbortSignal;
  /** Name of the cluster in errors. */
  readonly name?: string;
  readonly pace?: Pace;
}

/**
 * Sends no request yet.
 * @throws ServiceError `conflict`, reason `not_installed`, `invalid_kubeconfig` or `not_in_cluster`
 */
export function connectCluster(
  definition: ClusterDefinition,
  { signal, name = definition.context ?? 'of the server', pace = USUAL_PACE }: ConnectOptions,
): Cluster {
  const rest = connectRest(definition, { name, signal, pace });
  const { applyObject, deleteObject, listObjects } = objectRequests(rest, name);

  const read = async (kind: string, plan: DeployPlan): Promise<RestAnswer> => {
    const object = { kind, metadata: { namespace: plan.namespace, name: resourceName(plan) } };
    const path = pathOf(kind, plan.namespace, resourceName(plan));
    const answer = await rest.ask({ method: 'GET', path });
    if (answer.status >= 300 && answer.status !== 404) {
      throw rejectionOf(rest, name, answer, object);
    }
    return answer;
  };

  const readObjects = async (plan: DeployPlan): Promise<ObservedObjects> => {
    const { status, body } = await read('Deployment', plan);
    // Listed after the Deployment: if it can no longer create pods, this list is complete.
    const query = { labelSelector: labelSelector(plan) };
    const pods = await listObjects<Pod>('Pod', plan.namespace, query);
    return { deployment: status === 404 ? undefined : (body as unknown as Deployment), pods };
  };

  /** Adds events or the namespace if they can explain the state; omits what is not readable. */
  const addExplanation = async (
    plan: DeployPlan,
    known: ObservedObjects,
  ): Promise<ObservedObjects> => {
    const { deployment, pods } = known;
    if (deployment === undefined) {
      const path = `/api/v1/namespaces/${plan.namespace}`;
      const { status, body } = await rest.ask({ method: 'GET', path }, 1);
      if (status === 404) return { ...known, namespace: null };
      return status === 200 ? { ...known, namespace: body as unknown as Namespace } : known;
    }
    if (!pods.some(needsEvents)) return known;
    const query = { fieldSelector: 'involvedObject.kind=Pod,type=Warning' };
    const answer = await rest.ask(
      { method: 'GET', path: pathOf('Event', plan.namespace), query },
      1,
    );
    return { ...known, events: (answer.body['items'] ?? []) as readonly PodEvent[] };
  };

  return {
    async apply(objects) {
      for (const object of objects) await applyObject(object);
    },
    async diff(objects) {
      const diffs = [];
      for (const object of objects) {
        const { kind, metadata } = object;
        const path = pathOf(kind, metadata.namespace, metadata.name);
        const live = await rest.ask({ method: 'GET', path });
        if (live.status >= 300 && live.status !== 404) {
          throw rejectionOf(rest, name, live, object);
        }
        const { body } = await applyObject(object, { dryRun: 'All' });
        diffs.push(diffOf(live.status === 404 ? undefined : live.body, body));
      }
      return diffs;
    },
    async scaleDown(plan) {
      const { status } = await read('Deployment', plan);
      if (status === 404) return;
      const end = {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name: resourceName(plan), namespace: plan.namespace },
        spec: { replicas: 0 },
      };
      // `force` overrides the number that another manager has set.
      await applyObject(end, { fieldManager: END_MANAGER, force: 'true' });
    },
    async remove(plan) {
      const own = resourceName(plan);
      const query = { labelSelector: labelSelector(plan) };
      // One ConfigMap per version. Listing Secrets would require permission to read them.
      const files = await listObjects<KubernetesObject>('ConfigMap', plan.namespace, query);
      // The Deployment goes first, because its pods use the other objects.
      await deleteObject('Deployment', plan.namespace, own);
      await deleteObject('Secret', plan.namespace, runnerSecretName(plan));
      for (const { metadata } of files)
        await deleteObject('ConfigMap', plan.namespace, metadata.name);
      await deleteObject('NetworkPolicy', plan.namespace, own);
      await deleteObject('ServiceAccount', plan.namespace, own);
    },
    async state(plan) {
      const known = await readObjects(plan);
      return stateOf(await addExplanation(plan, known).catch(() => known), Date.now());
    },
    watch: (plan, onState, until) =>
      watchState(rest, { plan, onState, addExplanation }, AbortSignal.any([rest.ended, until])),
    close: () => rest.close(),
  };
}

interface Watched {
  readonly plan: DeployPlan;
  readonly onState: (state: ClusterState) => void;
  readonly addExplanation: (plan: DeployPlan, known: ObservedObjects) => Promise<ObservedObjects>;
}

async function watchState(
  rest: Rest,
  { plan, onState, addExplanation }: Watched,
  signal: AbortSignal,
): Promise<void> {
  const known: { deployments?: readonly unknown[]; pods?: readonly unknown[] } = {};
  let last: ClusterState | undefined;
  let lastReported = '';
  let isRefreshing = false;
  let isStale = false;
  let refreshTimer: NodeJS.Timeout | undefined;
  /** API paths whose last read failed. */
  const failing = new Set<string>();

  const report = (state: ClusterState): void => {
    const text = JSON.stringify({ ...state, observed_at: 0 });
    if (text === lastReported || signal.aborted) return;
    lastReported = text;
    onState(state);
  };
  const refresh = async (): Promise<void> => {
    isStale = true;
    if (isRefreshing) return;
    isRefreshing = true;
    while (isStale) {
      isStale = false;
      const { deployments, pods } = known;
      if (deployments === undefined || pods === undefined || signal.aborted) break;
      const seen: ObservedObjects = {
        deployment: deployments[0] as Deployment | undefined,
        pods: pods as readonly Pod[],
      };
      const whole = await addExplanation(plan, seen).catch(() => seen);
      last = stateOf(whole, Date.now());
      if (failing.size === 0) report(last);
      clearTimeout(refreshTimer);
      // Events and namespaces are not watched, so the reason is read again after a while.
      const isOpen = seen.deployment === undefined || seen.pods.some(needsEvents);
      if (isOpen) refreshTimer = setTimeout(() => void refresh(), rest.pace.eventsMs).unref();
    }
    isRefreshing = false;
  };
  const onFailure = ({ message }: ServiceError, since: number): void => {
    const nothing = { phase: 'degraded', version: null, pods: [], observed_at: since } as const;
    const text = `not seen since ${new Date(since).toISOString()}: ${message}`;
    report({ ...(last ?? nothing), reason: 'unreachable', message: text });
  };
  const follow = (
    path: string,
    query: Readonly<Record<string, string>>,
    keep: (items: readonly unknown[]) => void,
  ): Promise<void> =>
    reflect(
      rest,
      {
        path,
        query,
        onItems(items) {
          failing.delete(path);
          keep(items);
          void refresh();
        },
        onFailure(error, since) {
          failing.add(path);
          onFailure(error, since);
        },
      },
      signal,
    );
  await Promise.all([
    follow(
      pathOf('Deployment', plan.namespace),
      { fieldSelector: `metadata.name=${resourceName(plan)}` },
      (items) => (known.deployments = items),
    ),
    follow(
      pathOf('Pod', plan.namespace),
      { labelSelector: labelSelector(plan) },
      (items) => (known.pods = items),
    ),
  ]);
  clearTimeout(refreshTimer);
}
