import type { Install } from './cloud-file.ts';

/** The Secret that has both values: names of Kubernetes have no slashes. */
export function secretObjectName({ customer, env, store }: Install): string {
  const named = store.type === 'kubernetes' ? store.secret : undefined;
  return named ?? `license-${customer}-${env}`;
}
