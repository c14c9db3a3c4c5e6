import type { ControlledTransaction } from 'kysely';
import { ServiceError } from '../errors.ts';
import type { Db, Tables } from './tables.ts';
import { asStorageError, storageUnavailable } from './unavailable.ts';

/** What is waiting beyond this could not be served within the time that callers wait. */
const MOST_WAITING = 5_000;
/** One commit costs as much as many works, and what fails with it must be done again. */
const MOST_AT_ONCE = 128;

interface Job {
  readonly work: (tx: Db) => Promise<unknown>;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Group commit: works that came while others were being committed share one transaction, each in
 * its savepoint, and none is told that it succeeded before all of them are durable.
 */
export class WriteQueue {
  readonly #db: Db;
  readonly #lock: (tx: Db) => Promise<void>;
  #waiting: Job[] = [];
  /** While there is work; settles when there is none. */
  #draining: Promise<void> | undefined;
  #closed = false;

  /** @param lock keeps other servers from writing until the end of the transaction. */
  constructor(db: Db, lock: (tx: Db) => Promise<void>) {
    this.#db = db;
    this.#lock = lock;
  }

  write<T>(work: (tx: Db) => Promise<T>): Promise<T> {
    if (this.#closed) return Promise.reject(storageUnavailable(new Error('storage is closed')));
    if (this.#waiting.length >= MOST_WAITING) {
      return Promise.reject(
        new ServiceError('overloaded', `${MOST_WAITING} writes are waiting`, {
          remedy: 'Try again later.',
          retryAfterSeconds: 5,
        }),
      );
    }
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    this.#waiting.push({ work, resolve: resolve as Job['resolve'], reject });
    this.#draining ??= this.#drain();
    return promise;
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#draining;
  }

  async #drain(): Promise<void> {
    // Requests that have come in at the same time are read one after the other before this goes on.
    await new Promise(setImmediate);
    while (this.#waiting.length > 0) await this.#commit(this.#waiting.splice(0, MOST_AT_ONCE));
    this.#draining = undefined;
  }

  async #commit(jobs: readonly Job[]): Promise<void> {
    const settle: (() => void)[] = [];
    let tx: ControlledTransaction<Tables> | undefined;
    try {
      tx = await this.#db.startTransaction().execute();
      await this.#lock(tx);
      for (const job of jobs) settle.push(await attempt(tx, job));
      await tx.commit().execute();
    } catch (error) {
      // The connection may be gone, and the transaction with it: the first error is the one to tell.
      await tx
        ?.rollback()
        .execute()
        .catch(() => {});
      for (const { reject } of jobs) reject(storageUnavailable(error));
      return;
    }
    for (const tell of settle) tell();
  }
}

/** @returns what to do once the transaction is durable. */
async function attempt(
  tx: ControlledTransaction<Tables>,
  { work, resolve, reject }: Job,
): Promise<() => void> {
  const savepoint = await tx.savepoint('work').execute();
  try {
    const value = await work(savepoint);
    await savepoint.releaseSavepoint('work').execute();
    return () => resolve(value);
  } catch (error) {
    await savepoint.rollbackToSavepoint('work').execute();
    return () => reject(asStorageError(error));
  }
}
