import type { Socket } from 'node:net';
import pg from 'pg';
import { CompiledQuery, PostgresDialect, type Dialect } from 'kysely';

const CONNECTIONS = 10;
/** What takes longer than these fails, so that nobody waits for ever on a database that hangs. */
const CONNECT_TIMEOUT_MS = 5_000;
const STATEMENT_TIMEOUT_MS = 15_000;
/** A server that is stopped, or its machine, amid a write would keep all others from writing. */
const IDLE_WRITE_TIMEOUT_MS = 5_000;
const SILENCE_TIMEOUT_MS = STATEMENT_TIMEOUT_MS + 1000;

const INT8 = 20;

/**
 * @param url `postgres://…`
 * @param onIdleError told when a connection breaks that nobody is using; it is replaced.
 */
export function openPostgres(url: string, onIdleError: (error: Error) => void): Dialect {
  const pool = new pg.Pool({
    connectionString: url,
    max: CONNECTIONS,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    statement_timeout: STATEMENT_TIMEOUT_MS,
    idle_in_transaction_session_timeout: IDLE_WRITE_TIMEOUT_MS,
    application_name: 'service-local',
    types: { getTypeParser },
    Client: PlannedOnce,
  });
  pool.on('error', onIdleError);
  pool.on('connect', (client) => {
    // The pool listens only while nobody uses a connection; whoever does is told by his query.
    client.on('error', () => {});
    // One that has gone silent would keep each who gets it waiting.
    const socket = client.connection.stream as Socket;
    socket.setTimeout(SILENCE_TIMEOUT_MS, () => socket.destroy());
  });
  return new PostgresDialect({
    pool,
    // Whatever the defaults of the database are: a snapshot from before the write lock was had would
    // be an old one, and what is acknowledged must be on disk.
    async onCreateConnection(connection) {
      for (const setting of [
        "default_transaction_isolation = 'read committed'",
        'synchronous_commit = on',
      ]) {
        await connection.executeQuery(CompiledQuery.raw(`set ${setting}`));
      }
    },
  });
}

/** Times and counts are far below 2^53, where pg would give texts for fear of larger ones. */
const getTypeParser: pg.CustomTypesConfig['getTypeParser'] = (id, format) =>
  (id as number) === INT8 ? Number : pg.types.getTypeParser(id, format);

/** As many plans each connection keeps. */
const MOST_PLANS = 500;
const RESULT_TYPE_CHANGED = '0A000';

/** Under which names connections keep the plans of statements. */
const names = new Map<string, string>();
let named = 0;

function nameOf(statement: string): string | undefined {
  let name = names.get(statement);
  if (name === undefined && names.size < MOST_PLANS) {
    name = `planned_${named}`;
    named += 1;
    names.set(statement, name);
  }
  return name;
}

/** Plans a statement once for each connection, since that takes longer than to run it. */
class PlannedOnce extends pg.Client {
  override query(...args: never[]): never {
    const [text, values] = args as readonly unknown[];
    if (typeof text !== 'string' || !Array.isArray(values) || values.length === 0) {
      return super.query(...(args as [never]));
    }
    const name = nameOf(text);
    const result = super.query({ text, values, ...(name !== undefined && { name }) });
    return result.catch((error: unknown) => {
      // A newer version has migrated the schema. Under a new name the statement is planned anew.
      if (error instanceof pg.DatabaseError && error.code === RESULT_TYPE_CHANGED) {
        names.delete(text);
      }
      throw error;
    }) as never;
  }
}
