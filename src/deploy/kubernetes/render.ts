import { stringify } from 'yaml';
import type { KubernetesObject } from './manifests.ts';

/** Replaces the values of Secrets. */
export const HIDDEN = '(not shown)';

/** Renders one YAML document per object for `kubectl apply -f`, with the values of Secrets hidden. */
export function renderYaml(objects: readonly KubernetesObject[]): string {
  return objects
    .map((object) => stringify(withoutValues(object), { version: '1.1', lineWidth: 0 }))
    .join('---\n');
}

function withoutValues(object: KubernetesObject): KubernetesObject {
  if (object.kind !== 'Secret') return object;
  const hide = (values: unknown): Record<string, string> =>
    Object.fromEntries(Object.keys(values ?? {}).map((key) => [key, HIDDEN]));
  const { data, stringData, ...rest } = object;
  return {
    ...rest,
    ...(data === undefined ? {} : { data: hide(data) }),
    ...(stringData === undefined ? {} : { stringData: hide(stringData) }),
  };
}
