import { Transaction, type Dialect, type Kysely } from 'kysely';
import { synchronousRunners } from './prepare-query.ts';
import type { Db, Tables } from './tables.ts';

/** A part of a transaction that can be undone alone. */
export interface Savepoint {
  /** A different object for each transaction and savepoint. */
  readonly db: Db;
  commit(): Promise<void>;
  rollback(): Promise<void>;
}

/**
 * Begins a transaction once no other server can write, or if there are scopes, once no other server
 * can write in one of them or without a scope.
 */
export type Begin = (scopes: readonly string[] | undefined) => Promise<OpenTransaction>;

export interface OpenTransaction extends Savepoint {
  /** Begins a savepoint; only one exists at a time. */
  savepoint(): Promise<Savepoint>;
}

/**
 * Begins transactions that send each statement without waiting for the results of those before;
 * Kysely's own would wait.
 *
 * @param lock keeps other servers from writing until the end of the transaction.
 */
export function postgresTransactions(
  db: Kysely<Tables>,
  dialect: Dialect,
  lock: (tx: Db, scopes: readonly string[] | undefined) => Promise<void>,
): Begin {
  const driver = dialect.createDriver();
  return async (scopes) => {
    const tx = await db.startTransaction().execute();
    const connection = await tx.getExecutor().provideConnection(async (one) => one);
    const executor = tx
      .getExecutor()
      .withConnectionProvider({ provideConnection: (consumer) => consumer(connection) });
    const open = (): Db =>
      new Transaction<Tables>({ config: { dialect }, dialect, driver, executor });
    const opened: OpenTransaction = {
      db: open(),
      commit: () => tx.commit().execute(),
      rollback: () => tx.rollback().execute(),
      async savepoint() {
        const part = await tx.savepoint('work').execute();
        return {
          db: open(),
          commit: async () => void (await part.releaseSavepoint('work').execute()),
          rollback: async () => void (await part.rollbackToSavepoint('work').execute()),
        };
      },
    };
    try {
      await lock(opened.db, scopes);
      return opened;
    } catch (error) {
      // The connection may have broken, so that the rollback fails: the first error matters.
      await opened.rollback().catch(() => {});
      throw error;
    }
  };
}

/**
 * Begins transactions on the single connection of a SQLite database, in a third of the time that
 * Kysely takes.
 */
export function sqliteTransactions(db: Kysely<Tables>, dialect: Dialect): Begin {
  const executor = db.getExecutor();
  const parts = { config: { dialect }, dialect, driver: dialect.createDriver(), executor };
  const open = (): Db => new Transaction<Tables>(parts);
  const run = synchronousRunners.get(executor.adapter)!;
  // Async, so that an error rejects.
  const execute = async (statement: string): Promise<void> => void run(statement, []);
  return async () => {
    await execute('begin');
    return {
      db: open(),
      commit: () => execute('commit'),
      rollback: () => execute('rollback'),
      async savepoint() {
        await execute('savepoint work');
        return {
          db: open(),
          commit: () => execute('release work'),
          rollback: () => execute('rollback to work'),
        };
      },
    };
  };
}
