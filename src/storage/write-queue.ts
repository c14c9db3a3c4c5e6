import type { ControlledTransaction } from 'kysely';
import { ServiceError } from '../base/errors.ts';
import { isConnectionFault, retryDuringOutage } from './outage.ts';
import type { Db, Tables } from './tables.ts';
import { wrapTransactionError, OutcomeUnknown, storageUnavailable } from './storage-errors.ts';

/** So many would not be done in the time that callers wait. */
const MOST_WAITING = 5_000;
/** Whoever has waited so long is better told to come back than served when he is gone. */
const LONGEST_WAIT_MS = 10_000;
/** One commit costs as much as many works, and what fails with it must be done again. */
const MOST_AT_ONCE = 128;
/** Where each query travels far, so that other servers get the lock before they give up. */
const LONGEST_BATCH_MS = 250;

export interface WriteOptions {
  /**
   * Goes before all that waits, is never refused as `overloaded`, and waits for as long as it takes.
   * For what must happen just when there is too much of everything else, such as a halt.
   */
  readonly urgent?: boolean;
}

interface Job {
  /** When it was asked for, by `performance.now()`. */
  readonly since: number;
  readonly work: (tx: Db) => Promise<unknown>;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Group commit: works that came while others were being committed share one transaction, and none is
 * told that it succeeded before all of them are durable. When one of them fails, all are done again,
 * each in a savepoint, so that it fails alone: savepoints cost as much as the works themselves.
 */
export class WriteQueue {
  readonly #db: Db;
  readonly #lock: (tx: Db) => Promise<void>;
  #waiting: Job[] = [];
  readonly #urgent: Job[] = [];
  /** While there is work; settles when there is none. */
  #draining: Promise<void> | undefined;
  #closed = false;

  /** @param lock keeps other servers from writing until the end of the transaction. */
  constructor(db: Db, lock: (tx: Db) => Promise<void>) {
    this.#db = db;
    this.#lock = lock;
  }

  write<T>(work: (tx: Db) => Promise<T>, { urgent = false }: WriteOptions = {}): Promise<T> {
    if (this.#closed) return Promise.reject(storageUnavailable(new Error('storage is closed')));
    if (!urgent && this.#waiting.length >= MOST_WAITING) {
      return Promise.reject(overloaded());
    }
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const since = performance.now();
    const queue = urgent ? this.#urgent : this.#waiting;
    queue.push({ since, work, resolve: resolve as Job['resolve'], reject });
    this.#draining ??= this.#drain();
    return promise;
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#draining;
  }

  async #drain(): Promise<void> {
    while (this.#urgent.length > 0 || this.#waiting.length > 0) {
      await this.#gather();
      await this.#commit();
    }
    this.#draining = undefined;
  }

  /** Waits while each turn of the event loop brings more: a commit takes as long as ten works. */
  async #gather(): Promise<void> {
    let before: number;
    do {
      before = this.#waiting.length;
      await new Promise(setImmediate);
    } while (
      this.#urgent.length === 0 &&
      this.#waiting.length > before &&
      this.#waiting.length < MOST_AT_ONCE
    );
  }

  /** Does what is waiting, as much of it as belongs into one transaction. */
  async #commit(): Promise<void> {
    const jobs: Job[] = [];
    try {
      const settle = await retryDuringOutage(
        async () =>
          (await this.#transact(jobs.length > 0 ? jobs : this.#take(jobs), attempt)) ??
          (await this.#transact(jobs, attemptApart)),
      );
      for (const tell of settle ?? []) tell();
    } catch (error) {
      const failure = error instanceof OutcomeUnknown ? error : storageUnavailable(error);
      for (const { reject } of jobs) reject(failure);
      // The other writes have not been sent: they all fail now, not one after the other.
      const others = [...this.#urgent.splice(0), ...this.#waiting.splice(0)];
      const cause = error instanceof OutcomeUnknown ? error.cause : error;
      for (const { reject } of others) reject(storageUnavailable(cause));
    }
  }

  /**
   * Takes from those that wait, and keeps in `jobs` what it has taken: what is urgent by itself, so
   * that it is not told later for the sake of others, or fails with them.
   */
  *#take(jobs: Job[]): Generator<Job> {
    const until = performance.now() + LONGEST_BATCH_MS;
    const isUrgent = this.#urgent.length > 0;
    const queue = isUrgent ? this.#urgent : this.#waiting;
    while (jobs.length < MOST_AT_ONCE && (jobs.length === 0 || performance.now() < until)) {
      if (!isUrgent && this.#urgent.length > 0 && jobs.length > 0) return;
      const job = queue.shift();
      if (job === undefined) return;
      if (!isUrgent && performance.now() > job.since + LONGEST_WAIT_MS) {
        job.reject(overloaded());
        continue;
      }
      jobs.push(job);
      yield job;
    }
  }

  /** @returns what to do now that all is durable; undefined when one failed, and nothing is done. */
  async #transact(
    jobs: Iterable<Job>,
    attemptOne: (tx: Transaction, job: Job) => Promise<(() => void) | undefined>,
  ): Promise<(() => void)[] | undefined> {
    const settle: (() => void)[] = [];
    let tx: Transaction | undefined;
    try {
      tx = await this.#db.startTransaction().execute();
      await this.#lock(tx);
      for (const job of jobs) {
        const tell = await attemptOne(tx, job);
        if (tell === undefined) {
          await tx.rollback().execute();
          return undefined;
        }
        settle.push(tell);
      }
      await commit(tx);
      return settle;
    } catch (error) {
      // The connection may be gone, and the transaction with it: the first error is the one to tell.
      await tx
        ?.rollback()
        .execute()
        .catch(() => {});
      throw error;
    }
  }
}

type Transaction = ControlledTransaction<Tables>;

/** @throws OutcomeUnknown when the connection breaks. */
async function commit(tx: Transaction): Promise<void> {
  try {
    await tx.commit().execute();
  } catch (error) {
    throw isConnectionFault(error) ? new OutcomeUnknown(error) : error;
  }
}

function overloaded(): ServiceError {
  return new ServiceError('overloaded', 'more is to be written than can be in time', {
    remedy: 'Try again later.',
    retryAfterSeconds: 5,
  });
}

/** @returns what to do once the transaction is durable; undefined when the work failed. */
async function attempt(tx: Transaction, { work, resolve }: Job): Promise<(() => void) | undefined> {
  try {
    const value = await work(tx);
    return () => resolve(value);
  } catch {
    return undefined;
  }
}

/** The same in a savepoint, of which nothing is left when the work fails. */
async function attemptApart(tx: Transaction, { work, resolve, reject }: Job): Promise<() => void> {
  const savepoint = await tx.savepoint('work').execute();
  try {
    const value = await work(savepoint);
    await savepoint.releaseSavepoint('work').execute();
    return () => resolve(value);
  } catch (error) {
    try {
      await savepoint.rollbackToSavepoint('work').execute();
    } catch {
      // SQLite has given up the whole transaction, for the reason that the work was told.
      throw error;
    }
    return () => reject(wrapTransactionError(error));
  }
}
