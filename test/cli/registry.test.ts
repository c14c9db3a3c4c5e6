import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createContract } from '../../src/identity/contracts.ts';
import { createCustomer } from '../../src/identity/customers.ts';
import { createInstallation } from '../../src/identity/installations.ts';
import { createPlan } from '../../src/identity/plans.ts';
import { newWorld, type Person, type World } from '../identity/people.ts';
import { serveHere, type ServerHere } from '../server/running.ts';
import { inProcess } from './in-process.ts';
import type { Result } from './service-local.ts';

let world: World;
let server: ServerHere;
let token: string;
let person: Person;

beforeAll(async () => {
  world = await newWorld('sqlite');
  world.now = Date.now();
  person = await world.newPerson();
  token = await person.token('license');
  server = await serveHere(world.database);
});

afterAll(async () => {
  await server.stop();
  await world.close();
});

const identity = (...words: string[]): Promise<Result> =>
  inProcess(['identity', ...words], {
    env: { ...server.env, SERVICE_LOCAL_TOKEN: token },
  });

async function json(...words: string[]): Promise<unknown> {
  const { code, stdout, stderr } = await identity(...words, '--json');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return JSON.parse(stdout);
}

test('rejects a name with a hidden character, and prints the code of that character', async () => {
  const rejected = await identity('customers', 'create', '--name', 'Ac\u202Eme');
  expect(rejected.code).toBe(3);
  expect(rejected.stderr).toContain(
    '--name invalid_value must not contain the control or invisible character U+202E at position 3',
  );
  await world.identity.storage.write((tx) =>
    tx
      .insertInto('customers')
      .values({ customer_id: 'stored', name: 'Ac\u202Eme', created_at: world.now })
      .execute(),
  );
  const { stdout } = await identity('customers', 'list');
  expect(stdout).toContain('Ac[U+202E]me');
  await world.identity.storage.write((tx) =>
    tx.deleteFrom('customers').where('customer_id', '=', 'stored').execute(),
  );
});

const codes = (): string => {
  const code = person.recovery_codes[used++];
  if (code === undefined) throw new Error('all recovery codes have been used');
  return code;
};
let used = 0;

/** Splits a table into cells, titles first, and replaces current times with `…Z`. */
function cells({ code, stdout, stderr }: Result): string[][] {
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return stdout
    .replaceAll(/\b20[2-8]\d-\S*Z/g, '…Z')
    .trimEnd()
    .split('\n')
    .map((line) => line.trim().split(/ {2,}/));
}

/** Creates a customer, a plan, a contract and an installation with the same id. */
async function register(id: string): Promise<void> {
  const vendor = [world.identity, 'operator'] as const;
  await createCustomer(...vendor, { customer_id: id, name: 'Acme Trading' });
  await createPlan(...vendor, { plan_id: id, name: 'Pro', entitlements: ['live_trading'] });
  const ends_at = Date.UTC(2099, 0, 1);
  const references = { customer_id: id, plan_id: id };
  await createContract(...vendor, { contract_id: id, ...references, ends_at });
  await createInstallation(...vendor, { deployment_id: id, contract_id: id, name: 'Tokyo' });
}

test('registers a plan, a customer, a contract and an installation', async () => {
  const customer = ['--id', 'bolt', '--name', 'Bolt Capital'];
  expect(cells(await identity('customers', 'create', ...customer))).toEqual([
    ['customer', 'name', 'created'],
    ['bolt', 'Bolt Capital', '…Z'],
  ]);
  const features = ['--entitlement', 'live_trading', '--entitlement', 'byoc_deployments'];
  const plan = ['--id', 'basic', '--name', 'Basic', ...features, '--ttl', '14d'];
  expect(cells(await identity('plans', 'create', ...plan))).toEqual([
    ['plan', 'name', 'product', 'binding', 'ttl', 'grace', 'entitlements'],
    [
      'basic',
      'Basic',
      'server default',
      'none',
      '14d',
      'as server',
      'byoc_deployments live_trading',
    ],
  ]);
  const contract = ['--id', 'bolt-1', '--customer', 'bolt', '--plan', 'basic', '--grace', '36h'];
  const end = ['--ends-at', '2099-01-01T00:00:00Z'];
  const unasked = await identity('contracts', 'create', ...contract, ...end);
  expect(unasked.code).toBe(2);
  expect(unasked.stderr).toContain('--code is required when prompting is not possible');
  const given = [...contract, ...end, '--code', codes()];
  expect(cells(await identity('contracts', 'create', ...given))).toEqual([
    ['contract', 'customer', 'plan', 'ends', 'ttl', 'grace', 'entitlements'],
    ['bolt-1', 'bolt', 'basic', '2099-01-01T00:00:00Z', 'as plan', '36h', 'as plan'],
  ]);
  const installation = ['--id', 'bolt-tokyo', '--contract', 'bolt-1', '--name', 'Tokyo'];
  expect(cells(await identity('deployments', 'create', ...installation))).toEqual([
    ['installation', 'contract', 'name', 'created', 'revoked'],
    ['bolt-tokyo', 'bolt-1', 'Tokyo', '…Z', '—'],
  ]);
});

