import { readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openStorage, type Storage } from '../../src/storage/storage.ts';
import { DATABASES, newDatabase, newTables, type TestDatabase } from './databases.ts';
import { isAtLength } from '../length.ts';

describe.each(DATABASES)('storage on %s', (kind) => {
  let database: TestDatabase;
  let storage: Storage;

  beforeEach(async () => {
    database = await newTables(kind);
    storage = await openStorage(database.location);
  });

  afterEach(async () => {
    await storage.close();
    await database.remove();
  });

  const addCustomer = (on: Storage, id: string): Promise<string> =>
    on.write(async (tx) => {
      const row = { customer_id: id, name: id, created_at: 1_800_000_000_000 };
      await tx.insertInto('customers').values(row).execute();
      return id;
    });
  const customers = async (): Promise<string[]> => {
    const rows = await storage.read.selectFrom('customers').select('customer_id').execute();
    return rows.map((row) => row.customer_id).sort();
  };

  test('a write that throws changes nothing, and those committed with it succeed', async () => {
    const results = await Promise.allSettled([
      addCustomer(storage, 'a'),
      storage.write(async (tx) => {
        const row = { customer_id: 'b', name: 'b', created_at: 1 };
        await tx.insertInto('customers').values(row).execute();
        throw new RangeError('no');
      }),
      addCustomer(storage, 'c'),
    ]);
    expect(results).toEqual([
      { status: 'fulfilled', value: 'a' },
      { status: 'rejected', reason: new RangeError('no') },
      { status: 'fulfilled', value: 'c' },
    ]);
    expect(await customers()).toEqual(['a', 'c']);
  });

  test.runIf(isAtLength || kind === 'sqlite')(
    'an urgent write runs before all waiting ones, and is never rejected as overloaded',
    async () => {
      const order: string[] = [];
      const note = (what: string, urgent = false) =>
        storage.write(
          async () => {
            if (order.at(-1) !== what) order.push(what);
          },
          { urgent },
        );
      const waiting = Array.from({ length: 5000 }, () => note('usual'));
      await expect(note('too much')).rejects.toMatchObject({ code: 'overloaded' });
      // The batch that has started is finished first.
      await waiting[0];
      await note('urgent', true);
      expect(order).toEqual(['usual', 'urgent']);
      await Promise.all(waiting);
      expect(order).toEqual(['usual', 'urgent', 'usual']);
    },
  );

  test('an urgent write succeeds when a concurrent write fails', async () => {
    const failing = storage.write(async () => Promise.reject(new RangeError('no')));
    const [usual, urgent] = await Promise.allSettled([
      failing,
      storage.write(async () => 'done', { urgent: true }),
    ]);
    expect([usual.status, urgent.status]).toEqual(['rejected', 'fulfilled']);
  });

  test('a query that the database rejects fails as storage_unavailable, with its error as cause', async () => {
    await addCustomer(storage, 'a');
    await expect(addCustomer(storage, 'a')).rejects.toMatchObject({
      code: 'storage_unavailable',
      cause: { message: expect.stringMatching(/unique/i) as string },
    });
    expect(await customers()).toEqual(['a']);
  });

  test('writes accepted before close are finished, and later ones are rejected', async () => {
    const accepted = addCustomer(storage, 'a');
    const closed = storage.close();
    await expect(addCustomer(storage, 'b')).rejects.toMatchObject({ code: 'storage_unavailable' });
    expect(await accepted).toBe('a');
    await closed;
    storage = await openStorage(database.location);
    expect(await customers()).toEqual(['a']);
  });

  test('times and counts are read as numbers', async () => {
    await addCustomer(storage, 'a');
    expect(await storage.read.selectFrom('customers').selectAll().executeTakeFirst()).toEqual({
      customer_id: 'a',
      name: 'a',
      created_at: 1_800_000_000_000,
    });
  });

  test('a database with an unknown migration that is not recorded as an expand step is rejected', async () => {
    await database.execute(
      `insert into schema_migrations (number, name, checksum) values (999, 'from the future', 'x')`,
    );
    await expect(openStorage(database.location)).rejects.toMatchObject({
      code: 'storage_unavailable',
      reason: 'newer_schema',
      message: expect.stringMatching(
        /cannot use it after migration 999, from the future$/,
      ) as string,
    });
  });
});

describe('a SQLite file', () => {
  let database: TestDatabase;
  let storage: Storage;
  let directory: string;
  beforeEach(async () => {
    database = await newTables('sqlite');
    storage = await openStorage(database.location);
    directory = dirname((database.location as { file: string }).file);
  });
  afterEach(async () => {
    await storage.close();
    await database.remove();
  });

  const name = (text: string): Promise<unknown> =>
    storage.write((tx) =>
      tx.insertInto('customers').values({ customer_id: text, name: text, created_at: 1 }).execute(),
    );
  const bytes = async (): Promise<string> => {
    const files = await readdir(directory);
    const contents = files.map((file) => readFile(join(directory, file), 'latin1'));
    return (await Promise.all(contents)).join('');
  };

  test('a closed SQLite database is a single file', async () => {
    await name('acme');
    await storage.check();
    await storage.close();
    expect(await readdir(directory)).toEqual(['server.sqlite']);
    expect(await bytes()).toContain('acme');
  });

  test('a SQLite database and its journals contain no erased data', async () => {
    const secret = 'a signature that nobody may find';
    await name(secret);
    expect(await bytes()).toContain(secret);
    await storage.write((tx) => tx.deleteFrom('customers').execute());
    await storage.eraseTraces();
    expect(await bytes()).not.toContain(secret);
  });
});

