import { ServiceError } from '../../base/errors.ts';
import { readClusters } from '../kubernetes/clusters-file.ts';
import { connectRest, USUAL_PACE, type Rest, type RestRequest } from '../kubernetes/rest.ts';
import { pickNamed, type ClusterPlace } from './cloud-file.ts';

/** A namespace of a cluster. */
export interface Place {
  readonly rest: Rest;
  readonly cluster: string;
  readonly namespace: string;
}

/** @throws ServiceError `invalid_setting`, `not_found`, `conflict` */
export function connectPlace({ cluster, namespace }: ClusterPlace, clustersFile: string): Place {
  const definition = pickNamed(readClusters(clustersFile), cluster, 'cluster', clustersFile);
  const { signal } = new AbortController();
  const rest = connectRest(definition, { name: cluster, signal, pace: USUAL_PACE });
  return { rest, cluster, namespace: namespace ?? definition.namespace };
}

/**
 * Sends a request and returns the body of the response; undefined for a GET of a missing object.
 * @param what The action, for errors, such as `read NAME`.
 * @throws ServiceError `cluster_unavailable`, `not_allowed`, `conflict`
 */
export async function askPlace(
  { rest, cluster, namespace }: Place,
  what: string,
  request: RestRequest,
): Promise<unknown> {
  const answer = await rest.ask(request);
  const { status, body } = answer;
  if (status === 404 && request.method === 'GET') return undefined;
  if (status < 300) return body;
  const { reason, message } = rest.refusal(answer, request.secrets);
  const text = `cannot ${what} in the namespace ${namespace} of the cluster ${cluster}`;
  if (status === 401 || status === 403) {
    throw new ServiceError('not_allowed', `${text}: ${message || reason}`, {
      reason: 'cloud_denied',
      remedy: 'Grant the permissions that `service-local cloud iam` prints.',
    });
  }
  throw new ServiceError('conflict', `${text}: ${message || reason}`, { reason: 'cloud_refused' });
}

/**
 * Applies fields to an object, taking them over from other field managers; creates the object if it
 * does not exist. Fields that `manager` applied before and that `object` lacks are removed.
 */
export async function applyTo(
  place: Place,
  what: string,
  {
    path,
    manager,
    object,
    secrets = [],
  }: {
    readonly path: string;
    readonly manager: string;
    readonly object: object;
    readonly secrets?: readonly string[];
  },
): Promise<void> {
  await askPlace(place, what, {
    method: 'PATCH',
    path,
    query: { fieldManager: manager, fieldValidation: 'Strict', force: 'true' },
    contentType: 'application/apply-patch+yaml',
    body: object,
    secrets,
  });
}