test('prints a generated id for scripts', async () => {
  const made = await json('customers', 'create', '--name', 'Delta');
  const { customer_id } = made as { customer_id: string };
  expect(customer_id).toMatch(/^[0-9a-f-]{36}$/);
  expect(await json('customers', 'list')).toMatchObject({
    customers: expect.arrayContaining([made]) as unknown,
  });
  expect(await json('contracts', 'list', '--customer', customer_id)).toEqual({ contracts: [] });
});

test('lists records, optionally of one customer or contract', async () => {
  await register('listed');
  const isListed = ([id]: string[]): boolean => id === 'listed';
  expect(cells(await identity('customers', 'list')).filter(isListed)).toEqual([
    ['listed', 'Acme Trading', '…Z'],
  ]);
  expect(cells(await identity('plans', 'list')).filter(isListed)).toEqual([
    ['listed', 'Pro', 'server default', 'none', 'as server', 'as server', 'live_trading'],
  ]);
  expect(cells(await identity('contracts', 'list', '--customer', 'listed'))).toHaveLength(2);
  expect(cells(await identity('deployments', 'list', '--contract', 'listed'))).toHaveLength(2);
  await createCustomer(world.identity, 'operator', { customer_id: 'no-contract', name: 'X' });
  expect(cells(await identity('contracts', 'list', '--customer', 'no-contract'))).toEqual([
    ['No entries.'],
  ]);
});

test('an update changes only the named fields', async () => {
  await register('changed');
  expect(await json('plans', 'update', 'changed', '--ttl', '7d', '--grace', '0s')).toMatchObject({
    name: 'Pro',
    entitlements: ['live_trading'],
    ttl_seconds: 604_800,
    grace_period_seconds: 0,
  });
  const taken = ['--ttl', 'default', '--no-entitlements', '--name', 'Nothing'];
  expect(await json('plans', 'update', 'changed', ...taken)).toMatchObject({
    name: 'Nothing',
    entitlements: [],
    ttl_seconds: null,
    grace_period_seconds: 0,
  });
  const purpose = ['--product', 'trader', '--binding', 'device', '--code', codes()];
  expect(await json('plans', 'update', 'changed', ...purpose)).toMatchObject({
    name: 'Nothing',
    product: 'trader',
    binding: 'device',
  });
  const own = ['--product', 'default', '--code', codes()];
  expect(await json('plans', 'update', 'changed', ...own)).toMatchObject({
    product: null,
    binding: 'device',
  });
  const feature = ['--entitlement', 'kb_federation', '--code', codes()];
  expect(await json('contracts', 'update', 'changed', ...feature)).toMatchObject({
    plan_id: 'changed',
    entitlements: ['kb_federation'],
    ends_at: '2099-01-01T00:00:00Z',
  });
});

test('an update that grants more needs a code, and one that grants less does not use it up', async () => {
  await register('given');
  const code = codes();
  for (const words of [
    ['contracts', 'update', 'given', '--ends-at', '2098-01-01T00:00:00Z', '--ttl', '1d'],
    ['plans', 'update', 'given', '--grace', '0s'],
  ]) {
    await json(...words, '--code', code);
  }
  const more = ['contracts', 'update', 'given', '--ends-at', '2099-01-01T00:00:00Z'];
  const rejected = await identity(...more);
  expect(rejected.code).toBe(2);
  expect(rejected.stderr).toContain(
    'this change requires a step-up, because it ends at 2099-01-01T00:00:00Z',
  );
  const wrong = await identity(...more, '--code', '0'.repeat(28));
  expect({ code: wrong.code, stderr: wrong.stderr }).toEqual({
    code: 4,
    stderr: expect.stringContaining('the code is wrong or was used before') as string,
  });
  expect(await json(...more, '--code', code)).toMatchObject({ ends_at: '2099-01-01T00:00:00Z' });
  const plan = ['plans', 'update', 'given', '--entitlement', 'live_trading', '--ttl', '9d'];
  expect((await identity(...plan)).stderr).toContain('it raises the TTL of leases to 9d');
  expect(await json(...plan, '--code', codes())).toMatchObject({ ttl_seconds: 9 * 86_400 });
});

