import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { Dataset, LoadOptions } from '../market/load.ts';
import type { Loaded } from './data-worker.ts';
import { fromTaskError } from './task-error.ts';

/**
 * Data that sessions have in common: a thousand of them on one dataset read it once, and share its
 * memory. A thread of its own reads, one dataset at a time, so that no thread with sessions in it is
 * ever amid DuckDB's code, where ending it would end the process.
 */
export class DataShelf {
  readonly #shelf = new Map<
    string,
    { readonly dataset: Promise<Dataset>; readonly users: Set<string> }
  >();
  #thread: Worker | undefined;
  /** Settles when what has been asked for is read. */
  #reading: Promise<unknown> = Promise.resolve();

  /**
   * @param user until whose `release` it is kept.
   * @throws ServiceError as `loadDataset`.
   */
  load(options: LoadOptions, user: string): Promise<Dataset> {
    const key = JSON.stringify(options);
    let item = this.#shelf.get(key);
    if (item === undefined) {
      const dataset = this.#reading.then(() => this.#read(options));
      this.#reading = dataset.catch(() => {});
      item = { dataset, users: new Set() };
      this.#shelf.set(key, item);
      // What could not be read may be there the next time.
      dataset.catch(() => this.#shelf.delete(key));
    }
    item.users.add(user);
    return item.dataset;
  }

  release(user: string): void {
    for (const [key, { users }] of this.#shelf) {
      if (users.delete(user) && users.size === 0) this.#shelf.delete(key);
    }
  }

  async close(): Promise<void> {
    await this.#reading;
    await this.#thread?.terminate();
    this.#thread = undefined;
  }

  async #read(options: LoadOptions): Promise<Dataset> {
    const file = new URL(`./data-worker${import.meta.url.slice(-3)}`, import.meta.url);
    this.#thread ??= new Worker(file, { env: {} });
    this.#thread.postMessage(options);
    try {
      const [loaded] = (await once(this.#thread, 'message')) as [Loaded];
      if ('dataset' in loaded) return loaded.dataset;
      throw loaded.bug ?? fromTaskError(loaded.error);
    } finally {
      // One that is not used has nothing to keep the process for.
      this.#thread?.unref();
    }
  }
}
