import { chmodSync } from 'node:fs';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import {
  SqliteDialect,
  SqliteQueryCompiler,
  type Dialect,
  type DialectAdapter,
  type QueryCompiler,
  type SqliteDatabase,
  type SqliteStatement,
} from 'kysely';
import { ServiceError } from '../base/errors.ts';
import { makeDirectory } from '../base/make-directory.ts';
import { synchronousRunners } from './prepare-query.ts';

/** Time that opening the file waits for a lock of another process. */
const OPENING_TIMEOUT_MS = 10_000;
/** Time for which a statement may block this process. `retryDuringOutage` waits longer, unblocked. */
const BUSY_TIMEOUT_MS = 100;

const MAX_STATEMENTS = 500;

export interface OpenSqlite {
  readonly write: Dialect;
  /** Reads committed data, without waiting for writes. */
  readonly read: Dialect;
  /** Moves the write-ahead log into the file and empties it. */
  readonly truncateLog: () => void;
  /** Called once the schema exists: from then on, statements use the short lock timeout. */
  readonly onOpened: () => void;
}

/**
 * Opens or creates the file, readable only by its owner.
 * @throws ServiceError `storage_unavailable`
 */
export function openSqlite(file: string): OpenSqlite {
  try {
    makeDirectory(dirname(file), 0o700);
    const writer = new Database(file, { timeout: OPENING_TIMEOUT_MS });
    chmodSync(file, 0o600);
    writer.pragma('journal_mode = WAL');
    // With NORMAL, the usual setting for WAL, a power failure loses acknowledged writes.
    writer.pragma('synchronous = FULL');
    writer.pragma('foreign_keys = ON');
    // Overwrites deleted data, such as the answers to renewals.
    writer.pragma('secure_delete = ON');
    const reader = new Database(file, { timeout: BUSY_TIMEOUT_MS, readonly: true });
    return {
      write: new InProcess(withPreparedStatements(writer)),
      read: new InProcess(withPreparedStatements(reader)),
      onOpened: () => void writer.pragma(`busy_timeout = ${BUSY_TIMEOUT_MS}`),
      truncateLog: () => void writer.pragma('wal_checkpoint(TRUNCATE)'),
    };
  } catch (error) {
    throw new ServiceError('storage_unavailable', `${file}: ${(error as Error).message}`, {
      remedy: 'Check that it is a SQLite file that this user can read and write.',
      cause: error,
    });
  }
}

class InProcess extends SqliteDialect {
  readonly #database: SqliteDatabase;

  constructor(database: SqliteDatabase) {
    super({ database });
    this.#database = database;
  }

  override createAdapter(): DialectAdapter {
    const adapter = super.createAdapter();
    synchronousRunners.set(adapter, (sql, parameters) => {
      const statement = this.#database.prepare(sql);
      if (statement.reader) return { rows: statement.all(parameters), changes: 0 };
      return { rows: [], changes: Number(statement.run(parameters).changes) };
    });
    return adapter;
  }

  override createQueryCompiler(): QueryCompiler {
    return new PlannedOnce();
  }
}

/**
 * When a parameter is compared with an indexed column, SQLite plans the statement again for each
 * value (https://sqlite.org/c3ref/prepare.html), which takes ten times as long as running it. The
 * unary plus, which changes nothing, prevents that.
 */
class PlannedOnce extends SqliteQueryCompiler {
  protected override getCurrentParameterPlaceholder(): string {
    return '+?';
  }
}

/** Prepares each statement once, since that takes longer than running it. */
function withPreparedStatements(database: Database.Database): SqliteDatabase {
  const statements = new Map<string, SqliteStatement>();
  return {
    prepare(sql) {
      const text = sql === 'begin' ? BEGIN : sql;
      let statement = statements.get(text);
      if (statement === undefined) {
        if (statements.size >= MAX_STATEMENTS) statements.clear();
        statement = database.prepare(text);
        statements.set(text, statement);
      }
      return statement;
    },
    close: () => database.close(),
  };
}

/** Locks for writing immediately: a transaction that reads first may fail to get the lock later. */
const BEGIN = 'begin immediate';
