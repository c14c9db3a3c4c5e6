import { printableLine } from '../../base/printable.ts';
import type { ClusterPod, ClusterReason, ClusterState } from './cluster.ts';
import { LABEL_PREFIX } from './manifests.ts';
import type { Condition, ContainerStatus, Deployment, Namespace, Pod, PodEvent } from './wire.ts';

export interface ObservedObjects {
  readonly deployment: Deployment | undefined;
  readonly pods: readonly Pod[];
  /** Warnings about pods that do not start; undefined if not needed or not readable. */
  readonly events?: readonly PodEvent[] | undefined;
  /** `null` if the namespace is missing; undefined if not needed or not readable. */
  readonly namespace?: Namespace | null | undefined;
}

interface Fault {
  readonly reason: ClusterReason;
  readonly message: string;
}

const LONGEST = 500;
const IMAGE_REASONS: ReadonlySet<string> = new Set([
  'ErrImagePull',
  'ImagePullBackOff',
  'InvalidImageName',
  'ErrImageNeverPull',
]);
const CONFIG_REASONS: ReadonlySet<string> = new Set([
  'CreateContainerConfigError',
  'CreateContainerError',
  'RunContainerError',
]);

/**
 * Whether only events can explain why the pod does not start: Kubernetes mounts volumes before it
 * creates containers, so no container has a status yet.
 */
export function needsEvents(pod: Pod): boolean {
  const { phase, conditions = [], containerStatuses = [] } = pod.status ?? {};
  if (phase !== 'Pending' || pod.metadata.deletionTimestamp !== undefined) return false;
  const isPlaced = conditions.some(
    ({ type, status }) => type === 'PodScheduled' && status === 'True',
  );
  const waits = containerStatuses.every(
    ({ state }) => state?.waiting?.reason === 'ContainerCreating',
  );
  return isPlaced && waits;
}

export function stateOf(objects: ObservedObjects, now: number): ClusterState {
  const alive = objects.pods.filter((pod) => !hasEnded(pod));
  const pods = alive.map((pod) => podOf(pod, objects.events ?? []));
  const observed = { pods, version: versionOf(objects.deployment), observed_at: now };
  const fault = namespaceFault(objects);
  if (objects.deployment === undefined) {
    return { phase: 'missing', message: null, reason: null, ...fault, ...observed };
  }
  const { spec, status = {}, metadata } = objects.deployment;
  const isObserved = (status.observedGeneration ?? 0) >= (metadata.generation ?? 0);
  if (spec.replicas === 0) {
    // Until the controller has observed the change, it can still create a pod.
    const isDown = pods.length === 0 && isObserved && (status.replicas ?? 0) === 0;
    const names = pods.map((pod) => pod.name).join(', ') || 'a pod that may have started';
    return isDown
      ? { phase: 'scaled_down', message: null, reason: null, ...observed }
      : { phase: 'progressing', message: `${names} is still stopping`, reason: null, ...observed };
  }
  const conditions = isObserved ? (status.conditions ?? []) : [];
  const isUp = (status.updatedReplicas ?? 0) > 0 && (status.readyReplicas ?? 0) > 0;
  const isReady = isObserved && isUp && pods.some((pod) => pod.ready);
  if (isReady) return { phase: 'ready', message: null, reason: null, ...observed };
  const worst =
    fault ?? pods.map(faultOf).find((each) => each !== null) ?? deploymentFault(conditions);
  if (worst !== undefined) return { phase: 'degraded', ...worst, ...observed };
  return { phase: 'progressing', message: progressOf(pods), reason: null, ...observed };
}

function progressOf(pods: readonly ClusterPod[]): string {
  const [pod] = pods;
  if (pod === undefined) return 'the cluster has not created a pod yet';
  return pod.phase === 'Running'
    ? `${pod.name} is running, but not ready yet`
    : `${pod.name} is ${pod.phase}`;
}

function faultOf({ name, reason, message }: ClusterPod): Fault | null {
  return reason === null ? null : { reason, message: `${name}: ${message ?? reason}` };
}

function namespaceFault({ namespace }: ObservedObjects): Fault | undefined {
  if (namespace === undefined) return undefined;
  if (namespace === null)
    return { reason: 'namespace_missing', message: 'the namespace does not exist' };
  const isEnding =
    namespace.metadata.deletionTimestamp !== undefined || namespace.status?.phase === 'Terminating';
  return isEnding
    ? { reason: 'namespace_terminating', message: 'the namespace is being deleted' }
    : undefined;
}

