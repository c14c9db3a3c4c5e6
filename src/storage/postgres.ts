import pg from 'pg';
import { PostgresDialect, type Dialect } from 'kysely';

const CONNECTIONS = 10;
/** What takes longer than these fails, so that nobody waits for ever on a database that hangs. */
const CONNECT_TIMEOUT_MS = 5_000;
const STATEMENT_TIMEOUT_MS = 15_000;

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
    query_timeout: STATEMENT_TIMEOUT_MS + 1000,
    application_name: 'service-local',
    types: { getTypeParser },
  });
  pool.on('error', onIdleError);
  return new PostgresDialect({ pool });
}

/** Times and counts are far below 2^53, where pg would give texts for fear of larger ones. */
const getTypeParser: pg.CustomTypesConfig['getTypeParser'] = (id, format) =>
  (id as number) === INT8 ? Number : pg.types.getTypeParser(id, format);