test('ending a contract prints how long its leases still work', async () => {
  await register('ended');
  const { status } = await fetch(`${server.url}/auth/license/leases`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ deployment_id: 'ended', entitlements: ['live_trading'] }),
  });
  expect(status).toBe(201);
  const ended = await identity('contracts', 'update', 'ended', '--ends-at', 'now');
  expect(cells(ended)).toEqual([
    ['contract', 'customer', 'plan', 'ends', 'ttl', 'grace', 'entitlements'],
    ['ended', 'ended', 'ended', '…Z', 'as plan', 'as plan', 'as plan'],
    ['Leases that were already issued work until …Z.'],
  ]);
});

test('reinstates an installation', async () => {
  await register('revoked');
  await world.identity.storage.write(async (tx) => {
    const revoked = { revoked_at: world.now, revoked_by: 'operator', revoked_reason: 'lost' };
    await tx
      .updateTable('deployments')
      .set(revoked)
      .where('deployment_id', '=', 'revoked')
      .execute();
  });
  const listed = await identity('deployments', 'list', '--contract', 'revoked');
  expect(cells(listed)[1]!.at(-1)).toBe('…Z lost');
  const code = ['--code', codes()];
  expect(await json('deployments', 'reinstate', 'revoked', ...code)).toMatchObject({
    revoked_at: null,
  });
  expect(await identity('deployments', 'reinstate', 'revoked')).toMatchObject({
    code: 0,
    stderr: 'revoked is not revoked, so nothing changes\n',
  });
});

describe('an invalid request', () => {
  test('is rejected with all problems and a remedy', async () => {
    await createCustomer(world.identity, 'operator', { customer_id: 'taken', name: 'X' });
    const taken = await identity('customers', 'create', '--id', 'taken', '--name', 'Other');
    expect(taken).toEqual({
      code: 6,
      stdout: '',
      stderr:
        'error conflict: the customer taken already exists\n' +
        '→ Choose another id, or omit it to get a generated one.\n',
    });
    const wrong = await identity('plans', 'create', '--name', 'X', '--ttl', '1s', '--grace', '99d');
    expect(wrong.code).toBe(3);
    expect(wrong.stderr).toContain('  --ttl invalid_value');
    expect(wrong.stderr).toContain('  --grace invalid_value');
    const unknown = await identity('contracts', 'list', '--customer', 'acne', '--json');
    expect(unknown.code).toBe(1);
    expect(JSON.parse(unknown.stdout)).toMatchObject({
      error: { code: 'not_found', message: 'there is no customer "acne"' },
    });
  });

  test.each([
    [['plans', 'update', 'pro'], 'no change was given'],
    [
      ['plans', 'update', 'pro', '--entitlement', 'a', '--no-entitlements'],
      '--entitlement and --no-entitlements exclude each other',
    ],
    [['plans', 'update', 'pro', '--binding', 'tpm'], 'none, device, machine'],
    [['plans', 'update', 'pro', '--ttl', '7'], "--ttl: '7' is not a duration"],
    [['contracts', 'update', 'a', '--ends-at', '2027-01-01'], "'2027-01-01' is not a time"],
    [
      'contracts create --customer a --plan a --ends-at yesterday'.split(' '),
      "'yesterday' is not a time\n→ Write it as 2027-01-01T00:00:00Z.\n",
    ],
    [['contracts', 'create', '--customer', 'acme'], "required option '--plan <id>' not specified"],
  ])('%j is rejected before a token is needed', async (words, what) => {
    const { code, stderr } = await inProcess(['identity', ...words]);
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: expect.stringContaining(what) as string,
    });
  });

  test('without a token fails with the command that creates one', async () => {
    const { code, stderr } = await inProcess(['identity', 'plans', 'list'], { env: server.env });
    expect(code).toBe(4);
    expect(stderr).toContain('SERVICE_LOCAL_TOKEN is not set');
  });
});

test('names the options whose values the server rejects', async () => {
  const words = ['plans', 'create', '--id', 'Pro 2', '--name', 'Pro'];
  const rejected = await identity(...words, '--entitlement', 'live trading');
  expect(rejected.code).toBe(3);
  expect(rejected.stderr).toContain('error invalid_request: --id, --entitlement are invalid\n');
  expect(rejected.stderr).toContain('\n  --id invalid_value ');
  expect(rejected.stderr).toContain('\n  --entitlement invalid_value ');
  const exact = await identity(...words, '--entitlement', 'live trading', '--json');
  expect(exact.stdout).toContain('"pointer": "/entitlements/0"');
});
