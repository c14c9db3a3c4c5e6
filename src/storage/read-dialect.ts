import type {
  CompiledQuery,
  DatabaseConnection,
  Dialect,
  Driver,
  Kysely,
  QueryResult,
} from 'kysely';
import { retryDuringOutage } from './outage.ts';
import { wrapDriverError } from './storage-errors.ts';

/**
 * Dialect for queries that only read committed data. Each query takes its own connection and is
 * retried during a short outage. Driver errors become `storage_unavailable`.
 */
export function readDialect(dialect: Dialect): Dialect {
  return {
    createAdapter: () => dialect.createAdapter(),
    createDriver: () => new ReadDriver(dialect.createDriver()),
    createIntrospector: (db: Kysely<unknown>) => dialect.createIntrospector(db),
    createQueryCompiler: () => dialect.createQueryCompiler(),
  };
}

class ReadDriver implements Driver {
  readonly #driver: Driver;
  readonly #connection: DatabaseConnection;

  constructor(driver: Driver) {
    this.#driver = driver;
    this.#connection = {
      executeQuery: (query) => this.#read(query),
      streamQuery: noStream,
    };
  }

  async #read<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    try {
      return await retryDuringOutage(async () => {
        const connection = await this.#driver.acquireConnection();
        try {
          return await connection.executeQuery<R>(query);
        } finally {
          await this.#driver.releaseConnection(connection);
        }
      });
    } catch (error) {
      throw wrapDriverError(error);
    }
  }

  init(): Promise<void> {
    return this.#driver.init();
  }

  acquireConnection(): Promise<DatabaseConnection> {
    return Promise.resolve(this.#connection);
  }

  releaseConnection(): Promise<void> {
    return Promise.resolve();
  }

  beginTransaction = noTransaction;
  commitTransaction = noTransaction;
  rollbackTransaction = noTransaction;

  destroy(): Promise<void> {
    return this.#driver.destroy();
  }
}

function noTransaction(): Promise<never> {
  return Promise.reject(new TypeError('begin a transaction with `storage.write`'));
}

function noStream(): never {
  throw new TypeError('queries of `storage.read` are not streamed');
}
