import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it, test } from 'vitest';
import { exampleDocument } from '../../src/api/bots.ts';
import { purgeIdempotencyKeys } from '../../src/server/idempotency.ts';
import { openStorage } from '../../src/storage/storage.ts';
import { mainlyOn, newDatabase, type TestDatabase } from '../storage/databases.ts';
import { newTestApp, type Answer, type TestApp } from './in-process.ts';

const DAY_MS = 86_400_000;

let server: TestApp;

beforeEach(async () => {
  server = await newTestApp();
});

afterEach(() => server.close());

const REPLAYED = 'idempotency-replayed';

/** Requests that create something, with what they refer to. */
const CREATIONS = [
  ['/bots', { document: exampleDocument('sma', 10) }],
  ['/identity/customers', { name: 'Acme' }],
  ['/identity/plans', { name: 'Pro', entitlements: ['live_trading'] }],
  ['/identity/contracts', { customer_id: 'acme', plan_id: 'pro', ends_at: '2027-01-01T00:00:00Z' }],
  ['/identity/deployments', { contract_id: 'acme-2026', name: 'Tokyo' }],
] as const;

/** Creates what a contract refers to. */
async function headersFor(authorization: string): Promise<Record<string, string>> {
  return {
    authorization,
    'service-step-up': await server.stepUp(authorization, 'customer:acme'),
  };
}

async function addRegistry(authorization: string): Promise<void> {
  const { 2: plan, 3: contract } = CREATIONS;
  for (const [path, body] of [
    ['/identity/customers', { customer_id: 'acme', name: 'Acme' }],
    [plan[0], { ...plan[1], plan_id: 'pro' }],
    [contract[0], { ...contract[1], contract_id: 'acme-2026' }],
  ] as const) {
    await server.send('POST', path, { headers: await headersFor(authorization), body });
  }
}

