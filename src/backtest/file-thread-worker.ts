import { parentPort } from 'node:worker_threads';
import { toErrorData, type ErrorData } from '../base/error-data.ts';
import type { LoadOptions } from '../market/load-dataset.ts';
import type { TableFiles } from './table-files.ts';

/** A request to a thread, which answers it with the same `id`. */
export interface FileRequest {
  readonly id: number;
  readonly load?: LoadOptions;
  readonly write?: TableFiles;
}

export type FileAnswer = { readonly id: number } & (
  | { readonly value: unknown }
  | { readonly error: ErrorData; readonly bug?: Error }
);

async function answer({ load, write }: FileRequest): Promise<unknown> {
  if (load !== undefined) {
    const { loadDataset } = await import('../market/load-dataset.ts');
    return loadDataset(load);
  }
  const { writeTableFiles } = await import('./table-files.ts');
  return writeTableFiles(write!);
}

parentPort!.on('message', async (request: FileRequest) => {
  const { id } = request;
  try {
    parentPort!.postMessage({ id, value: await answer(request) });
  } catch (error) {
    parentPort!.postMessage({ id, ...toErrorData(error) });
  }
});
