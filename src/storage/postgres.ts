import type { Socket } from 'node:net';
import pg from 'pg';
import { PostgresDialect, type Dialect } from 'kysely';

const READING_CONNECTIONS = 9;
/** Writes run one after the other, on a connection that reads cannot occupy. */
const WRITING_CONNECTIONS = 1;
const CONNECT_TIMEOUT_MS = 5_000;
const STATEMENT_TIMEOUT_MS = 15_000;
/** A server that is suspended during a write would block all other writers. */
const IDLE_WRITE_TIMEOUT_MS = 5_000;
const SILENCE_TIMEOUT_MS = STATEMENT_TIMEOUT_MS + 1000;
/**
 * After a query has had no answer for this time, another connection checks whether the database
 * responds, ms.
 */
const SUSPECT_AFTER_MS = 2_000;
const PROBE_TIMEOUT_MS = 3_000;

const INT8 = 20;

/** Connections of this process to the database. */
export interface Connections {
  readonly used: number;
  readonly idle: number;
  /** Queries that wait for a connection. */
  readonly waiting: number;
}

export interface OpenPostgres {
  /** For transactions, one at a time. */
  readonly write: Dialect;
  readonly read: Dialect;
  readonly connections: () => Connections;
}

/**
 * @param url `postgres://…`
 * @param onIdleError called when an idle connection breaks; the pool replaces it.
 */
export function openPostgres(url: string, onIdleError: (error: Error) => void): OpenPostgres {
  const Client = watchedClient(databaseProbe(url));
  const pools: pg.Pool[] = [];
  const open = (max: number, pipeline: boolean): Dialect => {
    const pool = new pg.Pool({
      connectionString: url,
      max,
      pipeline,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      statement_timeout: STATEMENT_TIMEOUT_MS,
      idle_in_transaction_session_timeout: IDLE_WRITE_TIMEOUT_MS,
      application_name: 'service-local',
      types: { getTypeParser },
      Client,
      // If Kysely's own hook fails, it never releases the connection.
      onConnect: prepareConnection,
    });
    pool.on('error', onIdleError);
    pool.on('connect', (client) => {
      // The pool listens only on idle connections; on others, the query itself fails.
      client.on('error', () => {});
    });
    pools.push(pool);
    return new PostgresDialect({ pool });
  };
  // Writes of different scopes send their statements without waiting for each other's results.
  return {
    write: open(WRITING_CONNECTIONS, true),
    read: open(READING_CONNECTIONS, false),
    connections() {
      const sum = (of: (pool: pg.Pool) => number): number =>
        pools.reduce((total, pool) => total + of(pool), 0);
      const idle = sum(({ idleCount }) => idleCount);
      return {
        used: sum(({ totalCount }) => totalCount) - idle,
        idle,
        waiting: sum(({ waitingCount }) => waitingCount),
      };
    },
  };
}

/**
 * Set explicitly, independent of database defaults: a snapshot taken before the write lock would be
 * stale, and acknowledged writes must be on disk.
 */
async function prepareConnection(client: pg.ClientBase): Promise<void> {
  await client.query("set default_transaction_isolation = 'read committed'");
  await client.query('set synchronous_commit = on');
}

/** Returns a function that resolves to whether the database answers a new connection. */
function databaseProbe(url: string): () => Promise<boolean> {
  const ask = async (): Promise<boolean> => {
    const client = new pg.Client({
      connectionString: url,
      connectionTimeoutMillis: PROBE_TIMEOUT_MS,
      query_timeout: PROBE_TIMEOUT_MS,
      application_name: 'service-local probe',
    });
    client.on('error', () => {});
    try {
      await client.connect();
      await client.query('select 1');
      return true;
    } catch (error) {
      // A rejection, such as too many connections, is an answer.
      return error instanceof pg.DatabaseError;
    } finally {
      client.end().catch(() => {});
    }
  };
  let asking: Promise<boolean> | undefined;
  return () =>
    (asking ??= ask().finally(() => {
      asking = undefined;
    }));
}

/**
 * A client that closes its connection if a query has no answer and the database does not answer a
 * new connection either, so that callers detect a hanging database within seconds. A slow query,
 * such as one that waits for a lock, continues.
 */
function watchedClient(answers: () => Promise<boolean>): typeof pg.Client {
  return class extends PlannedOnce {
    #open = 0;
    #askedAt = 0;
    #isWatched = false;

    override query(...args: never[]): never {
      if (!this.#isWatched) this.#watch();
      this.#open += 1;
      this.#askedAt = performance.now();
      const result = super.query(...args) as Promise<unknown>;
      const settle = (): void => {
        this.#open -= 1;
      };
      result.then(settle, settle);
      return result as never;
    }

    #watch(): void {
      this.#isWatched = true;
      const socket = this.connection.stream as Socket;
      const check = async (): Promise<void> => {
        if (this.#open > 0) {
          const isLost = performance.now() - this.#askedAt >= SILENCE_TIMEOUT_MS;
          if (isLost || !(await answers())) {
            socket.destroy();
            return;
          }
        }
        if (!socket.destroyed) socket.setTimeout(SUSPECT_AFTER_MS);
      };
      socket.on('timeout', () => void check());
      socket.setTimeout(SUSPECT_AFTER_MS);
    }
  };
}

/** Returns int8 as numbers, not as text: times and counts are far below 2^53. */
const getTypeParser: pg.CustomTypesConfig['getTypeParser'] = (id, format) =>
  (id as number) === INT8 ? Number : pg.types.getTypeParser(id, format);

/** Maximum number of plans that each connection keeps. */
const MAX_PLANS = 500;
const RESULT_TYPE_CHANGED = '0A000';

/** Names of prepared statements, by their SQL. */
const names = new Map<string, string>();
let named = 0;

function nameOf(statement: string): string | undefined {
  let name = names.get(statement);
  if (name === undefined && names.size < MAX_PLANS) {
    name = `planned_${named}`;
    named += 1;
    names.set(statement, name);
  }
  return name;
}

/** Plans each statement once per connection, since planning takes longer than running it. */
class PlannedOnce extends pg.Client {
  #isHeld = false;

  override query(...args: never[]): never {
    if (!this.#isHeld) this.#holdWrites();
    const [text, values] = args as readonly unknown[];
    if (typeof text !== 'string' || !Array.isArray(values) || values.length === 0) {
      return super.query(...(args as [never]));
    }
    const name = nameOf(text);
    const result = super.query({ text, values, ...(name !== undefined && { name }) });
    return result.catch((error: unknown) => {
      // A newer version has migrated the schema. A new name makes PostgreSQL plan the statement again.
      if (error instanceof pg.DatabaseError && error.code === RESULT_TYPE_CHANGED) {
        names.delete(text);
      }
      throw error;
    }) as never;
  }

  /**
   * Sends the queries of this turn of the event loop together: a write to the socket, which wakes
   * PostgreSQL, takes as long as several queries.
   */
  #holdWrites(): void {
    this.#isHeld = true;
    const socket = this.connection.stream as Socket;
    socket.cork();
    // Runs after the reactions to all promises that are settled by now, which may send queries, too.
    process.nextTick(() => {
      this.#isHeld = false;
      socket.uncork();
    });
  }
}