function deploymentFault(conditions: readonly Condition[]): Fault | undefined {
  const find = (type: string, status: string): Condition | undefined =>
    conditions.find((each) => each.type === type && each.status === status);
  const failure = find('ReplicaFailure', 'True');
  if (failure !== undefined) {
    const message = shorten(failure.message ?? 'the cluster cannot create a pod');
    return { reason: /exceeded quota/.test(message) ? 'quota' : 'replica_failure', message };
  }
  const stuck = find('Progressing', 'False');
  if (stuck?.reason === 'ProgressDeadlineExceeded') {
    return { reason: 'deadline_exceeded', message: shorten(stuck.message ?? 'rollout timed out') };
  }
  // Kubernetes sets this reason when a rollout completes, so the pod has been ready.
  const done = find('Progressing', 'True')?.reason === 'NewReplicaSetAvailable';
  return done
    ? { reason: 'not_ready', message: 'the pod was ready, but is not ready now' }
    : undefined;
}

function podOf(pod: Pod, events: readonly PodEvent[]): ClusterPod {
  const { metadata, status = {} } = pod;
  const containers = status.containerStatuses ?? [];
  const isEnding = metadata.deletionTimestamp !== undefined;
  const isReady = (status.conditions ?? []).some(
    ({ type, status: value }) => type === 'Ready' && value === 'True',
  );
  const fault = isEnding ? undefined : podFault(pod, events);
  return {
    name: metadata.name,
    phase: isEnding ? 'Terminating' : (status.phase ?? 'Unknown'),
    ready: isReady && !isEnding,
    restarts: containers.reduce((sum, { restartCount = 0 }) => sum + restartCount, 0),
    reason: fault?.reason ?? null,
    message: fault?.message ?? null,
  };
}

/** Why a pod does not start or does not keep running; undefined if nothing is known. */
export function podFault(pod: Pod, events: readonly PodEvent[]): Fault | undefined {
  const { status = {} } = pod;
  const unplaced = (status.conditions ?? []).find(
    ({ type, status: value, reason }) =>
      type === 'PodScheduled' && value === 'False' && reason === 'Unschedulable',
  );
  if (unplaced !== undefined) {
    return {
      reason: 'unschedulable',
      message: shorten(unplaced.message ?? 'no node can run the pod'),
    };
  }
  const fault = (status.containerStatuses ?? []).map(containerFault).find(Boolean);
  if (fault !== undefined) return fault;
  const mount = events
    .filter(({ involvedObject }) => involvedObject.uid === pod.metadata.uid)
    .findLast(({ reason }) => reason === 'FailedMount' || reason === 'FailedAttachVolume');
  if (mount === undefined || !needsEvents(pod)) return undefined;
  const message = shorten(mount.message ?? 'a volume cannot be mounted');
  return { reason: missingSecret(message) ? 'missing_secret' : 'volume', message };
}

function containerFault({
  state,
  lastState,
  restartCount = 0,
}: ContainerStatus): Fault | undefined {
  const waiting = state?.waiting?.reason ?? '';
  const message = shorten([waiting, state?.waiting?.message].filter(Boolean).join(': '));
  if (IMAGE_REASONS.has(waiting)) return { reason: 'image_pull', message };
  if (CONFIG_REASONS.has(waiting)) {
    return { reason: missingSecret(message) ? 'missing_secret' : 'container_config', message };
  }
  const ended = state?.terminated ?? lastState?.terminated;
  if (ended === undefined || state?.running !== undefined) return undefined;
  const how = `exit code ${ended.exitCode}${ended.reason === undefined ? '' : ` (${shorten(ended.reason)})`}`;
  if (ended.reason === 'OOMKilled') {
    return { reason: 'out_of_memory', message: `the container exceeded its memory limit: ${how}` };
  }
  const isLooping = waiting === 'CrashLoopBackOff' || restartCount > 0 || ended.exitCode !== 0;
  return isLooping
    ? {
        reason: 'crash_loop',
        message: `the container stopped with ${how} after ${restartCount} restarts`,
      }
    : undefined;
}

function missingSecret(message: string): boolean {
  return /\bsecrets? "[^"]+" not found|references non-existent secret key/.test(message);
}

/** Whether the pod has stopped permanently, even if its object still exists. */
function hasEnded({ status }: Pod): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed';
}

function versionOf(deployment: Deployment | undefined): number | null {
  const text = deployment?.metadata.labels?.[`${LABEL_PREFIX}/version`];
  return text !== undefined && /^[1-9][0-9]{0,8}$/.test(text) ? Number(text) : null;
}

function shorten(text: string): string {
  const line = printableLine(text);
  return line.length > LONGEST ? `${line.slice(0, LONGEST)}…` : line;
}