// Not on SQLite, where one process cannot stand for two: waiting for a lock blocks the process.
describe('several servers on one PostgreSQL database', () => {
  test('servers that start concurrently create one schema, and lose no update', async () => {
    const database = await newDatabase('postgres');
    const servers = await Promise.all(
      Array.from({ length: 3 }, () => openStorage(database.location)),
    );
    const countUp = (on: Storage): Promise<void> =>
      on.write(async (tx) => {
        const { seq } = await tx.selectFrom('audit_head').select('seq').executeTakeFirstOrThrow();
        await tx
          .updateTable('audit_head')
          .set({ seq: seq + 1 })
          .execute();
      });
    await Promise.all(Array.from({ length: 300 }, (_, i) => countUp(servers[i % 3]!)));
    const head = await servers[0]!.read.selectFrom('audit_head').select('seq').executeTakeFirst();
    expect(head).toEqual({ seq: 300 });
    for (const server of servers) await server.close();
    await database.remove();
  });

  const CUT_OTHERS = `select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()`;

  test('a write whose connection broke before its commit is repeated', async () => {
    const database = await newTables('postgres');
    const server = await openStorage(database.location);
    let attempts = 0;
    const write = server.write(async (tx) => {
      attempts += 1;
      const { seq } = await tx.selectFrom('audit_head').select('seq').executeTakeFirstOrThrow();
      await tx
        .updateTable('audit_head')
        .set({ seq: seq + 1 })
        .execute();
      if (attempts === 1) await database.execute(CUT_OTHERS);
      return tx.selectFrom('audit_head').select('seq').executeTakeFirst();
    });
    expect(await write).toEqual({ seq: 1 });
    expect(attempts).toBe(2);
    await server.close();
    await database.remove();
  });

  test('a write whose connection broke during its commit is reported as unknown', async () => {
    const database = await newTables('postgres');
    const server = await openStorage(database.location);
    await database.execute(`
      create function cut() returns trigger language plpgsql as
        $$ begin perform pg_terminate_backend(pg_backend_pid()); return null; end $$;
      create constraint trigger cut after insert on customers
        deferrable initially deferred for each row execute function cut()`);
    const row = { customer_id: 'a', name: 'a', created_at: 1 };
    let attempts = 0;
    const broken = server.write(async (tx) => {
      attempts += 1;
      await tx.insertInto('customers').values(row).execute();
    });
    await expect(broken).rejects.toMatchObject({
      code: 'storage_unavailable',
      reason: 'outcome_unknown',
    });
    // The write may have been committed, so it is not repeated.
    expect(attempts).toBe(1);
    expect(await server.write(async () => 'done')).toBe('done');
    await server.close();
    await database.remove();
  });

  test('reads continue after their connections break', async () => {
    const database = await newTables('postgres');
    const server = await openStorage(database.location);
    const read = () => server.read.selectFrom('audit_head').select('seq').execute();
    await Promise.all(Array.from({ length: 20 }, read));
    await database.execute(CUT_OTHERS);
    const results = await Promise.all(Array.from({ length: 20 }, read));
    expect(results).toEqual(results.map(() => [{ seq: 0 }]));
    await server.close();
    await database.remove();
  });

  test.runIf(isAtLength)('reads continue after a newer version adds a column', async () => {
    const database = await newTables('postgres');
    const server = await openStorage(database.location);
    const find = () =>
      server.read.selectFrom('customers').selectAll().where('customer_id', '=', 'a').execute();
    expect(await find()).toEqual([]);
    await database.execute(`alter table customers add column note text`);
    expect(await find()).toEqual([]);
    await server.close();
    await database.remove();
  });

  test.runIf(isAtLength)(
    'writes do not fail each other under a stricter default isolation',
    async () => {
      const database = await newTables('postgres');
      await database.execute(`do $$ begin
      execute format('alter database %I set default_transaction_isolation = serializable',
        current_database());
    end $$`);
      const servers = [await openStorage(database.location), await openStorage(database.location)];
      const countUp = (on: Storage): Promise<unknown> =>
        on.write((tx) =>
          tx
            .updateTable('audit_head')
            .set(({ eb }) => ({ seq: eb('seq', '+', 1) }))
            .execute(),
        );
      await Promise.all(Array.from({ length: 100 }, (_, i) => countUp(servers[i % 2]!)));
      const head = await servers[0]!.read.selectFrom('audit_head').select('seq').executeTakeFirst();
      expect(head).toEqual({ seq: 100 });
      for (const server of servers) await server.close();
      await database.remove();
    },
  );
});
