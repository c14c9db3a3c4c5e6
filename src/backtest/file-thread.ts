import { statSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { endThread } from '../base/end-thread.ts';
import { fromErrorData } from '../base/error-data.ts';
import { THREAD_ENV } from '../base/thread-env.ts';
import { resolveDataset } from '../market/catalogue.ts';
import { loadDataset, type Dataset, type LoadOptions } from '../market/load-dataset.ts';
import type { FileAnswer, FileRequest } from './file-thread-worker.ts';
import type { Summary } from './summary.ts';
import type { OnLines, TableFiles } from './run-tables.ts';
import { writeTableFiles } from './table-files.ts';

const FILE = new URL(`./file-thread-worker${import.meta.url.slice(-3)}`, import.meta.url);

/** Number of steps from which writing the tables takes longer than starting a thread for it. */
const LONG_STEPS = 200_000;

/** Size of a file of bars from which reading it takes longer than starting a thread for it. */
const LONG_BYTES = 4 << 20;

type DataFile = Pick<LoadOptions, 'source' | 'catalogueDir'>;

interface OpenRequest extends PromiseWithResolvers<unknown> {
  readonly onProgress: OnLines | undefined;
}

/**
 * Reads bars and writes tables. Long ones are read and written in a second thread, so that the thread of
 * the caller can do other work. An idle second thread does not keep the process running.
 */
export class FileThread {
  #worker: Worker | undefined;
  readonly #open = new Map<number, OpenRequest>();
  #last = 0;

  /** Starts the second thread if `load` will need it, while the caller prepares its requests. */
  async prepareFor(sources: readonly DataFile[]): Promise<void> {
    const long = await Promise.all(sources.map(isLong));
    if (this.#worker === undefined && long.includes(true)) {
      this.#worker = this.#start();
      this.#worker.unref();
    }
  }

  /** See `loadDataset`. */
  async load(options: LoadOptions): Promise<Dataset> {
    if (this.#worker === undefined && !(await isLong(options))) return loadDataset(options);
    const { onProgress, ...load } = options;
    return (await this.#ask({ load }, onProgress)) as Dataset;
  }

  /** See `writeTableFiles`. */
  async write(tables: TableFiles, onProgress?: OnLines): Promise<Summary['hashes']> {
    const isLongRun = tables.curve.equity.length >= LONG_STEPS;
    if (this.#worker === undefined && !isLongRun) return writeTableFiles(tables, onProgress);
    return (await this.#ask({ write: tables }, onProgress)) as Summary['hashes'];
  }

  /** Ends the thread. */
  async end(): Promise<void> {
    if (this.#worker !== undefined) await endThread(this.#worker);
  }

  #start(): Worker {
    const worker = new Worker(FILE, { env: THREAD_ENV });
    worker.on('message', (message: FileAnswer) => {
      const open = this.#open.get(message.id)!;
      if ('done' in message) return open.onProgress?.(message.done, message.total);
      this.#open.delete(message.id);
      if (this.#open.size === 0) worker.unref();
      if ('value' in message) open.resolve(message.value);
      else open.reject(message.bug ?? fromErrorData(message.error));
    });
    const fail = (error: Error): void => {
      for (const { reject } of this.#open.values()) reject(error);
      this.#open.clear();
    };
    worker.on('error', fail);
    worker.on('exit', (code) => {
      fail(new Error(`the thread that reads and writes files ended with code ${code}`));
    });
    return worker;
  }

  async #ask(
    request: Pick<FileRequest, 'load' | 'write'>,
    onProgress: OnLines | undefined,
  ): Promise<unknown> {
    this.#worker ??= this.#start();
    const id = ++this.#last;
    const open = { ...Promise.withResolvers<unknown>(), onProgress };
    this.#open.set(id, open);
    this.#worker.ref();
    this.#worker.postMessage({ id, ...request, reports: onProgress !== undefined });
    return open.promise;
  }
}

/** False for a file that cannot be read, which `loadDataset` reports. */
async function isLong({ source, catalogueDir }: DataFile): Promise<boolean> {
  try {
    const imported = await resolveDataset(catalogueDir, source);
    return statSync(imported?.path ?? source).size >= LONG_BYTES;
  } catch {
    return false;
  }
}
