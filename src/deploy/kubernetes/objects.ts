import { ServiceError } from '../../base/errors.ts';
import type { KubernetesObject } from './manifests.ts';
import { credentialsFault, type Rest, type RestAnswer } from './rest.ts';

const FIELD_MANAGER = 'service-local';

/** API paths of the kinds in use. */
const PATHS: Readonly<Record<string, readonly [root: string, plural: string]>> = {
  ServiceAccount: ['/api/v1', 'serviceaccounts'],
  ConfigMap: ['/api/v1', 'configmaps'],
  Secret: ['/api/v1', 'secrets'],
  PersistentVolumeClaim: ['/api/v1', 'persistentvolumeclaims'],
  Pod: ['/api/v1', 'pods'],
  Event: ['/api/v1', 'events'],
  NetworkPolicy: ['/apis/networking.k8s.io/v1', 'networkpolicies'],
  Deployment: ['/apis/apps/v1', 'deployments'],
  Job: ['/apis/batch/v1', 'jobs'],
};

export interface ObjectRequests {
  /** Server-side apply. @param query such as `dryRun` */
  readonly applyObject: (
    object: KubernetesObject,
    query?: Readonly<Record<string, string>>,
  ) => Promise<RestAnswer>;
  /** Does nothing if the object is missing. Its dependents are deleted in the background. */
  readonly deleteObject: (kind: string, namespace: string, object: string) => Promise<void>;
  /** @param query such as `labelSelector` */
  readonly listObjects: <T>(
    kind: string,
    namespace: string,
    query: Readonly<Record<string, string>>,
  ) => Promise<readonly T[]>;
}

/** Requests for single objects and lists. @param name of the cluster in errors */
export function objectRequests(rest: Rest, name: string): ObjectRequests {
  const applyObject = async (
    object: KubernetesObject,
    query: Readonly<Record<string, string>> = {},
  ): Promise<RestAnswer> => {
    const secrets = valuesOf(object);
    const answer = await rest.ask({
      method: 'PATCH',
      path: pathOf(object.kind, object.metadata.namespace, object.metadata.name),
      query: { fieldManager: FIELD_MANAGER, fieldValidation: 'Strict', ...query },
      contentType: 'application/apply-patch+yaml',
      body: object,
      secrets,
    });
    if (answer.status >= 300) throw rejectionOf(rest, name, answer, object, secrets);
    return answer;
  };

  const deleteObject = async (kind: string, namespace: string, object: string): Promise<void> => {
    const path = pathOf(kind, namespace, object);
    const body = { kind: 'DeleteOptions', apiVersion: 'v1', propagationPolicy: 'Background' };
    const answer = await rest.ask({ method: 'DELETE', path, body });
    if (answer.status < 300 || answer.status === 404) return;
    throw rejectionOf(rest, name, answer, { kind, metadata: { namespace, name: object } });
  };

  const listObjects = async <T>(
    kind: string,
    namespace: string,
    query: Readonly<Record<string, string>>,
  ): Promise<readonly T[]> => {
    const answer = await rest.ask({ method: 'GET', path: pathOf(kind, namespace), query });
    if (answer.status !== 200) {
      throw rejectionOf(rest, name, answer, { kind, metadata: { namespace, name: '' } });
    }
    return (answer.body['items'] ?? []) as readonly T[];
  };
  return { applyObject, deleteObject, listObjects };
}

export function pathOf(kind: string, namespace: string, name?: string): string {
  const [root, plural] = PATHS[kind]!;
  return `${root}/namespaces/${namespace}/${plural}${name === undefined ? '' : `/${name}`}`;
}

/** The values of a Secret, both in base64 and decoded. */
function valuesOf({ kind, data }: KubernetesObject): readonly string[] {
  if (kind !== 'Secret') return [];
  return Object.values((data ?? {}) as Readonly<Record<string, string>>).flatMap((value) => [
    value,
    Buffer.from(value, 'base64').toString(),
  ]);
}

export function rejectionOf(
  rest: Rest,
  cluster: string,
  answer: RestAnswer,
  {
    kind,
    metadata,
  }: { readonly kind: string; readonly metadata: { name: string; namespace: string } },
  secrets: readonly string[] = [],
): ServiceError {
  const { status } = answer;
  const { reason, message, causes } = rest.refusal(answer, secrets);
  const { namespace } = metadata;
  const what = `${kind} ${metadata.name}`.trim();
  const conflict = (
    text: string,
    because: string,
    remedy: string,
    problems: ServiceError['problems'] = [],
  ): ServiceError => new ServiceError('conflict', text, { reason: because, remedy, problems });

  if (status === 401) return credentialsFault(cluster);
  if (status === 409) {
    const fields = causes.map(({ field, message: by }) => ({
      code: 'field_conflict',
      message: `${field}: ${by}`,
      pointer: field,
    }));
    const by = fields.map((field) => field.message).join('; ') || message;
    return conflict(
      `another field manager owns fields of ${what}: ${by}`,
      'field_conflict',
      'Make the other manager release the fields or undo its change; `kubectl get --show-managed-fields` lists the managers.',
      fields,
    );
  }
  if (status === 404 && message.includes(`namespaces "${namespace}"`)) {
    return conflict(
      `the cluster ${cluster} has no namespace ${namespace}`,
      'namespace_missing',
      `Create it with \`kubectl create namespace ${namespace}\`, or set another namespace in clusters_file.`,
    );
  }
  if (status === 403 && causes.some((cause) => cause.reason === 'NamespaceTerminating')) {
    return conflict(
      `the namespace ${namespace} of the cluster ${cluster} is being deleted`,
      'namespace_terminating',
      'Wait for the deletion and create the namespace again, or set another namespace in clusters_file.',
    );
  }
  if (status === 403 && message.includes('exceeded quota')) {
    return conflict(
      `${what} exceeds the quota of the namespace ${namespace}: ${message}`,
      'quota',
      'Raise the quota, or delete objects that are not needed.',
    );
  }
  if (status === 403) {
    return conflict(
      `the cluster ${cluster} denies access to ${what}: ${message}`,
      'cluster_forbidden',
      'Grant the user of the kubeconfig the role in examples/kubernetes-role.yaml, or for searches the role in examples/kubernetes-search-role.yaml.',
    );
  }
  return conflict(
    `the cluster ${cluster} rejected ${what} with ${status} ${reason}: ${message}`,
    'cluster_refused',
    'Correct clusters_file or the bot as the message of the cluster says.',
  );
}
