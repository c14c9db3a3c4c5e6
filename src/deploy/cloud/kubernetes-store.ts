import { hash } from 'node:crypto';
import type { SecretDefinition } from './cloud-file.ts';
import { applyTo, askPlace, connectPlace, type Place } from './kubernetes.ts';
import type { SecretStore } from './secret-store.ts';

/** The fields of a Secret that are used here. */
interface Secret {
  readonly data?: Readonly<Record<string, string>>;
  readonly metadata: {
    readonly creationTimestamp: string;
    readonly managedFields?: readonly {
      readonly time?: string;
      readonly fieldsV1?: { readonly 'f:data'?: Readonly<Record<string, unknown>> };
    }[];
  };
}

/** @throws ServiceError `invalid_setting`, `not_found`, `conflict` */
export function openKubernetesStore(
  definition: SecretDefinition,
  clustersFile: string,
): SecretStore {
  return kubernetesStore(connectPlace(definition, clustersFile), definition.secret);
}

/**
 * Stores all values in one Secret, under the last part of each name (`lease`, `public_key`). Each key
 * has its own field manager, so writing one does not require reading the other, and Kubernetes
 * records when each changed. Previous values are not available.
 */
export function kubernetesStore(place: Place, object: string): SecretStore {
  const { namespace, cluster } = place;
  const path = `/api/v1/namespaces/${namespace}/secrets/${object}`;
  return {
    place: `the Secret ${object} in the namespace ${namespace} of the cluster ${cluster}`,
    async put(name, value) {
      const data = Buffer.from(value).toString('base64');
      await applyTo(place, `write ${name}`, {
        path,
        manager: managerOf(name),
        object: {
          apiVersion: 'v1',
          kind: 'Secret',
          metadata: { name: object, namespace },
          data: { [keyOf(name)]: data },
        },
        secrets: [value, data],
      });
      return hash('sha256', value);
    },
    async current(name) {
      const request = { method: 'GET', path } as const;
      const secret = (await askPlace(place, `read ${name}`, request)) as Secret | undefined;
      const data = secret?.data?.[keyOf(name)];
      if (data === undefined) return undefined;
      const value = Buffer.from(data, 'base64').toString();
      return { value, version_id: hash('sha256', value), created_at: since(secret!, keyOf(name)) };
    },
    previous: async () => undefined,
    close: () => void place.rest.close(),
  };
}

/** Latest possible time of the last change, ms since the epoch; Kubernetes records whole seconds. */
function since({ metadata }: Secret, key: string): number {
  const times = (metadata.managedFields ?? [])
    .filter(({ fieldsV1 }) => Object.hasOwn(fieldsV1?.['f:data'] ?? {}, `f:${key}`))
    .flatMap(({ time }) => (time === undefined ? [] : [Date.parse(time)]));
  return Math.max(Date.parse(metadata.creationTimestamp), ...times) + 999;
}

function keyOf(name: string): string {
  return name.slice(name.lastIndexOf('/') + 1);
}

function managerOf(name: string): string {
  return `service-local-${keyOf(name).replace('_', '-')}`;
}
