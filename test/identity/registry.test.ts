import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Problem, ServiceError } from '../../src/base/errors.ts';
import { readAudit } from '../../src/identity/audit.ts';
import type { Identity } from '../../src/identity/context.ts';
import {
  createContract,
  getContract,
  listContracts,
  updateContract,
  type NewContract,
} from '../../src/identity/contracts.ts';
import {
  createCustomer,
  getCustomer,
  listCustomers,
  type Customer,
} from '../../src/identity/customers.ts';
import {
  createInstallation,
  getInstallation,
  listInstallations,
  reinstateInstallation,
} from '../../src/identity/installations.ts';
import { createPlan, getPlan, listPlans, updatePlan, type Plan } from '../../src/identity/plans.ts';
import { mainlyOn } from '../storage/databases.ts';
import { newWorld, START, type World } from './people.ts';

const DAY = 86_400;
const NEXT_YEAR = Date.UTC(2027, 0, 1);
const FIRST_PAGE = { limit: 100 };
const actor = 'operator';

describe.each(mainlyOn('sqlite'))('the registry on %s', (kind) => {
  let world: World;
  let identity: Identity;

  beforeEach(async () => {
    world = await newWorld(kind);
    identity = world.identity;
  });

  afterEach(() => world.close());

  const newCustomer = (customer_id?: string): Promise<Customer> =>
    createCustomer(identity, actor, { customer_id, name: 'Acme Trading' });
  const newPlan = (entitlements: readonly string[] = ['live_trading']): Promise<Plan> =>
    createPlan(identity, actor, { plan_id: 'pro', name: 'Pro', entitlements });
  const contractOf = (rest: Partial<NewContract> = {}): Promise<unknown> =>
    createContract(identity, actor, {
      contract_id: 'acme-2026',
      customer_id: 'acme',
      plan_id: 'pro',
      ends_at: NEXT_YEAR,
      ...rest,
    });
  const newContract = async (): Promise<void> => {
    await newCustomer('acme');
    await newPlan();
    await contractOf();
  };
  const audit = async (): Promise<unknown[]> => {
    const { entries } = await readAudit(identity.storage.read, 0, 100);
    return entries.map(({ action, target, details }) => ({ action, target, details }));
  };
  const problemsOf = async (refused: Promise<unknown>): Promise<Record<string, string>> => {
    const error = await refused.then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).toMatchObject({ code: 'invalid_request' });
    const { problems } = error as ServiceError;
    return Object.fromEntries(problems.map(({ pointer, message }: Problem) => [pointer, message]));
  };

  test('records are created with the given ids, and recorded in the audit log', async () => {
    const db = identity.storage.read;
    const customer = await newCustomer('acme');
    const plan = await newPlan(['live_trading', 'byoc_deployments', 'live_trading']);
    const contract = await createContract(identity, actor, {
      contract_id: 'acme-2026',
      customer_id: 'acme',
      plan_id: 'pro',
      entitlements: ['kb_federation'],
      ttl_seconds: 2 * DAY,
      grace_period_seconds: 0,
      ends_at: NEXT_YEAR,
    });
    const installation = await createInstallation(identity, actor, {
      deployment_id: 'acme:eu-1',
      contract_id: 'acme-2026',
      name: 'Zürich, rack 7',
    });
    expect([customer, plan, contract, installation]).toEqual([
      { customer_id: 'acme', name: 'Acme Trading', created_at: START },
      {
        plan_id: 'pro',
        name: 'Pro',
        entitlements: ['byoc_deployments', 'live_trading'],
        ttl_seconds: null,
        grace_period_seconds: null,
        product: null,
        binding: 'none',
        created_at: START,
      },
      {
        contract_id: 'acme-2026',
        customer_id: 'acme',
        plan_id: 'pro',
        entitlements: ['kb_federation'],
        ttl_seconds: 2 * DAY,
        grace_period_seconds: 0,
        ends_at: NEXT_YEAR,
        created_at: START,
      },
      {
        deployment_id: 'acme:eu-1',
        contract_id: 'acme-2026',
        name: 'Zürich, rack 7',
        created_at: START,
        revoked_at: null,
        revoked_by: null,
        revoked_reason: null,
      },
    ]);
    expect(await getCustomer(db, 'acme')).toEqual(customer);
    expect(await getPlan(db, 'pro')).toEqual(plan);
    expect(await getContract(db, 'acme-2026')).toEqual(contract);
    expect(await getInstallation(db, 'acme:eu-1')).toEqual(installation);
    const { entries } = await readAudit(db, 0, 10);
    expect(entries.map((entry) => [entry.actor, entry.action, entry.target])).toEqual([
      [actor, 'admin.identity.customer.create', 'customer:acme'],
      [actor, 'admin.identity.plan.create', 'plan:pro'],
      [actor, 'admin.identity.contract.create', 'contract:acme-2026'],
      [actor, 'admin.identity.deployment.create', 'deployment:acme:eu-1'],
    ]);
    const created_at = new Date(START).toISOString();
    expect(entries[1]!.details).toEqual({ ...plan, created_at });
  });

  test('a record without an id gets a UUIDv7', async () => {
    const { customer_id: first } = await newCustomer();
    world.now += 1;
    const { customer_id: second } = await newCustomer();
    expect(first).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-/);
    expect(second > first).toBe(true);
  });

  test('an id that exists is refused, and the attempt leaves no trace', async () => {
    await newContract();
    await createInstallation(identity, actor, {
      deployment_id: 'a',
      contract_id: 'acme-2026',
      name: 'A',
    });
    const before = await audit();
    const taken = { code: 'conflict', reason: 'id_taken' };
    await expect(newCustomer('acme')).rejects.toMatchObject(taken);
    await expect(newPlan()).rejects.toMatchObject(taken);
    await expect(contractOf()).rejects.toMatchObject(taken);
    await expect(
      createInstallation(identity, actor, {
        deployment_id: 'a',
        contract_id: 'acme-2026',
        name: 'B',
      }),
    ).rejects.toMatchObject({ ...taken, message: 'the installation a already exists' });
    expect((await getInstallation(identity.storage.read, 'a')).name).toBe('A');
    expect(await audit()).toEqual(before);
  });

  test('an unknown reference is named in the error', async () => {
    await newContract();
    const missing = (what: string): object => ({
      code: 'not_found',
      message: `there is no ${what}`,
      remedy: expect.stringContaining('list') as string,
    });
    const db = identity.storage.read;
    const unknown = [
      [contractOf({ contract_id: 'x', customer_id: 'acne' }), 'customer "acne"'],
      [contractOf({ contract_id: 'x', plan_id: 'por' }), 'plan "por"'],
      [updateContract(identity, actor, 'acme-2026', { plan_id: 'por' }), 'plan "por"'],
      [updateContract(identity, actor, 'acme', {}), 'contract "acme"'],
      [updatePlan(identity, actor, 'por', {}), 'plan "por"'],
      [createInstallation(identity, actor, { contract_id: 'x', name: 'A' }), 'contract "x"'],
      [reinstateInstallation(identity, actor, 'a'), 'installation "a"'],
      [getCustomer(db, 'a\0'), String.raw`customer "a\u0000"`],
      [listContracts(db, { customer_id: 'acne' }, FIRST_PAGE), 'customer "acne"'],
      [listInstallations(db, { contract_id: '' }, FIRST_PAGE), 'contract ""'],
    ] as const;
    await Promise.all(
      unknown.map(([refused, what]) => expect(refused).rejects.toMatchObject(missing(what))),
    );
  });

  test('an error lists all problems of a request with their places', async () => {
    expect(
      await problemsOf(createCustomer(identity, actor, { customer_id: '-x', name: ' ' })),
    ).toEqual({
      '/customer_id':
        'an id has 1 to 128 letters, digits or . _ : - and begins with a letter or digit',
      '/name': 'the text must be one line of 1 to 200 characters',
    });
    for (const name of ['', 'two\nlines', 'nul\0', '\ud800', 'x'.repeat(201)]) {
      expect(Object.keys(await problemsOf(createCustomer(identity, actor, { name })))).toEqual([
        '/name',
      ]);
    }
    const plan = {
      plan_id: 'a b',
      name: 'Pro',
      entitlements: ['live_trading', 'Live Trading'],
      ttl_seconds: 59,
      grace_period_seconds: 30 * DAY + 1,
    };
    expect(await problemsOf(createPlan(identity, actor, plan))).toEqual({
      '/plan_id': expect.any(String) as string,
      '/entitlements/1':
        'an entitlement has 1 to 64 lower-case letters, digits or _ . : - and begins with a letter',
      '/ttl_seconds': 'must be whole seconds from 300 to 7776000 (90d), not 59',
      '/grace_period_seconds': 'must be whole seconds from 0 to 2592000 (30d), not 2592001',
    });
    await newPlan();
    const change = { name: '', ttl_seconds: 90.5, grace_period_seconds: -1, entitlements: [''] };
    expect(Object.keys(await problemsOf(updatePlan(identity, actor, 'pro', change)))).toEqual([
      '/name',
      '/entitlements/0',
      '/ttl_seconds',
      '/grace_period_seconds',
    ]);
  });

  test('a change of a plan is recorded with its old and new values', async () => {
    const plan = await newPlan(['live_trading']);
    world.now += 60_000;
    const changed = await updatePlan(identity, actor, 'pro', {
      name: 'Pro',
      entitlements: ['live_trading', 'kb_federation'],
      ttl_seconds: DAY,
    });
    expect(changed).toEqual({
      ...plan,
      entitlements: ['kb_federation', 'live_trading'],
      ttl_seconds: DAY,
    });
    expect(await getPlan(identity.storage.read, 'pro')).toEqual(changed);
    expect((await audit()).at(-1)).toEqual({
      action: 'admin.identity.plan.update',
      target: 'plan:pro',
      details: {
        before: { entitlements: ['live_trading'], ttl_seconds: null },
        after: { entitlements: ['kb_federation', 'live_trading'], ttl_seconds: DAY },
      },
    });
    expect(await updatePlan(identity, actor, 'pro', { ttl_seconds: null })).toMatchObject({
      ttl_seconds: null,
    });
  });

  test('an update without a change is not recorded', async () => {
    await newContract();
    const before = await audit();
    const same = { name: 'Pro', entitlements: ['live_trading', 'live_trading'], ttl_seconds: null };
    await updatePlan(identity, actor, 'pro', same);
    await updateContract(identity, actor, 'acme-2026', { ends_at: NEXT_YEAR, plan_id: 'pro' });
    await updateContract(identity, actor, 'acme-2026', {});
    expect(await audit()).toEqual(before);
  });

  test('everything of a contract but its customer can be changed', async () => {
    await newContract();
    await createPlan(identity, actor, { plan_id: 'basic', name: 'Basic' });
    const changes = {
      plan_id: 'basic',
      entitlements: ['kb_federation'],
      ends_at: NEXT_YEAR + 1000,
      ttl_seconds: DAY,
      grace_period_seconds: 0,
    };
    const changed = await updateContract(identity, actor, 'acme-2026', changes);
    expect(changed).toMatchObject({ ...changes, customer_id: 'acme', created_at: START });
    expect(await getContract(identity.storage.read, 'acme-2026')).toEqual(changed);
    expect((await audit()).at(-1)).toEqual({
      action: 'admin.identity.contract.update',
      target: 'contract:acme-2026',
      details: {
        before: {
          plan_id: 'pro',
          entitlements: [],
          ends_at: new Date(NEXT_YEAR).toISOString(),
          ttl_seconds: null,
          grace_period_seconds: null,
        },
        after: { ...changes, ends_at: new Date(NEXT_YEAR + 1000).toISOString() },
      },
    });
  });

  test('an end in the past is accepted for an existing contract, but not for a new one', async () => {
    await newContract();
    const change = { ends_at: START - DAY * 1000 };
    expect(await updateContract(identity, actor, 'acme-2026', change)).toMatchObject(change);
    expect(await problemsOf(contractOf({ contract_id: 'x', ends_at: START }))).toEqual({
      '/ends_at': 'must be a whole second after 2026-01-05T09:30:00Z',
    });
    expect(await contractOf({ contract_id: 'x', ends_at: START + 1000 })).toMatchObject({
      contract_id: 'x',
    });
  });

  test('an end that is not a whole second of this era is refused', async () => {
    await newContract();
    const ends = [
      NEXT_YEAR + 1,
      Date.UTC(10_000, 0, 1),
      Date.UTC(1926, 0, 1),
      Number.NaN,
      Number.POSITIVE_INFINITY,
    ];
    for (const ends_at of ends) {
      const change = updateContract(identity, actor, 'acme-2026', { ends_at });
      expect(Object.keys(await problemsOf(change))).toEqual(['/ends_at']);
      const creation = contractOf({ contract_id: 'x', ends_at });
      expect(Object.keys(await problemsOf(creation))).toEqual(['/ends_at']);
    }
  });

  test('plan and contract together cannot exceed the entitlements of a lease', async () => {
    const names = (prefix: string, count: number): string[] =>
      Array.from({ length: count }, (_, i) => `${prefix}${i}`);
    const tooMany = {
      '/entitlements':
        'the contract acme-2026 and its plan have 65 entitlements together; at most 64 are allowed',
    };
    await newCustomer('acme');
    await newPlan(names('a', 60));
    expect(await problemsOf(contractOf({ entitlements: names('b', 5) }))).toEqual(tooMany);
    await contractOf({ entitlements: [...names('b', 4), 'a0'] });
    const more = { entitlements: names('a', 61) };
    expect(await problemsOf(updatePlan(identity, actor, 'pro', more))).toEqual(tooMany);
    const other = { entitlements: names('c', 5) };
    expect(await problemsOf(updateContract(identity, actor, 'acme-2026', other))).toEqual(tooMany);
    await createPlan(identity, actor, {
      plan_id: 'big',
      name: 'Big',
      entitlements: names('d', 60),
    });
    const moved = updateContract(identity, actor, 'acme-2026', { plan_id: 'big' });
    expect(await problemsOf(moved)).toEqual(tooMany);
    const alone = { plan_id: 'huge', name: 'Huge', entitlements: names('e', 65) };
    expect(await problemsOf(createPlan(identity, actor, alone))).toEqual({
      '/entitlements': 'at most 64 entitlements are allowed, not 65',
    });
  });

  test('an installation is reinstated once, and the reason of its revocation is recorded', async () => {
    await newContract();
    const created = await createInstallation(identity, actor, {
      deployment_id: 'a',
      contract_id: 'acme-2026',
      name: 'A',
    });
    await identity.storage.write(async (tx) => {
      const revoked = { revoked_at: START, revoked_by: actor, revoked_reason: 'not paid' };
      await tx.updateTable('deployments').set(revoked).execute();
    });
    expect(await reinstateInstallation(identity, actor, 'a')).toEqual(created);
    expect(await getInstallation(identity.storage.read, 'a')).toEqual(created);
    const revoked_at = new Date(START).toISOString();
    const before = { revoked_at, revoked_by: actor, revoked_reason: 'not paid' };
    const entries = await audit();
    expect(entries.at(-1)).toEqual({
      action: 'admin.identity.deployment.reinstate',
      target: 'deployment:a',
      details: { before },
    });
    expect(await reinstateInstallation(identity, actor, 'a')).toEqual(created);
    expect(await audit()).toEqual(entries);
  });

  test('a change that cannot be recorded does not happen', async () => {
    await newContract();
    await createInstallation(identity, actor, {
      deployment_id: 'a',
      contract_id: 'acme-2026',
      name: 'A',
    });
    const revoked_at = START;
    await identity.storage.write(async (tx) => {
      await tx.updateTable('deployments').set({ revoked_at }).execute();
    });
    await world.database.execute('alter table audit_entries rename to elsewhere');
    const attempts = [
      newCustomer('other'),
      createPlan(identity, actor, { name: 'Other' }),
      contractOf({ contract_id: 'other' }),
      createInstallation(identity, actor, { contract_id: 'acme-2026', name: 'Other' }),
      updatePlan(identity, actor, 'pro', { name: 'Other' }),
      updateContract(identity, actor, 'acme-2026', { ends_at: START }),
      reinstateInstallation(identity, actor, 'a'),
    ];
    await Promise.all(
      attempts.map((attempt) =>
        expect(attempt).rejects.toMatchObject({ code: 'storage_unavailable' }),
      ),
    );
    const db = identity.storage.read;
    expect((await listCustomers(db, FIRST_PAGE)).items).toHaveLength(1);
    expect((await listPlans(db, FIRST_PAGE)).items).toMatchObject([{ name: 'Pro' }]);
    expect((await listContracts(db, {}, FIRST_PAGE)).items).toMatchObject([{ ends_at: NEXT_YEAR }]);
    expect((await listInstallations(db, {}, FIRST_PAGE)).items).toMatchObject([{ revoked_at }]);
  });

  test('each list is filtered and has pages', async () => {
    const db = identity.storage.read;
    await newPlan();
    await newCustomer('acme');
    await newCustomer('bolt');
    for (const [contract_id, customer_id] of [
      ['c3', 'acme'],
      ['c1', 'acme'],
      ['c2', 'bolt'],
      ['c4', 'acme'],
    ] as const) {
      await contractOf({ contract_id, customer_id });
      await createInstallation(identity, actor, {
        deployment_id: `${contract_id}-a`,
        contract_id,
        name: 'A',
      });
    }
    const ids = ({ items }: { items: readonly { contract_id: string }[] }): string[] =>
      items.map(({ contract_id }) => contract_id);
    const first = await listContracts(db, { customer_id: 'acme' }, { limit: 2 });
    expect(ids(first)).toEqual(['c1', 'c3']);
    const cursor = first.next_cursor!;
    const second = await listContracts(db, { customer_id: 'acme' }, { limit: 2, cursor });
    expect(ids(second)).toEqual(['c4']);
    expect(second.next_cursor).toBeNull();
    await expect(listContracts(db, {}, { limit: 2, cursor })).rejects.toMatchObject({
      code: 'invalid_request',
    });

    const all = await listContracts(db, {}, { limit: 3 });
    expect(ids(all)).toEqual(['c1', 'c2', 'c3']);
    const rest = await listContracts(db, {}, { limit: 3, cursor: all.next_cursor! });
    expect(ids(rest)).toEqual(['c4']);

    expect(await listInstallations(db, { contract_id: 'c2' }, FIRST_PAGE)).toMatchObject({
      items: [{ deployment_id: 'c2-a' }],
      next_cursor: null,
    });
    const installations = await listInstallations(db, {}, { limit: 3 });
    expect(ids(installations)).toEqual(['c1', 'c2', 'c3']);
    const customers = await listCustomers(db, { limit: 1 });
    expect(customers.items).toMatchObject([{ customer_id: 'acme' }]);
    expect(await listCustomers(db, { limit: 1, cursor: customers.next_cursor! })).toMatchObject({
      items: [{ customer_id: 'bolt' }],
      next_cursor: null,
    });
    const plans = await listPlans(db, { limit: 1 });
    expect(plans).toMatchObject({ items: [{ plan_id: 'pro' }], next_cursor: null });
  });
});
