import { ServiceError } from '../base/errors.ts';
import { isConnectionFault, retryDuringOutage } from './outage.ts';
import type { OpenTransaction } from './open-transaction.ts';
import type { Db } from './tables.ts';
import { wrapTransactionError, OutcomeUnknown, storageUnavailable } from './storage-errors.ts';

/** More jobs would not be done before their callers give up. */
const MAX_WAITING = 5_000;
/** A job that has waited longer is rejected as `overloaded`, since its caller has probably given up. */
const MAX_WAIT_MS = 10_000;
/** A commit costs as much as many jobs, but if one job fails, the whole batch must run again. */
const MAX_BATCH = 128;
/** Limits batches on a slow network, so that other servers get the lock before they time out. */
const MAX_BATCH_MS = 250;

export interface WriteOptions {
  /**
   * Runs before all other writes and is never rejected as `overloaded`. For writes that matter most
   * under overload, such as halts.
   */
  readonly urgent?: boolean;
}

interface Job {
  /** Time of the call, by `performance.now()`. */
  readonly since: number;
  readonly work: (tx: Db) => Promise<unknown>;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Group commit: jobs that arrive during a commit share the next transaction, and none succeeds before
 * all are durable. If one fails, all run again, each in a savepoint, so that only that one fails.
 * Savepoints cost as much as the jobs, so the first attempt does without.
 */
export class WriteQueue {
  readonly #begin: () => Promise<OpenTransaction>;
  #waiting: Job[] = [];
  readonly #urgent: Job[] = [];
  /** Pending while jobs are waiting or running. */
  #draining: Promise<void> | undefined;
  #closed = false;

  /** @param begin resolves once no other server can write. */
  constructor(begin: () => Promise<OpenTransaction>) {
    this.#begin = begin;
  }

  write<T>(work: (tx: Db) => Promise<T>, { urgent = false }: WriteOptions = {}): Promise<T> {
    if (this.#closed) return Promise.reject(storageUnavailable(new Error('storage is closed')));
    if (!urgent && this.#waiting.length >= MAX_WAITING) {
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

  /** Waits while each turn of the event loop adds jobs, since a commit takes as long as ten jobs. */
  async #gather(): Promise<void> {
    let before: number;
    do {
      before = this.#waiting.length;
      await new Promise(setImmediate);
    } while (
      this.#urgent.length === 0 &&
      this.#waiting.length > before &&
      this.#waiting.length < MAX_BATCH
    );
  }

  /** Runs one batch of waiting jobs in a transaction. */
  async #commit(): Promise<void> {
    const jobs: Job[] = [];
    try {
      const settlements = await retryDuringOutage(
        async () =>
          (await this.#transact(jobs.length > 0 ? jobs : this.#take(jobs), attempt)) ??
          (await this.#transact(jobs, attemptApart)),
      );
      for (const succeed of settlements ?? []) succeed();
    } catch (error) {
      const failure = error instanceof OutcomeUnknown ? error : storageUnavailable(error);
      for (const { reject } of jobs) reject(failure);
      // The database is down: all waiting jobs fail now instead of one after the other.
      const others = [...this.#urgent.splice(0), ...this.#waiting.splice(0)];
      const cause = error instanceof OutcomeUnknown ? error.cause : error;
      for (const { reject } of others) reject(storageUnavailable(cause));
    }
  }

  /**
   * Yields the jobs of the next batch, and adds them to `jobs`. Urgent jobs form batches of their own,
   * so that they neither wait for others nor fail with them.
   */
  *#take(jobs: Job[]): Generator<Job> {
    const until = performance.now() + MAX_BATCH_MS;
    const isUrgent = this.#urgent.length > 0;
    const queue = isUrgent ? this.#urgent : this.#waiting;
    while (jobs.length < MAX_BATCH && (jobs.length === 0 || performance.now() < until)) {
      if (!isUrgent && this.#urgent.length > 0 && jobs.length > 0) return;
      const job = queue.shift();
      if (job === undefined) return;
      if (!isUrgent && performance.now() > job.since + MAX_WAIT_MS) {
        job.reject(overloaded());
        continue;
      }
      jobs.push(job);
      yield job;
    }
  }

  /** @returns functions that resolve the jobs; undefined if one failed and nothing was written. */
  async #transact(
    jobs: Iterable<Job>,
    attemptOne: (tx: OpenTransaction, job: Job) => Promise<(() => void) | undefined>,
  ): Promise<(() => void)[] | undefined> {
    const settlements: (() => void)[] = [];
    const tx = await this.#begin();
    try {
      for (const job of jobs) {
        const settle = await attemptOne(tx, job);
        if (settle === undefined) {
          await tx.rollback();
          return undefined;
        }
        settlements.push(settle);
      }
      await commit(tx);
      return settlements;
    } catch (error) {
      // The connection may have broken, so that the rollback fails: the first error matters.
      await tx.rollback().catch(() => {});
      throw error;
    }
  }
}

/** @throws OutcomeUnknown if the connection breaks. */
async function commit(tx: OpenTransaction): Promise<void> {
  try {
    await tx.commit();
  } catch (error) {
    throw isConnectionFault(error) ? new OutcomeUnknown(error) : error;
  }
}

function overloaded(): ServiceError {
  return new ServiceError('overloaded', 'too many writes are waiting for the database', {
    remedy: 'Try again later.',
    retryAfterSeconds: 5,
  });
}

/** @returns a function that resolves the job; undefined if its work failed. */
async function attempt(
  { db }: OpenTransaction,
  { work, resolve }: Job,
): Promise<(() => void) | undefined> {
  try {
    const value = await work(db);
    return () => resolve(value);
  } catch {
    return undefined;
  }
}

/** As `attempt`, in a savepoint, which is rolled back if the work fails. */
async function attemptApart(
  tx: OpenTransaction,
  { work, resolve, reject }: Job,
): Promise<() => void> {
  const savepoint = await tx.savepoint();
  try {
    const value = await work(savepoint.db);
    await savepoint.commit();
    return () => resolve(value);
  } catch (error) {
    try {
      await savepoint.rollback();
    } catch {
      // SQLite has rolled back the whole transaction because of the first error.
      throw error;
    }
    return () => reject(wrapTransactionError(error));
  }
}
