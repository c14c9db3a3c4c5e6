import { setTimeout as delay } from 'node:timers/promises';
import { ServiceError } from '../../base/errors.ts';
import type { DeploymentsDefinition } from './cloud-file.ts';
import { applyTo, askPlace, connectPlace, type Place } from './kubernetes.ts';
import type { Role, RunningTask, Services, ServiceState } from './services.ts';

const MANAGER = 'service-local-redeploy';
const RESTARTED_AT = 'service-local.dev/restarted-at';

const ROLES = ['api', 'worker', 'scheduler'] as const;

type Names = Readonly<Record<Role, string>>;

/** The fields of a Deployment that are used here. */
interface Deployment {
  readonly metadata: { readonly generation?: number; readonly creationTimestamp?: string };
  readonly spec: {
    readonly replicas?: number;
    readonly selector: { readonly matchLabels?: Readonly<Record<string, string>> };
    readonly template: {
      readonly metadata?: { readonly annotations?: Readonly<Record<string, string>> };
    };
  };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly replicas?: number;
    readonly updatedReplicas?: number;
    readonly availableReplicas?: number;
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly reason?: string;
      readonly message?: string;
    }[];
  };
}

interface Pod {
  readonly metadata: {
    readonly name: string;
    readonly creationTimestamp?: string;
    readonly deletionTimestamp?: string;
  };
  readonly status?: {
    readonly phase?: string;
    readonly containerStatuses?: readonly {
      readonly state?: { readonly running?: { readonly startedAt?: string } };
    }[];
  };
}

/** @throws ServiceError `invalid_setting`, `not_found`, `conflict` */
export function openKubernetesServices(
  definition: DeploymentsDefinition,
  clustersFile: string,
): Services {
  return kubernetesServices(connectPlace(definition, clustersFile), definition);
}

function kubernetesServices(place: Place, names: Names): Services {
  const { namespace, cluster } = place;
  let nextSecond: Promise<void> | undefined;
  const pathOf = (name: string): string =>
    `/apis/apps/v1/namespaces/${namespace}/deployments/${name}`;
  const read = async (name: string): Promise<Deployment> => {
    const request = { method: 'GET', path: pathOf(name) } as const;
    const found = await askPlace(place, `read the Deployment ${name}`, request);
    if (found !== undefined) return found as Deployment;
    const where = `the namespace ${namespace} of the cluster ${cluster}`;
    throw new ServiceError('not_found', `there is no Deployment ${name} in ${where}`, {
      remedy: 'Correct the names of the services in cloud_file.',
    });
  };
  const podsOf = async (deployment: Deployment): Promise<readonly Pod[]> => {
    const labels = Object.entries(deployment.spec.selector.matchLabels ?? {});
    const list = (await askPlace(place, 'list pods', {
      method: 'GET',
      path: `/api/v1/namespaces/${namespace}/pods`,
      query: { labelSelector: labels.map(([name, value]) => `${name}=${value}`).join(',') },
    })) as { readonly items?: readonly Pod[] };
    return list.items ?? [];
  };
  return {
    inferred_from:
      'Kubernetes gives a container its environment when the container starts. Which lease a pod holds is therefore inferred from its creation and start times and from the time at which the Secret was changed, all in whole seconds; the pods themselves were not queried.',
    async states() {
      const states: ServiceState[] = [];
      for (const role of ROLES) {
        const deployment = await read(names[role]);
        const tasks = (await podsOf(deployment)).filter(isRunning).map(taskOf);
        states.push({ role, name: names[role], ...rolloutOf(deployment), tasks });
      }
      return states;
    },
    async restart({ name }) {
      // Applying to a missing Deployment would try to create it; reading it fails with `not_found`.
      await read(name);
      // Pod times are whole seconds. A pod must start in a later second than the Secret was written.
      await (nextSecond ??= delay(1000));
      // Kubernetes starts a rollout only if the value changes, hence milliseconds.
      const id = new Date().toISOString();
      await applyTo(place, `redeploy ${name}`, {
        path: pathOf(name),
        manager: MANAGER,
        object: {
          apiVersion: 'apps/v1',
          kind: 'Deployment',
          metadata: { name, namespace },
          spec: { template: { metadata: { annotations: { [RESTARTED_AT]: id } } } },
        },
      });
      return { id, began_at: Date.parse(id) };
    },
    close: () => void place.rest.close(),
  };
}

function rolloutOf({
  metadata,
  spec,
  status = {},
}: Deployment): Pick<ServiceState, 'rollout' | 'failed_rollouts' | 'wanted'> {
  const wanted = spec.replicas ?? 1;
  const restarted = spec.template.metadata?.annotations?.[RESTARTED_AT];
  const id = restarted ?? '';
  const stuck = status.conditions?.find(
    ({ type, reason }) => type === 'Progressing' && reason === 'ProgressDeadlineExceeded',
  );
  const isSeen = (status.observedGeneration ?? 0) >= (metadata.generation ?? 0);
  const isDone =
    (status.updatedReplicas ?? 0) === wanted &&
    (status.replicas ?? 0) === wanted &&
    (status.availableReplicas ?? 0) === wanted;
  const state = !isSeen ? 'in_progress' : stuck ? 'failed' : isDone ? 'done' : 'in_progress';
  return {
    rollout: {
      id,
      began_at: timeOf(restarted ?? metadata.creationTimestamp) ?? 0,
      state,
      detail: stuck?.message ?? null,
    },
    failed_rollouts: state === 'failed' ? [id] : [],
    wanted,
  };
}

function isRunning({ metadata, status }: Pod): boolean {
  return (
    metadata.deletionTimestamp === undefined &&
    status?.phase !== 'Succeeded' &&
    status?.phase !== 'Failed'
  );
}

/**
 * Kubernetes reports times in whole seconds, so the last millisecond of that second is assumed. A
 * restarted container can have read a newer value than the pod did at first.
 */
function taskOf({ metadata, status }: Pod): RunningTask {
  const started = (status?.containerStatuses ?? []).map(({ state }) =>
    timeOf(state?.running?.startedAt),
  );
  const isStarted = started.length > 0 && started.every((time) => time !== undefined);
  return {
    id: metadata.name,
    created_at: timeOf(metadata.creationTimestamp) ?? 0,
    started_at: isStarted ? Math.max(...started) + 999 : null,
  };
}

function timeOf(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Date.parse(text);
}
