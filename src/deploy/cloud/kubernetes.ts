/** What secrets and services in a cluster have in common: how the cluster is asked. */
import { ServiceError } from '../../base/errors.ts';
import { readClusters } from '../kubernetes/clusters-file.ts';
import { connectRest, USUAL_PACE, type Rest, type RestRequest } from '../kubernetes/rest.ts';
import { chosen, type ClusterPlace } from './cloud-file.ts';

/** A namespace of a cluster. */
export interface Place {
  readonly rest: Rest;
  readonly cluster: string;
  readonly namespace: string;
}

/** @throws ServiceError `invalid_setting`, `not_found`, `conflict` */
export function connectPlace({ cluster, namespace }: ClusterPlace, clustersFile: string): Place {
  const definition = chosen(readClusters(clustersFile), cluster, 'cluster', clustersFile);
  const { signal } = new AbortController();
  const rest = connectRest(definition, { name: cluster, signal, pace: USUAL_PACE });
  return { rest, cluster, namespace: namespace ?? definition.namespace };
}

/**
 * What the API server has there; undefined when there is nothing.
 * @param what was to be done, for errors: `read NAME`.
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
      remedy: 'See `service-local cloud iam` for what each role must be allowed.',
    });
  }
  throw new ServiceError('conflict', `${text}: ${message || reason}`, { reason: 'cloud_refused' });
}

/**
 * Sets some fields of an object, whoever set them before, and makes it when there is none.
 * @param manager of these fields: what it had set and does not name is removed.
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
