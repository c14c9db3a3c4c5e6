import { randomUUID } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { inject } from 'vitest';
import { openStorage, type Storage, type StorageLocation } from '../../src/storage/storage.ts';
import { isAtLength } from '../length.ts';
import { SCRATCH } from '../scratch.ts';

/** For tests on both databases: `describe.each(DATABASES)('… on %s', (kind) => …)`. */
export const DATABASES = ['sqlite', 'postgres'] as const satisfies readonly Storage['kind'][];

/**
 * Returns both databases in `npm run test:long`, and only `kind` in `npm test`. For code that does the
 * same on both. Tests of locks, claims and commits that differ between them use `DATABASES`.
 */
export const mainlyOn = (kind: Storage['kind']): readonly Storage['kind'][] =>
  isAtLength ? DATABASES : [kind];

export interface TestDatabase {
  readonly location: StorageLocation;
  /** Runs SQL beside the code under test, as an intruder or a second program would. */
  readonly execute: (sql: string) => Promise<void>;
  readonly remove: () => Promise<void>;
}

/**
 * An empty database, which lasts until `remove`. Close what is open on it first.
 * @param cluster URL of the PostgreSQL in which to make it, for programs that vitest does not run.
 */
export async function newDatabase(kind: Storage['kind'], cluster?: string): Promise<TestDatabase> {
  return kind === 'sqlite' ? newSqlite() : newPostgres(cluster ?? inject('postgres'));
}

/**
 * A database with the tables of this version and nothing in them, for tests that need no other. One
 * of PostgreSQL is used again by the next test, as to make one takes longer than most tests; not so
 * when somebody has worked in it by `execute`.
 */
export async function newTables(kind: Storage['kind']): Promise<TestDatabase> {
  if (kind === 'sqlite') return newSqliteTables();
  const admin = inject('postgres');
  const [free] = await ask<{ name: string }>(
    admin,
    `delete from free_databases where name =
      (select name from free_databases for update skip locked limit 1) returning name`,
  );
  const database = free === undefined ? await newPostgres(admin) : postgresNamed(admin, free.name);
  let isForeign = false;
  return {
    ...database,
    execute(sql) {
      isForeign = true;
      return database.execute(sql);
    },
    async remove() {
      if (isForeign) return database.remove();
      await query(database.location.url, EMPTY_TABLES);
      await ask(admin, `insert into free_databases values ('${database.name}')`);
    },
  };
}

let admins: pg.Pool | undefined;

/** As `query`, over one connection for all tests of this process, which ends with it. */
async function ask<Row extends object>(url: string, sql: string): Promise<Row[]> {
  admins ??= new pg.Pool({
    connectionString: url,
    max: 1,
    idleTimeoutMillis: 0,
    allowExitOnIdle: true,
  }).on('error', () => {});
  return (await admins.query<Row>(sql)).rows;
}

/** Rows of the tables after the migrations; most tests write to few tables. */
const EMPTY_TABLES = `do $$
  declare name text;
  begin
    set local session_replication_role = replica;
    for name in select relname from pg_class where relkind = 'r'
        and relnamespace = 'public'::regnamespace and pg_relation_size(oid) > 0 loop
      if name not in ('schema_migrations', 'database_identity') then execute format('delete from %I', name); end if;
    end loop;
    update database_identity set epoch = 1, place = null, superseded_by = null;
    insert into audit_head (id, seq, hash) values (1, 0, repeat('0', 64));
    insert into trial_head (id, seq, hash) values (1, 0, repeat('0', 64));
  end $$`;

type Sqlite = TestDatabase & { readonly location: { readonly file: string } };

/** Bytes of a SQLite file with the current schema, from which others are copied. */
let tables: Promise<Uint8Array> | undefined;

/** Like `newTables`, on SQLite. */
export async function newSqliteTables(): Promise<Sqlite> {
  const database = await newSqlite();
  tables ??= migrated();
  await writeFile(database.location.file, await tables, { mode: 0o600 });
  return database;
}

async function migrated(): Promise<Uint8Array> {
  const database = await newSqlite();
  const storage = await openStorage(database.location);
  await storage.close();
  const bytes = await readFile(database.location.file);
  await database.remove();
  return bytes;
}

export async function newSqlite(): Promise<Sqlite> {
  const directory = await mkdtemp(join(SCRATCH, 'storage-'));
  const file = join(directory, 'server.sqlite');
  return {
    location: { file },
    async execute(sql) {
      const { default: Database } = await import('better-sqlite3');
      const database = new Database(file);
      try {
        database.exec(sql);
      } finally {
        database.close();
      }
    },
    remove: () => rm(directory, { recursive: true, force: true }),
  };
}

type Postgres = TestDatabase & {
  readonly name: string;
  readonly location: { readonly url: string };
};

async function newPostgres(admin: string): Promise<Postgres> {
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  await query(admin, `create database ${name} strategy file_copy`);
  return postgresNamed(admin, name);
}

function postgresNamed(admin: string, name: string): Postgres {
  const url = new URL(admin);
  url.pathname = `/${name}`;
  return {
    name,
    location: { url: url.href },
    async execute(sql) {
      await query(url.href, sql);
    },
    async remove() {
      await query(admin, `drop database ${name} with (force)`);
    },
  };
}

export async function query<Row extends object>(url: string, sql: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Row>(sql)).rows;
  } finally {
    await client.end();
  }
}
