import type { Install } from './cloud-file.ts';
import type { SecretStore } from './secret-store.ts';
import type { Services } from './services.ts';

/** @throws ServiceError `conflict`, reason `not_installed`, if the required package is missing. */
export async function openSecretStore(
  { store }: Pick<Install, 'store'>,
  clustersFile: string,
): Promise<SecretStore> {
  if (store.type === 'directory') {
    return (await import('./directory-store.ts')).directoryStore(store.path);
  }
  if (store.type === 'aws') return (await import('./aws-store.ts')).openAwsStore(store);
  const { openKubernetesStore } = await import('./kubernetes-store.ts');
  return openKubernetesStore(store, clustersFile);
}

/**
 * @returns undefined if cloud_file lists no services.
 * @throws ServiceError `conflict`, reason `not_installed`, if the required package is missing.
 */
export async function openServices(
  { services }: Pick<Install, 'services'>,
  clustersFile: string,
): Promise<Services | undefined> {
  if (services.type === 'none') return undefined;
  if (services.type === 'ecs') return (await import('./ecs.ts')).openEcs(services);
  const { openKubernetesServices } = await import('./kubernetes-services.ts');
  return openKubernetesServices(services, clustersFile);
}
