import { parentPort } from 'node:worker_threads';
import { loadDataset, type Dataset, type LoadOptions } from '../../market/load.ts';
import type { ErrorData } from '../../base/error-data.ts';
import { toErrorData } from '../../base/error-data.ts';

/** What the thread that reads data answers, one question after the other. */
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
