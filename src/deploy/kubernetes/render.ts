import { stringify } from 'yaml';
import type { KubernetesObject } from './manifests.ts';

/** What stands in the place of a value of a Secret. */
export const HIDDEN = '(not shown)';

/** YAML with a document for each, as `kubectl apply -f` reads it; of Secrets without the values. */
export function renderYaml(objects: readonly KubernetesObject[]): string {
  return objects
    .map((object) => stringify(withoutValues(object), { version: '1.1', lineWidth: 0 }))
    .join('---\n');
}

/** The object itself, unless it is a Secret. */
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
