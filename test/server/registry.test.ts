import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { newTestApp, type Answer, type TestApp } from './in-process.ts';

const DAY_MS = 86_400_000;
const LATER = '2099-01-01T00:00:00Z';

let server: TestApp;
let authorization: string;

beforeEach(async () => {
  server = await newTestApp();
  authorization = await server.bearer('license');
});

afterEach(() => server.close());

const send = (
  method: string,
  path: string,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> =>
  server.send(method, `/identity/${path}`, { headers: { authorization, ...headers }, body });

/** Headers with a fresh step-up for the target. */
async function sendStepUp(
  target: string,
  ...[method, path, body]: [method: string, path: string, body?: unknown]
): Promise<Answer> {
  const token = await server.stepUp(authorization, target);
  return send(method, path, body, { 'service-step-up': token });
}

const contract = {
  contract_id: 'acme-2026',
  customer_id: 'acme',
  plan_id: 'pro',
  ends_at: '2027-01-01T00:00:00Z',
};

async function newInstallation(): Promise<void> {
  await send('POST', 'customers', { customer_id: 'acme', name: 'Acme Trading' });
  await send('POST', 'plans', { plan_id: 'pro', name: 'Pro', entitlements: ['live_trading'] });
  await sendStepUp('customer:acme', 'POST', 'contracts', contract);
  const installation = { deployment_id: 'acme-tokyo', contract_id: 'acme-2026', name: 'Tokyo' };
  const { status } = await send('POST', 'deployments', installation);
  expect(status).toBe(201);
}

test('created objects are returned, shown and listed with the same fields', async () => {
  await newInstallation();
  const created_at = '2026-01-02T03:04:05Z';
  const all = {
    'customers/acme': { customer_id: 'acme', name: 'Acme Trading', created_at },
    'plans/pro': {
      plan_id: 'pro',
      name: 'Pro',
      entitlements: ['live_trading'],
      ttl_seconds: null,
      grace_period_seconds: null,
      product: null,
      binding: 'none',
      created_at,
    },
    'contracts/acme-2026': {
      ...contract,
      entitlements: [],
      ttl_seconds: null,
      grace_period_seconds: null,
      created_at,
    },
    'deployments/acme-tokyo': {
      deployment_id: 'acme-tokyo',
      contract_id: 'acme-2026',
      name: 'Tokyo',
      created_at,
      revoked_at: null,
      revoked_by: null,
      revoked_by_name: null,
      revoked_reason: null,
    },
  };
  for (const [path, item] of Object.entries(all)) {
    expect(await send('GET', path)).toMatchObject({ status: 200, body: item });
    const [list] = path.split('/');
    expect((await send('GET', list!)).body).toEqual({ items: [item], next_cursor: null });
  }
});

test('the audit log names the administrator who made a change', async () => {
  await send('POST', 'customers', { customer_id: 'acme', name: 'Acme Trading' });
  const { storage } = server.services.identity;
  const { administrator_id } = await storage.read
    .selectFrom('administrators')
    .select('administrator_id')
    .executeTakeFirstOrThrow();
  expect(
    await storage.read
      .selectFrom('audit_entries')
      .select(['actor', 'action'])
      .where('target', '=', 'customer:acme')
      .execute(),
  ).toEqual([
    { actor: `administrator:${administrator_id}`, action: 'admin.identity.customer.create' },
  ]);
});

test('a cursor continues its own list and is rejected by other lists', async () => {
  for (const customer_id of ['a', 'b', 'c']) {
    await send('POST', 'customers', { customer_id, name: customer_id });
  }
  const first = (await send('GET', 'customers?limit=2')).body as { next_cursor: string };
  expect(first).toMatchObject({ items: [{ customer_id: 'a' }, { customer_id: 'b' }] });
  const cursor = first.next_cursor;
  expect((await send('GET', `customers?limit=2&cursor=${cursor}`)).body).toMatchObject({
    items: [{ customer_id: 'c' }],
    next_cursor: null,
  });
  for (const path of [
    `plans?cursor=${cursor}`,
    'customers?cursor=1',
    'customers?cursor=',
    'customers?limit=1001',
    'customers?limit=0',
    'customers?page=2',
  ]) {
    expect(await send('GET', path)).toMatchObject({
      status: 400,
      body: { code: 'invalid_request' },
    });
  }
});

test('contracts are listed by customer, installations by contract', async () => {
  await newInstallation();
  await send('POST', 'customers', { customer_id: 'bolt', name: 'Bolt' });
  expect((await send('GET', 'contracts?customer_id=acme')).body).toMatchObject({
    items: [{ contract_id: 'acme-2026' }],
  });
  expect((await send('GET', 'contracts?customer_id=bolt')).body).toMatchObject({ items: [] });
  expect((await send('GET', 'deployments?contract_id=acme-2026')).body).toMatchObject({
    items: [{ deployment_id: 'acme-tokyo' }],
  });
  expect(await send('GET', 'deployments?contract_id=acme')).toMatchObject({
    status: 404,
    body: { code: 'not_found', detail: 'there is no contract "acme"' },
  });
});

test('a change keeps fields that are absent, and null selects the default', async () => {
  await newInstallation();
  const { body: before } = await send('GET', 'plans/pro');
  const changed = await send('PATCH', 'plans/pro', { ttl_seconds: 86_400 });
  expect(changed).toMatchObject({
    status: 200,
    body: { ...(before as object), ttl_seconds: 86_400 },
  });
  const back = await sendStepUp('plan:pro', 'PATCH', 'plans/pro', { ttl_seconds: null });
  expect(back.body).toEqual(before);
  expect((await send('PATCH', 'plans/pro', {})).body).toEqual(before);
});

test('ending a contract reports how long issued leases still work', async () => {
  await newInstallation();
  const ends_at = '2026-01-01T00:00:00Z';
  expect((await send('PATCH', 'contracts/acme-2026', { ends_at })).body).toMatchObject({
    ends_at,
    last_lease_ends_at: null,
  });
  const { storage } = server.services.identity;
  await storage.write(async (tx) => {
    const key = { public_key_id: 'key', x: 'x', status: 'active', activated_at: 0 } as const;
    await tx
      .insertInto('signing_keys')
      .values({ ...key, retiring_at: null, retired_at: null })
      .execute();
    for (const [lease_id, days] of [
      ['first', -1],
      ['second', 8],
      ['third', 5],
    ] as const) {
      const grace_ends_at = server.now + days * DAY_MS;
      await tx
        .insertInto('license_leases')
        .values({
          lease_id,
          deployment_id: 'acme-tokyo',
          customer_id: 'acme',
          contract_id: 'acme-2026',
          lineage_id: lease_id,
          previous_lease_id: null,
          renewal_id: null,
          device_id: null,
          issued_by: 'operator',
          public_key_id: 'key',
          entitlements: '[]',
          issued_at: 0,
          expires_at: grace_ends_at - DAY_MS,
          grace_ends_at,
          revoked_at: null,
          revoked_by: null,
          revoked_reason: null,
        })
        .execute();
    }
  });
  expect((await send('PATCH', 'contracts/acme-2026', { ends_at })).body).toMatchObject({
    last_lease_ends_at: '2026-01-10T03:04:05Z',
  });
});

const NEEDS_STEP_UP = { status: 401, body: { code: 'step_up_required', reason: 'missing' } };

describe('a change that grants more', () => {
  beforeEach(newInstallation);

  test.each([
    ['a new contract', 'customer:acme', 'POST', 'contracts', { ...contract, contract_id: 'two' }],
    ['a later end', 'contract:acme-2026', 'PATCH', 'contracts/acme-2026', { ends_at: LATER }],
    [
      'an entitlement beyond the plan',
      'contract:acme-2026',
      'PATCH',
      'contracts/acme-2026',
      { entitlements: ['kb_federation'] },
    ],
    [
      'a longer TTL by contract',
      'contract:acme-2026',
      'PATCH',
      'contracts/acme-2026',
      { ttl_seconds: 8 * 86_400 },
    ],
    [
      'a longer grace period by contract',
      'contract:acme-2026',
      'PATCH',
      'contracts/acme-2026',
      { grace_period_seconds: 4 * 86_400 },
    ],
    ['a plan with more', 'contract:acme-2026', 'PATCH', 'contracts/acme-2026', { plan_id: 'max' }],
    [
      'an entitlement of the plan',
      'plan:pro',
      'PATCH',
      'plans/pro',
      { entitlements: ['live_trading', 'byoc_deployments'] },
    ],
    ['another product', 'plan:pro', 'PATCH', 'plans/pro', { product: 'other' }],
    [
      'a looser binding',
      'contract:acme-2026',
      'PATCH',
      'contracts/acme-2026',
      { plan_id: 'loose' },
    ],
    ['a longer TTL by plan', 'plan:pro', 'PATCH', 'plans/pro', { ttl_seconds: 8 * 86_400 }],
    [
      'less of one thing and more of another',
      'contract:acme-2026',
      'PATCH',
      'contracts/acme-2026',
      { ttl_seconds: 3600, ends_at: LATER },
    ],
  ] as const)('%s is refused without a step-up, and done with it', async (...given) => {
    const [, target, method, path, body] = given;
    const more = ['live_trading', 'kb_federation', 'byoc_deployments'];
    await send('POST', 'plans', { plan_id: 'max', name: 'Max', entitlements: more });
    const entitlements = ['live_trading'];
    await send('POST', 'plans', { plan_id: 'loose', name: 'Loose', entitlements });
    expect(await send('PATCH', 'plans/pro', { binding: 'machine' })).toMatchObject({ status: 200 });
    const list = path.split('/')[0]!;
    const before = (await send('GET', list)).body;
    expect(await send(method, path, body)).toMatchObject(NEEDS_STEP_UP);
    const other = { 'service-step-up': await server.stepUp(authorization, `${target}-2`) };
    expect(await send(method, path, body, other)).toMatchObject({
      status: 401,
      body: { code: 'step_up_required', reason: 'other_target' },
    });
    expect((await send('GET', list)).body).toEqual(before);
    const { status } = await sendStepUp(target, method, path, body);
    expect(status).toBe(method === 'POST' ? 201 : 200);
    expect((await send('GET', list)).body).not.toEqual(before);
  });

  test('is recorded with the token of the caller', async () => {
    const path = 'contracts/acme-2026';
    await sendStepUp('contract:acme-2026', 'PATCH', path, { ends_at: LATER });
    const row = await server.services.identity.storage.read
      .selectFrom('audit_entries')
      .select('details')
      .where('action', '=', 'admin.identity.contract.update')
      .executeTakeFirstOrThrow();
    expect(JSON.parse(row.details)).toMatchObject({
      before: { ends_at: '2027-01-01T00:00:00.000Z' },
      after: { ends_at: '2099-01-01T00:00:00.000Z' },
      token_id: expect.any(String) as string,
    });
  });

  test('is not assumed without a new value, or for a change that only restricts', async () => {
    const small = { plan_id: 'small', name: 'Small', entitlements: [] };
    await send('POST', 'plans', small);
    const extra = { entitlements: ['kb_federation'], ttl_seconds: 8 * 86_400 };
    await sendStepUp('contract:acme-2026', 'PATCH', 'contracts/acme-2026', extra);
    for (const [path, change] of [
      ['contracts/acme-2026', { ends_at: contract.ends_at }],
      ['contracts/acme-2026', { entitlements: [] }],
      // The plan already has it.
      ['contracts/acme-2026', { entitlements: ['live_trading'] }],
      ['contracts/acme-2026', { ttl_seconds: null }],
      ['contracts/acme-2026', { ttl_seconds: 3600, grace_period_seconds: 0 }],
      ['plans/pro', { name: 'Other', ttl_seconds: 86_400, grace_period_seconds: 0 }],
      ['contracts/acme-2026', { plan_id: 'small' }],
      ['plans/pro', { entitlements: [] }],
      ['contracts/acme-2026', { ends_at: '2026-06-01T00:00:00Z' }],
      ['contracts/acme-2026', { ends_at: '2026-01-01T00:00:00Z' }],
    ] as const) {
      const { status } = await send('PATCH', path, change);
      expect({ path, change, status }).toEqual({ path, change, status: 200 });
    }
  });
});

test('an installation can be reinstated', async () => {
  await newInstallation();
  const { storage } = server.services.identity;
  await storage.write(async (tx) => {
    const revoked = { revoked_at: server.now, revoked_by: 'operator', revoked_reason: 'lost' };
    await tx.updateTable('deployments').set(revoked).execute();
  });
  expect((await send('GET', 'deployments/acme-tokyo')).body).toMatchObject({
    revoked_at: '2026-01-02T03:04:05Z',
    revoked_reason: 'lost',
  });
  expect(await send('POST', 'deployments/acme-tokyo/reinstate')).toMatchObject(NEEDS_STEP_UP);
  const path = 'deployments/acme-tokyo/reinstate';
  expect(await sendStepUp('deployment:acme-tokyo', 'POST', path)).toMatchObject({
    status: 200,
    body: { deployment_id: 'acme-tokyo', revoked_at: null, revoked_by: null },
  });
});

test.each([
  ['customers', { name: '' }, ['/name']],
  ['customers', { name: 'a\nb', nick: 'x' }, ['/name', '/nick']],
  ['customers', { customer_id: 'a/b', name: 'Acme' }, ['/customer_id']],
  ['plans', { name: 'Pro', entitlements: ['live_trading', 'Live'] }, ['/entitlements/1']],
  ['plans', { name: 'Pro', ttl_seconds: '7d' }, ['/ttl_seconds']],
  ['plans', { name: 'Pro', product: 'a b', binding: 'tpm' }, ['/product', '/binding']],
  [
    'plans',
    { name: 'Pro', ttl_seconds: 59, grace_period_seconds: 31 * 86_400 },
    ['/ttl_seconds', '/grace_period_seconds'],
  ],
  ['contracts', { ...contract, ends_at: '2027-01-01' }, ['/ends_at']],
  ['contracts', { ...contract, ends_at: '2027-02-30T00:00:00Z' }, ['/ends_at']],
  ['contracts', { ...contract, ends_at: '2027-01-01T00:00:00.5Z' }, ['/ends_at']],
  ['contracts', { ...contract, ends_at: '2026-01-02T03:04:05Z' }, ['/ends_at']],
  ['contracts', { contract_id: 'x' }, ['/customer_id', '/plan_id', '/ends_at']],
  ['deployments', { contract_id: 'acme-2026' }, ['/name']],
])('%s are not made of %j', async (path, body, pointers) => {
  const { status, body: problem } = await send('POST', path, body);
  expect({ status, problem }).toMatchObject({ status: 400, problem: { code: 'invalid_request' } });
  const { errors } = problem as { errors: readonly { pointer: string }[] };
  expect(errors.map(({ pointer }) => pointer)).toEqual(pointers);
  expect((await send('GET', path)).body).toEqual({ items: [], next_cursor: null });
});

test('the rule for new ids matches the OpenAPI document', async () => {
  const { components } = (await (await server.app.request('/openapi.json')).json()) as {
    components: { schemas: Record<string, { properties: Record<string, { pattern?: string }> }> };
  };
  const pattern = components.schemas['NewCustomer']!.properties['customer_id']!.pattern!;
  for (const customer_id of ['a', 'B.c_d:e-1', '-x', 'a b', 'a/b', 'ä', '..', '']) {
    const { status } = await send('POST', 'customers', { customer_id, name: 'Acme' });
    expect(status === 201, customer_id).toBe(new RegExp(pattern).test(customer_id));
  }
});

test('existing and unknown ids are reported with distinct codes', async () => {
  await newInstallation();
  const refused = [
    [await send('POST', 'customers', { customer_id: 'acme', name: 'Acme' }), 409, 'conflict'],
    [await send('POST', 'contracts', { ...contract, customer_id: 'x' }), 409, 'conflict'],
    [
      await send('POST', 'contracts', { ...contract, contract_id: 'x', plan_id: 'x' }),
      404,
      'not_found',
    ],
    [await send('PATCH', 'contracts/acme-2026', { plan_id: 'x' }), 404, 'not_found'],
    [await send('PATCH', 'plans/x', {}), 404, 'not_found'],
    [await send('GET', 'customers/x'), 404, 'not_found'],
    [await send('GET', 'customers/a%00'), 400, 'invalid_request'],
    [await send('POST', 'deployments/x/reinstate'), 404, 'not_found'],
  ] as const;
  for (const [answer, status, code] of refused) {
    expect(answer).toMatchObject({ status, body: { code } });
  }
});

test('the registry requires the scope license', async () => {
  authorization = await server.bearer('read', 'write', 'admin');
  const attempts = [
    ['GET', 'customers'],
    ['POST', 'customers', { name: 'Acme' }],
    ['PATCH', 'plans/pro', {}],
    ['POST', 'deployments/a/reinstate'],
  ] as const;
  for (const [method, path, body] of attempts) {
    expect(await send(method, path, body)).toMatchObject({
      status: 403,
      body: { code: 'not_allowed' },
    });
  }
  authorization = 'Bearer nonsense';
  expect(await send('GET', 'plans')).toMatchObject({ status: 401 });
});
