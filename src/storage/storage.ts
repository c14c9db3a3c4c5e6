import { Kysely, sql } from 'kysely';
import type { ServiceError } from '../base/errors.ts';
import { bindSpan } from '../base/tracing.ts';
import { lockWrites } from './lock-writes.ts';
import { migrate, schemaFault } from './migrate.ts';
import { MIGRATIONS } from './migrations.ts';
import { postgresTransactions, sqliteTransactions, type Begin } from './open-transaction.ts';
import { openPostgres, type Connections } from './postgres.ts';
import { readDialect } from './read-dialect.ts';
import { openSqlite } from './sqlite.ts';
import { refuseRestoring } from './restore-marker.ts';
import type { Db, Tables } from './tables.ts';
import { WriteQueue, type WriteOptions } from './write-queue.ts';

/**
 * Database of the hosted side. Writes are serialized across all servers on it, except writes of
 * different scopes: data that is read within `write` does not change until the commit. All guarantees
 * against lost updates, double use and decisions on stale data rest on this rule.
 */
export interface Storage {
  readonly kind: 'sqlite' | 'postgres';
  /**
   * Reads committed data. Each query is retried during an outage of a few seconds.
   * @throws ServiceError `storage_unavailable`, from each query.
   */
  readonly read: Db;
  /**
   * Runs `work` in a transaction, and resolves when it is durable. Concurrent calls are committed
   * together. `work` must await only its queries, since all other writes wait for it, and must have
   * no other effects, since it runs again if another write of the same commit fails or after an
   * outage of a few seconds.
   *
   * @throws what `work` throws; ServiceError `storage_unavailable` or `overloaded`, after which
   *   nothing is or will be written; OutcomeUnknown if the connection breaks during the commit.
   */
  write<T>(work: (tx: Db) => Promise<T>, options?: WriteOptions): Promise<T>;
  /**
   * Removes deleted data from SQLite's write-ahead log. PostgreSQL recycles its log on its own.
   */
  eraseTraces(): Promise<void>;
  /** Runs an empty query. @throws ServiceError `storage_unavailable` */
  check(): Promise<void>;
  /**
   * Returns an error with the remedy if a newer version has made the database unusable for this one
   * since it was opened.
   */
  schemaFault(): Promise<ServiceError | undefined>;
  /** Use of the connections to PostgreSQL; undefined for SQLite. */
  connections(): Connections | undefined;
  /** Finishes accepted writes, and rejects new ones. */
  close(): Promise<void>;
}

/** Dependencies of code that changes the database. */
export interface StorageService {
  readonly storage: Storage;
  /** Milliseconds since the Unix epoch. */
  readonly clock: () => number;
}

/** A SQLite file or the URL of a PostgreSQL database. */
export type StorageLocation =
  | { readonly file: string }
  | {
      readonly url: string;
      /** Opens the database even if a restore into it is not complete. */
      readonly isRestoring?: boolean;
    };

/**
 * Opens the database and migrates it to the schema of this version.
 *
 * @param onIdleError called when an idle connection breaks.
 * @throws ServiceError `storage_unavailable`
 */
export async function openStorage(
  location: StorageLocation,
  onIdleError: (error: Error) => void = () => {},
): Promise<Storage> {
  const storage = 'file' in location ? onSqlite(location.file) : onPostgres(location, onIdleError);
  try {
    await storage.ready;
  } catch (error) {
    await storage.close();
    throw error;
  }
  return storage;
}

type Opening = Storage & { readonly ready: Promise<void> };

function onSqlite(file: string): Opening {
  const dialects = openSqlite(file);
  const writer = new Kysely<Tables>({ dialect: dialects.write });
  const reader = new Kysely<Tables>({ dialect: readDialect(dialects.read) });
  const { truncateLog: eraseTraces } = dialects;
  const storage = storageOn('sqlite', writer, reader, {
    begin: sqliteTransactions(writer, dialects.write),
    eraseTraces,
  });
  return { ...storage, ready: storage.ready.then(dialects.onOpened) };
}

function onPostgres(
  { url, isRestoring }: Extract<StorageLocation, { url: string }>,
  onIdleError: (error: Error) => void,
): Opening {
  const dialects = openPostgres(url, onIdleError);
  const writer = new Kysely<Tables>({ dialect: dialects.write });
  const reader = new Kysely<Tables>({ dialect: readDialect(dialects.read) });
  return storageOn('postgres', writer, reader, {
    begin: postgresTransactions(writer, dialects.write, lockWrites),
    connections: dialects.connections,
    async lockToOpen(tx) {
      await lockWrites(tx);
      if (isRestoring !== true) await refuseRestoring(tx);
    },
  });
}

function storageOn(
  kind: Storage['kind'],
  writer: Db,
  reader: Db,
  {
    begin,
    lockToOpen = async () => {},
    eraseTraces = () => {},
    connections = () => undefined,
  }: {
    readonly begin: Begin;
    /** Called in the transaction of the migration. */
    readonly lockToOpen?: (tx: Db) => Promise<void>;
    readonly eraseTraces?: () => void;
    readonly connections?: Storage['connections'];
  },
): Opening {
  const queue = new WriteQueue(begin);
  const known = MIGRATIONS;
  return {
    kind,
    read: reader,
    // The queue runs the work of several callers, whose spans must stay apart.
    write: (work, options) => queue.write(bindSpan(work), options),
    async eraseTraces() {
      // SQLite commits synchronously, so that no write of this process is unfinished after this.
      await new Promise(setImmediate);
      eraseTraces();
    },
    connections,
    async check() {
      await sql`select 1`.execute(reader);
    },
    schemaFault: () => schemaFault(reader, known),
    async close() {
      await queue.close();
      // SQLite's last connection moves the log into the file, which the read-only one cannot do.
      await reader.destroy();
      await writer.destroy();
    },
    ready: migrate(writer, known, lockToOpen, kind),
  };
}
