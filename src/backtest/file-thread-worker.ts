import { parentPort } from 'node:worker_threads';
import { toErrorData, type ErrorData } from '../base/error-data.ts';
import type { LoadOptions } from '../market/load-dataset.ts';
import type { TableFiles } from './run-tables.ts';

/** A request to a thread, which answers it with the same `id`. */
export interface FileRequest {
  readonly id: number;
  readonly load?: LoadOptions;
  readonly write?: TableFiles;
  /** Whether to report progress. */
  readonly reports: boolean;
}

export type FileAnswer = { readonly id: number } & (
  | { readonly value: unknown }
  | { readonly done: number; readonly total: number }
  | { readonly error: ErrorData; readonly bug?: Error }
);

/** Least time between two reports of the progress, ms. */
const REPORT_MS = 50;

// Loaded before the first request, which the main thread may still prepare.
const loading = import('../market/load-dataset.ts');

async function answer({ id, load, write, reports }: FileRequest): Promise<unknown> {
  let last = 0;
  const report = (done: number, total: number): void => {
    const now = performance.now();
    if (done > 0 && now - last < REPORT_MS) return;
    last = now;
    parentPort!.postMessage({ id, done, total });
  };
  const onProgress = reports ? report : undefined;
  if (load !== undefined) {
    const { loadDataset } = await loading;
    return loadDataset({ ...load, onProgress });
  }
  const { writeTableFiles } = await import('./table-files.ts');
  return writeTableFiles(write!, onProgress);
}

parentPort!.on('message', async (request: FileRequest) => {
  const { id } = request;
  try {
    parentPort!.postMessage({ id, value: await answer(request) });
  } catch (error) {
    parentPort!.postMessage({ id, ...toErrorData(error) });
  }
});
