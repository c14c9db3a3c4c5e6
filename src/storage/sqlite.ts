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

/** Time that opening the file waits for a lock of another process, ms. */
const OPENING_TIMEOUT_MS = 10_000;
/**
 * Time that a statement blocks this process for such a lock, ms. `retryDuringOutage` handles longer
 * waits, during which the process can do other work.
 */
const BUSY_TIMEOUT_MS = 100;

const MOST_STATEMENTS = 500;

export interface OpenSqlite {
  /** For one connection that writes. */
  readonly write: Dialect;
  /** For one that reads what is committed, and does not wait for writes. */
  readonly read: Dialect;
  /** Puts the write-ahead log into the file and empties it. */
  readonly truncateLog: () => void;
  /** Called once the schema exists: from then on, statements use the short lock timeout. */
  readonly onOpened: () => void;
}

/**
 * Opens the file, or makes it, for its owner only.
 * @throws ServiceError `storage_unavailable`
 */
export function openSqlite(file: string): OpenSqlite {
  try {
    makeDirectory(dirname(file), 0o700);
    const writer = new Database(file, { timeout: OPENING_TIMEOUT_MS });
    chmodSync(file, 0o600);
    writer.pragma('journal_mode = WAL');
    // WAL alone would settle for NORMAL, under which a power cut loses acknowledged writes.
    writer.pragma('synchronous = FULL');
    writer.pragma('foreign_keys = ON');
    // What is erased, such as the answers to renewals, is overwritten.
    writer.pragma('secure_delete = ON');
    const reader = new Database(file, { timeout: BUSY_TIMEOUT_MS, readonly: true });
    return {
      write: new InProcess(withKeptStatements(writer)),
      read: new InProcess(withKeptStatements(reader)),
      onOpened: () => void writer.pragma(`busy_timeout = ${BUSY_TIMEOUT_MS}`),
      truncateLog: () => void writer.pragma('wal_checkpoint(TRUNCATE)'),
    };
  } catch (error) {
    throw new ServiceError('storage_unavailable', `${file}: ${(error as Error).message}`, {
      remedy: 'See that it is a SQLite file which this user may read and write.',
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
      if (statement.reader) return statement.all(parameters);
      statement.run(parameters);
      return [];
    });
    return adapter;
  }

  override createQueryCompiler(): QueryCompiler {
    return new PlannedOnce();
  }
}

/**
 * Where a parameter is compared with an indexed column, SQLite plans the statement anew for each
 * value (https://sqlite.org/c3ref/prepare.html), which takes ten times as long as running it. It does
 * not look into an expression, such as this one that changes nothing.
 */
class PlannedOnce extends SqliteQueryCompiler {
  protected override getCurrentParameterPlaceholder(): string {
    return '+?';
  }
}

/** Preparing a statement takes longer than running it, so each is prepared once. */
function withKeptStatements(database: Database.Database): SqliteDatabase {
  const kept = new Map<string, SqliteStatement>();
  return {
    prepare(sql) {
      const text = sql === 'begin' ? BEGIN : sql;
      let statement = kept.get(text);
      if (statement === undefined) {
        if (kept.size >= MOST_STATEMENTS) kept.clear();
        statement = database.prepare(text);
        kept.set(text, statement);
      }
      return statement;
    },
    close: () => database.close(),
  };
}

/** Takes the lock at once: a transaction that reads first and then finds the lock taken must fail. */
const BEGIN = 'begin immediate';
