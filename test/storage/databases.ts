import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { inject } from 'vitest';
import type { Storage, StorageLocation } from '../../src/storage/storage.ts';

/** The two that every contract suite runs on: `describe.each(DATABASES)('… on %s', (kind) => …)`. */
export const DATABASES = ['sqlite', 'postgres'] as const satisfies readonly Storage['kind'][];

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

export async function newSqlite(): Promise<
  TestDatabase & { readonly location: { readonly file: string } }
> {
  const directory = await mkdtemp(join(tmpdir(), 'storage-'));
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

async function newPostgres(admin: string): Promise<TestDatabase> {
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  await query(admin, `create database ${name} strategy file_copy`);
  const url = new URL(admin);
  url.pathname = `/${name}`;
  return {
    location: { url: url.href },
    execute: (sql) => query(url.href, sql),
    remove: () => query(admin, `drop database ${name} with (force)`),
  };
}

async function query(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}
