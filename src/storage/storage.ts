import { Kysely, sql } from 'kysely';
import { migrate } from './migrate.ts';
import { openPostgres } from './postgres.ts';
import { readDialect } from './read-dialect.ts';
import { openSqlite } from './sqlite.ts';
import { refuseRestoring } from './restore-marker.ts';
import type { Db, Tables } from './tables.ts';
import { WriteQueue, type WriteOptions } from './write-queue.ts';

/**
 * What the hosted side keeps. Writes are serialized, over all servers on one database: within
 * `write` what was read stays as it was read until the work is committed. That is the one rule by
 * which nothing is lost, used twice or decided on what is no longer true.
 */
export interface Storage {
  readonly kind: 'sqlite' | 'postgres';
  /**
   * Reads committed data. A query is retried during an outage of a few seconds.
   * @throws ServiceError `storage_unavailable` from each query that the database does not answer.
   */
  readonly read: Db;
  /**
   * Does all of the work or, when it throws, nothing of it. Resolves when it is durable; works that
   * are waiting at the same time are committed together. The work awaits nothing but its queries, as
   * all others wait for it, and has no other effect: it is done again when one beside it fails, and
   * after an outage of a few seconds.
   *
   * @throws what the work throws; ServiceError `storage_unavailable` or `overloaded`, after which
   * nothing of the work is done, or ever will be. OutcomeUnknown, when the connection breaks during a
   * commit: then it may be done.
   */
  write<T>(work: (tx: Db) => Promise<T>, options?: WriteOptions): Promise<T>;
  /**
   * Leaves nothing of what has been erased in files that only the database reads. PostgreSQL does
   * that by itself, in its own time.
   */
  eraseTraces(): Promise<void>;
  /** @throws ServiceError `storage_unavailable` when it does not answer. */
  check(): Promise<void>;
  /** Finishes the writes it has accepted, and refuses others. */
  close(): Promise<void>;
}

/** Where it is: a file of SQLite, or the URL of a PostgreSQL. */
export type StorageLocation =
  | { readonly file: string }
  | {
      readonly url: string;
      /** Opens a database although a restore into it is not complete. */
      readonly isRestoring?: boolean;
    };

/** Any number: with PostgreSQL, servers take this lock one after the other. */
const WRITE_LOCK = 7_305_811;

/**
 * Opens what is there and brings it to the schema of this version.
 *
 * @param onIdleError told of broken connections that nobody was using.
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
  const storage = storageOn('sqlite', writer, reader, async () => {}, { eraseTraces });
  return { ...storage, ready: storage.ready.then(dialects.onOpened) };
}

function onPostgres(
  { url, isRestoring }: Extract<StorageLocation, { url: string }>,
  onIdleError: (error: Error) => void,
): Opening {
  const dialects = openPostgres(url, onIdleError);
  const writer = new Kysely<Tables>({ dialect: dialects.write });
  const reader = new Kysely<Tables>({ dialect: readDialect(dialects.read) });
  const lock = async (tx: Db): Promise<void> => {
    await sql`select pg_advisory_xact_lock(${sql.lit(WRITE_LOCK)})`.execute(tx);
  };
  return storageOn('postgres', writer, reader, lock, {
    async lockToOpen(tx) {
      await lock(tx);
      if (isRestoring !== true) await refuseRestoring(tx);
    },
  });
}

function storageOn(
  kind: Storage['kind'],
  writer: Db,
  reader: Db,
  lock: (tx: Db) => Promise<void>,
  {
    lockToOpen = lock,
    eraseTraces = () => {},
  }: {
    /** Called instead of `lock` before the schema is brought up to date. */
    readonly lockToOpen?: typeof lock;
    readonly eraseTraces?: () => void;
  },
): Opening {
  const queue = new WriteQueue(writer, lock);
  return {
    kind,
    read: reader,
    write: (work, options) => queue.write(work, options),
    async eraseTraces() {
      // No write of this process is under way then: on SQLite, it is done before others get a turn.
      await new Promise(setImmediate);
      eraseTraces();
    },
    async check() {
      await sql`select 1`.execute(reader);
    },
    async close() {
      await queue.close();
      // The last connection to SQLite puts the write-ahead log into the file; a reader could not.
      await reader.destroy();
      await writer.destroy();
    },
    ready: migrate(writer, lockToOpen, kind),
  };
}
