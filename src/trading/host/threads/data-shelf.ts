import { Worker } from 'node:worker_threads';
import type { Dataset, LoadOptions } from '../../../market/load-dataset.ts';
import type { Loaded } from './data-thread.ts';
import { endThread } from '../../../base/end-thread.ts';
import { fromErrorData } from '../../../base/error-data.ts';
import { THREAD_ENV } from '../../../base/thread-env.ts';
import { ThreadDied } from '../../../base/thread-failures.ts';

/**
 * Datasets in shared memory, each loaded once for all sessions that use it. A separate thread loads
 * them, so that a session's thread ends without waiting for DuckDB.
 */
export class DataShelf {
  readonly #shelf = new Map<
    string,
    { readonly dataset: Promise<Dataset>; readonly users: Set<string> }
  >();
  #thread: Worker | undefined;
  /** Settles when all requested datasets are loaded. */
  #reading: Promise<unknown> = Promise.resolve();

  /**
   * @param user the dataset stays loaded until `release` is called for all its users.
   * @throws ServiceError as `loadDataset`; ThreadDied.
   */
  load(options: LoadOptions, user: string): Promise<Dataset> {
    const key = JSON.stringify(options);
    let item = this.#shelf.get(key);
    if (item === undefined) {
      const dataset = this.#reading.then(() => this.#read(options));
      this.#reading = dataset.catch(() => {});
      item = { dataset, users: new Set() };
      this.#shelf.set(key, item);
      // The next request tries again.
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
    if (this.#thread !== undefined) await endThread(this.#thread);
    this.#thread = undefined;
  }

  async #read(options: LoadOptions): Promise<Dataset> {
    const thread = (this.#thread ??= this.#start());
    const { promise, resolve, reject } = Promise.withResolvers<Loaded>();
    const end = (): void => reject(new ThreadDied('the thread that loads datasets ended'));
    thread.once('message', resolve);
    thread.once('exit', end);
    thread.postMessage(options);
    const loaded = await promise.finally(() => thread.off('exit', end));
    if ('dataset' in loaded) return loaded.dataset;
    throw loaded.bug ?? fromErrorData(loaded.error);
  }

  #start(): Worker {
    const file = new URL(`./data-thread${import.meta.url.slice(-3)}`, import.meta.url);
    const thread = new Worker(file, { env: THREAD_ENV });
    // The handler of `exit` covers errors; the next request starts another thread.
    thread.on('error', () => {});
    thread.on('exit', () => {
      if (this.#thread === thread) this.#thread = undefined;
    });
    return thread;
  }
}