describe('a repeated request with an Idempotency-Key', () => {
  it.each(CREATIONS)(
    'to %s creates one object and returns the same response',
    async (path, body) => {
      const authorization = await server.bearer('write', 'license', 'read');
      await addRegistry(authorization);
      const key = { 'idempotency-key': randomUUID() };
      const headers = { ...(await headersFor(authorization)), ...key };
      const send = (): Promise<Answer> => server.send('POST', path, { headers, body });
      const count = async (): Promise<number> => {
        const list = await server.send('GET', path, { headers: { authorization } });
        return (list.body as { items: unknown[] }).items.length;
      };
      const before = await count();
      const first = await send();
      expect(first).toMatchObject({ status: 201 });
      expect(first.headers.get(REPLAYED)).toBeNull();
      server.now += 60_000;
      const again = await send();
      expect(again).toMatchObject({ status: 201, body: first.body });
      expect(again.headers.get(REPLAYED)).toBe('true');
      for (const name of ['etag', 'location']) {
        expect(again.headers.get(name)).toBe(first.headers.get(name));
      }
      expect(await count()).toBe(before + 1);
    },
  );

  it('is supported by every operation that declares it', async () => {
    const { body } = await server.send('GET', '/openapi.json');
    const { paths } = body as {
      paths: Record<string, Record<string, { parameters?: { name: string }[] }>>;
    };
    const taking = Object.entries(paths).flatMap(([path, operations]) =>
      Object.values(operations).some(({ parameters = [] }) =>
        parameters.some(({ name }) => name === 'idempotency-key'),
      )
        ? [path]
        : [],
    );
    // The other operations are tested with their resources.
    const ofBots = [
      '/agents/{role}/run',
      '/analyses',
      '/backtest',
      '/chat',
      '/conformance',
      '/deploy',
      '/overrides',
      '/paper/start',
      '/proposals',
      '/risk/validation-report',
      '/stress',
    ].map((what) => `/bots/{bot_ref}${what}`);
    const others = ['/knowledge/documents', '/notifications/rules'];
    const tested = [...CREATIONS.map(([path]) => path), ...ofBots, ...others];
    expect(taking.toSorted()).toEqual(tested.toSorted());
  });

  const create = (headers: Record<string, string>, name = 'Acme'): Promise<Answer> =>
    server.send('POST', '/identity/customers', { headers, body: { name } });

  it('creates one object if sent concurrently', async () => {
    const authorization = await server.bearer('license');
    const headers = { authorization, 'idempotency-key': 'k' };
    const answers = await Promise.all(Array.from({ length: 20 }, () => create(headers)));
    const ids = answers.map(({ body }) => (body as { customer_id: string }).customer_id);
    expect(new Set(ids).size).toBe(1);
    expect(answers.filter((one) => one.headers.get(REPLAYED) === null)).toHaveLength(1);
  });

  it('fails if the key was used for a different request', async () => {
    const authorization = await server.bearer('license', 'write');
    const headers = { authorization, 'idempotency-key': 'k' };
    await create(headers);
    const mismatch = { status: 422, body: { code: 'idempotency_mismatch' } };
    expect(await create(headers, 'Bolt')).toMatchObject(mismatch);
    const elsewhere = { headers, body: { name: 'Acme' } };
    expect(await server.send('POST', '/identity/plans', elsewhere)).toMatchObject(mismatch);
    const unfit = { ...headers, 'idempotency-key': 'two words' };
    expect(await create(unfit)).toMatchObject({ status: 400, body: { code: 'invalid_request' } });
  });

  it('is independent of the same key of another administrator', async () => {
    const [one, other] = await Promise.all([server.bearer('license'), server.bearer('license')]);
    const first = await create({ authorization: one, 'idempotency-key': 'k' });
    const second = await create({ authorization: other, 'idempotency-key': 'k' });
    expect(second.headers.get(REPLAYED)).toBeNull();
    expect(second.body).not.toEqual(first.body);
    const none = await server.send('POST', '/identity/customers', {
      headers: { authorization: await server.bearer('read'), 'idempotency-key': 'k' },
      body: { name: 'Acme' },
    });
    expect(none.status).toBe(403);
  });

  it('is executed again after a failure', async () => {
    const authorization = await server.bearer('write', 'read');
    const headers = { authorization, 'idempotency-key': 'k' };
    const body = { document: exampleDocument('sma', 10) };
    const send = (): Promise<Answer> => server.send('POST', '/bots', { headers, body });
    await server.execute('alter table bot_events rename to elsewhere');
    expect(await send()).toMatchObject({ status: 503, body: { code: 'storage_unavailable' } });
    await server.execute('alter table elsewhere rename to bot_events');
    const done = await send();
    expect(done).toMatchObject({ status: 201 });
    expect(done.headers.get(REPLAYED)).toBeNull();
  });

  it('stores the response and the created object together or not at all', async () => {
    const authorization = await server.bearer('license');
    const headers = { authorization, 'idempotency-key': 'k' };
    await server.execute('alter table idempotency_keys add column more text not null default 1');
    await server.execute('create unique index no_second on idempotency_keys (more)');
    await create(headers);
    const lost = await create({ ...headers, 'idempotency-key': 'l' });
    expect(lost).toMatchObject({ status: 503 });
    const { body } = await server.send('GET', '/identity/customers', {
      headers: { authorization },
    });
    expect(body).toMatchObject({ items: [{ name: 'Acme' }] });
  });
});

describe('a response with a secret', () => {
  it('is never stored', async () => {
    await addRegistry(await server.bearer('license'));
    const authorization = await server.bearer('license');
    const installation = { deployment_id: 'tokyo', contract_id: 'acme-2026', name: 'Tokyo' };
    await server.send('POST', '/identity/deployments', {
      headers: { authorization },
      body: installation,
    });
    const headers = { authorization, 'idempotency-key': 'k' };
    const codes = '/identity/deployments/tokyo/enrolment-codes';
    const [one, other] = [
      await server.send('POST', codes, { headers, body: {} }),
      await server.send('POST', codes, { headers, body: {} }),
    ];
    expect([one.status, other.status]).toEqual([201, 201]);
    expect(one.body).not.toEqual(other.body);
    const { storage } = server.services.identity;
    expect(await storage.read.selectFrom('idempotency_keys').selectAll().execute()).toEqual([]);
  });
});

test.each(mainlyOn('sqlite'))('stored responses are deleted after a day on %s', async (kind) => {
  const database: TestDatabase = await newDatabase(kind);
  const storage = await openStorage(database.location);
  const row = { caller: 'administrator:ada', request_hash: 'h', body: '{}' };
  await storage.write(async (tx) => {
    for (const [key, answered_at] of [
      ['old', 0],
      ['new', 1],
    ] as const) {
      await tx
        .insertInto('idempotency_keys')
        .values({ ...row, key, answered_at })
        .execute();
    }
    await purgeIdempotencyKeys(tx, DAY_MS);
  });
  const left = await storage.read.selectFrom('idempotency_keys').select('key').execute();
  expect(left).toEqual([{ key: 'new' }]);
  await storage.close();
  await database.remove();
});
