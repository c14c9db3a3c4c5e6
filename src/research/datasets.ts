import { ServiceError } from '../base/errors.ts';
import { datasetNames, readManifest, type Manifest } from '../market/catalogue.ts';

/** Lists the datasets of a catalogue by name and skips damaged ones. */
export async function listDatasets(dir: string): Promise<readonly Manifest[]> {
  const names = await datasetNames(dir);
  const found = await Promise.all(names.map((name) => findDataset(dir, name)));
  return found.filter((one) => one !== undefined);
}

/** @throws ServiceError `not_found`, also for a damaged dataset. */
export async function getDataset(dir: string, name: string): Promise<Manifest> {
  const found = await findDataset(dir, name);
  if (found !== undefined) return found;
  throw new ServiceError('not_found', `there is no dataset ${JSON.stringify(name)}`, {
    remedy: 'List datasets with `service-local data list` on the machine of the server.',
  });
}

async function findDataset(dir: string, name: string): Promise<Manifest | undefined> {
  try {
    return await readManifest(dir, name);
  } catch (error) {
    if (error instanceof ServiceError) return undefined;
    throw error;
  }
}
