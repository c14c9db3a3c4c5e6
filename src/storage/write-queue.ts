import { ServiceError } from '../base/errors.ts';
import { runBeforeCommit } from './before-commit.ts';
import { isConnectionFault, retryDuringOutage } from './outage.ts';
import type { Begin, OpenTransaction } from './open-transaction.ts';
import type { Db } from './tables.ts';
import { notifyWait } from './storage-load.ts';
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
  /**
   * What the write changes, such as `installation:ID`. On PostgreSQL, only writes with the same scope
   * or without one wait for this write. It may change nothing but the data of its scope and the audit
   * log, and may read only such data and data that writes with a scope do not change.
   */
  readonly scope?: string;
  /**
   * Names of rows that writes of several scopes insert, such as bars. On PostgreSQL, writes that share
   * one wait for each other; without it, they could block each other forever.
   */
  readonly shared?: readonly string[];
}

interface Job {
  /** Time of the call, by `performance.now()`. */
  readonly since: number;
  readonly work: (tx: Db) => Promise<unknown>;
  readonly scope: string | undefined;
  readonly shared: readonly string[];
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Group commit: jobs that arrive during a commit share the next transaction, and none succeeds before
 * all are durable. If one fails, all run again, each in a savepoint, so that only that one fails.
 * Savepoints cost as much as the jobs, so the first attempt does without.
 */
export class WriteQueue {
  readonly #begin: Begin;
  #waiting: Job[] = [];
  readonly #urgent: Job[] = [];
  /** Pending while jobs are waiting or running. */
  #draining: Promise<void> | undefined;
  #closed = false;

  constructor(begin: Begin) {
    this.#begin = begin;
  }

  write<T>(
    work: (tx: Db) => Promise<T>,
    { urgent = false, scope, shared = [] }: WriteOptions = {},
  ): Promise<T> {
    if (this.#closed) return Promise.reject(storageUnavailable(new Error('storage is closed')));
    if (!urgent && this.#waiting.length >= MAX_WAITING) {
      return Promise.reject(overloaded());
    }
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const since = performance.now();
    const queue = urgent ? this.#urgent : this.#waiting;
    queue.push({ since, work, scope, shared, resolve: resolve as Job['resolve'], reject });
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
    const jobs = this.#takeScoped();
    const scopes =
      jobs.length > 0 ? jobs.flatMap(({ scope, shared }) => [scope!, ...shared]) : undefined;
    const attemptAll =
      scopes === undefined
        ? attemptEach(() => (jobs.length > 0 ? jobs : this.#take(jobs)))
        : attemptTogether(jobs);
    try {
      const settlements = await retryDuringOutage(
        async () =>
          (await this.#transact(scopes, attemptAll)) ??
          (await this.#transact(scopes, attemptApart(jobs))),
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

  /** Takes the jobs at the head of the queue up to the first one without a scope. */
  #takeScoped(): Job[] {
    const jobs: Job[] = [];
    if (this.#urgent.length > 0) return jobs;
    while (jobs.length < MAX_BATCH && this.#waiting[0]?.scope !== undefined) {
      const job = this.#waiting.shift()!;
      notifyWait(performance.now() - job.since);
      if (isTooLate(job)) job.reject(overloaded());
      else jobs.push(job);
    }
    return jobs;
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
      notifyWait(performance.now() - job.since);
      if (!isUrgent && isTooLate(job)) {
        job.reject(overloaded());
        continue;
      }
      jobs.push(job);
      yield job;
    }
  }

  /** @returns functions that resolve the jobs; undefined if one failed and nothing was written. */
  async #transact(
    scopes: readonly string[] | undefined,
    attemptAll: Attempt,
  ): Promise<(() => void)[] | undefined> {
    const tx = await this.#begin(scopes);
    try {
      const settlements = await attemptAll(tx);
      if (settlements === undefined || !(await isFinished(tx))) {
        await tx.rollback();
        return undefined;
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

/** Runs jobs. @returns functions that resolve them; undefined if one failed. */
type Attempt = (tx: OpenTransaction) => Promise<(() => void)[] | undefined>;

function isTooLate({ since }: Job): boolean {
  return performance.now() > since + MAX_WAIT_MS;
}

/** @returns false if work before the commit failed, because of one of the jobs. */
async function isFinished({ db }: OpenTransaction): Promise<boolean> {
  try {
    await runBeforeCommit(db);
    return true;
  } catch {
    return false;
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

/** Runs jobs one after the other. */
function attemptEach(take: () => Iterable<Job>): Attempt {
  return async ({ db }) => {
    const settlements: (() => void)[] = [];
    for (const job of take()) {
      const settle = await attempt(db, job);
      if (settle === undefined) return undefined;
      settlements.push(settle);
    }
    return settlements;
  };
}

/**
 * Runs jobs of different scopes concurrently, so that their statements share round trips, and jobs of
 * the same scope one after the other.
 */
function attemptTogether(jobs: readonly Job[]): Attempt {
  return async (tx) => {
    const attempts = [...Map.groupBy(jobs, ({ scope }) => scope).values()].map((own) =>
      attemptEach(() => own)(tx),
    );
    const settlements = await Promise.all(attempts);
    if (settlements.includes(undefined)) return undefined;
    return settlements.flatMap((own) => own!);
  };
}

/** @returns a function that resolves the job; undefined if its work failed. */
async function attempt(db: Db, { work, resolve }: Job): Promise<(() => void) | undefined> {
  try {
    const value = await work(db);
    return () => resolve(value);
  } catch {
    return undefined;
  }
}

/** Runs each job in a savepoint, which is rolled back if the work fails. */
function attemptApart(jobs: readonly Job[]): Attempt {
  return async (tx) => {
    const settlements: (() => void)[] = [];
    for (const job of jobs) settlements.push(await attemptInSavepoint(tx, job));
    return settlements;
  };
}

async function attemptInSavepoint(
  tx: OpenTransaction,
  { work, resolve, reject }: Job,
): Promise<() => void> {
  const savepoint = await tx.savepoint();
  try {
    const value = await work(savepoint.db);
    await runBeforeCommit(savepoint.db);
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
