import { parentPort } from 'node:worker_threads';
import { loadDataset, type Dataset, type LoadOptions } from '../../../market/load-dataset.ts';
import type { ErrorData } from '../../../base/error-data.ts';
import { toErrorData } from '../../../base/error-data.ts';

/** Answer of the thread that loads datasets, one request at a time. */
export type Loaded =
  | { readonly dataset: Dataset }
  | { readonly error: ErrorData; readonly bug?: unknown };

parentPort!.on('message', (options: LoadOptions) => {
  void load(options).then((loaded) => parentPort!.postMessage(loaded));
});

async function load(options: LoadOptions): Promise<Loaded> {
  try {
    return { dataset: await loadDataset(options) };
  } catch (error) {
    return toErrorData(error);
  }
}
