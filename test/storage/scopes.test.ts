import { afterEach, beforeEach, expect, test } from 'vitest';
import { appendAudit, readAudit, verifyWholeAudit } from '../../src/identity/audit.ts';
import { openStorage, type Storage } from '../../src/storage/storage.ts';
import { newTables, type TestDatabase } from './databases.ts';
import { whenBlocked } from './when-blocked.ts';

/** Writes of two servers on one PostgreSQL database. */
let database: TestDatabase;
let servers: readonly [Storage, Storage];

beforeEach(async () => {
  database = await newTables('postgres');
  servers = [await openStorage(database.location), await openStorage(database.location)];
});
afterEach(async () => {
  for (const server of servers) await server.close();
  await database.remove();
});

const either = (turn: number): Storage => servers[turn % 2]!;

/** Reads the number of a subject, and writes the next one. */
const countUp = (on: Storage, scope: string, options: object = { scope }): Promise<number> =>
  on.write(async (tx) => {
    const row = await tx
      .selectFrom('customers')
      .select('created_at')
      .where('customer_id', '=', scope)
      .executeTakeFirst();
    const next = (row?.created_at ?? 0) + 1;
    const customer = { customer_id: scope, name: scope, created_at: next };
    await (
      row === undefined
        ? tx.insertInto('customers').values(customer)
        : tx.updateTable('customers').set(customer).where('customer_id', '=', scope)
    ).execute();
    return next;
  }, options);

/** A write that has begun, and does not end before `end`. */
async function hold(on: Storage, options: object): Promise<{ readonly end: () => Promise<void> }> {
  const begun = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  const write = on.write(async () => {
    begun.resolve();
    await ended.promise;
  }, options);
  await begun.promise;
  return {
    end() {
      ended.resolve();
      return write;
    },
  };
}

test('a write in a scope does not wait for another server that writes in another scope', async () => {
  const other = await hold(servers[0], { scope: 'a' });
  expect(await countUp(servers[1], 'b')).toBe(1);
  await other.end();
});

test.each([
  ['in the same scope', { scope: 'a' }, { scope: 'a' }],
  ['without a scope, for one in a scope', { scope: 'a' }, {}],
  ['in a scope, for one without', {}, { scope: 'a' }],
  ['for a halt, for one in a scope', { scope: 'a' }, { urgent: true }],
])('two servers write one after the other %s', async (_what, first, second) => {
  const order: string[] = [];
  const held = await hold(servers[0], first);
  const waiting = servers[1].write(async () => void order.push('second'), second);
  await whenBlocked(database);
  order.push('first');
  await held.end();
  await waiting;
  expect(order).toEqual(['first', 'second']);
});

test('no update is lost whether the writers have a scope or not', async () => {
  const counts = Array.from({ length: 240 }, (_, i) => {
    const scope = ['a', 'b', 'c'][i % 3]!;
    return countUp(either(i), scope, i % 40 < 3 ? {} : { scope });
  });
  await Promise.all(counts);
  const rows = await servers[0].read
    .selectFrom('customers')
    .select(['customer_id', 'created_at'])
    .orderBy('customer_id')
    .execute();
  expect(rows).toEqual(['a', 'b', 'c'].map((id) => ({ customer_id: id, created_at: 80 })));
});

test('batches of two servers over the same scopes in opposite orders do not block each other', async () => {
  const scopes = Array.from({ length: 40 }, (_, i) => `scope-${i}`);
  for (let i = 0; i < 5; i += 1) {
    await Promise.all([
      ...scopes.map((scope) => countUp(servers[0], scope)),
      ...scopes.toReversed().map((scope) => countUp(servers[1], scope)),
    ]);
  }
  const rows = await servers[0].read.selectFrom('customers').select('created_at').execute();
  expect(rows).toEqual(scopes.map(() => ({ created_at: 10 })));
});

test('the audit log of two servers that write in different scopes is one chain', async () => {
  await Promise.all(
    Array.from({ length: 200 }, (_, i) =>
      either(i).write(
        (tx) => appendAudit(tx, Date.now(), { actor: 'server', action: 'test', target: `n:${i}` }),
        { scope: `scope-${i % 7}` },
      ),
    ),
  );
  const { read } = servers[0];
  const { last, fault } = await verifyWholeAudit((after) => readAudit(read, after, 64));
  expect(fault).toBeUndefined();
  expect(last.seq).toBe(200);
  const { entries } = await readAudit(read, 0, 1000);
  expect(new Set(entries.map(({ target }) => target)).size).toBe(200);
});

test('after a halt of one server is acknowledged, no write in a scope of the other misses it', async () => {
  const halt_id = 'halt';
  let isHalted = false;
  const missed: number[] = [];
  const trade = (i: number): Promise<void> => {
    const beganAfter = isHalted;
    return servers[1].write(
      async (tx) => {
        const halt = await tx.selectFrom('halts').select('halt_id').executeTakeFirst();
        if (halt === undefined && beganAfter) missed.push(i);
        if (halt !== undefined) return;
        const row = { customer_id: `trade-${i}`, name: 'x', created_at: 1 };
        await tx.insertInto('customers').values(row).execute();
      },
      { scope: `bot:${i % 5}` },
    );
  };
  const traded: Promise<void>[] = [];
  const over = new AbortController();
  const trading = (async () => {
    for (let i = 0; !over.signal.aborted; i += 1) {
      traded.push(trade(i));
      if (i % 20 === 0) await Promise.all(traded);
    }
  })();
  const count = async (): Promise<number> =>
    (await servers[0].read.selectFrom('customers').select('customer_id').execute()).length;
  while ((await count()) < 50);
  const unlifted = { lifted_at: null, lifted_by: null, lift_reason: null };
  const about = { scope: 'all', bot_id: null, reason: 'r', requested_by: 'x' } as const;
  await servers[0].write(
    (tx) =>
      tx
        .insertInto('halts')
        .values({ halt_id, ...about, requested_at: 1, ...unlifted })
        .execute(),
    { urgent: true },
  );
  isHalted = true;
  const before = await count();
  const done = traded.length;
  while (traded.length < done + 50) await new Promise(setImmediate);
  over.abort();
  await trading;
  await Promise.all(traded);
  expect(missed).toEqual([]);
  expect(await count()).toBe(before);
});

test('a write in a scope that fails changes nothing, and those committed with it succeed', async () => {
  const row = { customer_id: 'b', name: 'b', created_at: 1 };
  const add = async (tx: Parameters<Parameters<Storage['write']>[0]>[0]) => {
    await tx.insertInto('customers').values(row).execute();
    const event = { actor: 'server', action: 'test', target: 'b:1' } as const;
    await appendAudit(tx, 1, event);
  };
  const results = await Promise.allSettled([
    countUp(servers[0], 'a'),
    servers[0].write(
      async (tx) => {
        await add(tx);
        await add(tx);
      },
      { scope: 'b' },
    ),
    servers[0].write(
      async (tx) => {
        await add(tx);
        throw new RangeError('no');
      },
      { scope: 'c' },
    ),
    countUp(servers[0], 'd'),
  ]);
  expect(results).toMatchObject([
    { status: 'fulfilled', value: 1 },
    { status: 'rejected', reason: { code: 'storage_unavailable' } },
    { status: 'rejected', reason: new RangeError('no') },
    { status: 'fulfilled', value: 1 },
  ]);
  const rows = await servers[1].read.selectFrom('customers').select('customer_id').execute();
  expect(rows.map(({ customer_id }) => customer_id).sort()).toEqual(['a', 'd']);
  expect((await readAudit(servers[1].read, 0, 10)).entries).toEqual([]);
});
