import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createContract, getContract, updateContract } from '../../src/identity/contracts.ts';
import { createCustomer } from '../../src/identity/customers.ts';
import {
  GIVE_ACTION,
  listGains,
  grantOfContract,
  grantOfPlan,
  type Grant,
} from '../../src/identity/grants.ts';
import { createPlan, getPlan, updatePlan } from '../../src/identity/plans.ts';
import { grantStepUp } from '../../src/identity/step-up.ts';
import { mainlyOn } from '../storage/databases.ts';
import { newWorld, type Person, type World } from './people.ts';
import { USUAL_POLICY } from './policy.ts';

const DAY = 86_400;
const END = Date.UTC(2027, 0);

const FREE = { plan_id: 'pro', product: null, binding: 'none' } as const;

const had: Grant = {
  entitlements: ['a', 'b'],
  ttl_seconds: DAY,
  grace_period_seconds: 60,
  ends_at: END,
  product: 'trader',
  binding: 'device',
};

test.each([
  [{}, []],
  [{ entitlements: ['b'] }, []],
  [{ entitlements: ['b', 'c', 'd'] }, ['adds c, d']],
  [{ ends_at: END - 1000 }, []],
  [{ ends_at: END + 1000 }, ['ends at 2027-01-01T00:00:01Z']],
  [{ ttl_seconds: DAY - 1, grace_period_seconds: 0 }, []],
  [{ ttl_seconds: 2 * DAY }, ['raises the TTL of leases to 2d']],
  [{ grace_period_seconds: 3600 }, ['raises their grace period to 1h']],
  [{ binding: 'machine' }, []],
  [{ binding: 'none' }, ['loosens the binding to none']],
  [{ product: 'other' }, ['licenses the product other']],
  [{ entitlements: [], ttl_seconds: 2 * DAY }, ['raises the TTL of leases to 2d']],
] as const)('a change to %j gains %j', (change, gained) => {
  expect(listGains(had, { ...had, ...change })).toEqual(gained);
});

test('a new contract always listGains, even one that adds nothing to its plan', () => {
  expect(listGains(undefined, { ...had, entitlements: [] })).toEqual([
    'ends at 2027-01-01T00:00:00Z',
  ]);
});

test('a change is judged by the next lease that it allows, wherever the term is set', () => {
  const plan = { entitlements: ['a'], ttl_seconds: null, grace_period_seconds: 60, ...FREE };
  const none = { entitlements: [], ttl_seconds: null, grace_period_seconds: null };
  const contract = { ...none, ends_at: END };
  const before = grantOfContract(USUAL_POLICY, contract, plan);
  expect(before).toEqual({
    entitlements: ['a'],
    ttl_seconds: USUAL_POLICY.ttl_seconds,
    grace_period_seconds: 60,
    ends_at: END,
    product: USUAL_POLICY.product,
    binding: 'none',
  });
  const same = { ...contract, entitlements: ['a'], ttl_seconds: USUAL_POLICY.ttl_seconds };
  expect(listGains(before, grantOfContract(USUAL_POLICY, same, plan))).toEqual([]);
  const beyond = { ...none, ...FREE, ttl_seconds: USUAL_POLICY.ttl_max_seconds * 2 };
  expect(grantOfPlan(USUAL_POLICY, beyond).ttl_seconds).toBe(USUAL_POLICY.ttl_max_seconds);
});

describe.each(mainlyOn('sqlite'))('giving on %s', (kind) => {
  let world: World;
  let person: Person;
  beforeAll(async () => {
    world = await newWorld(kind);
    person = await world.newPerson();
    await createCustomer(world.identity, 'operator', { customer_id: 'acme', name: 'Acme' });
    await createPlan(world.identity, 'operator', { plan_id: 'pro', name: 'Pro' });
  });
  afterAll(() => world.close());

  const newContract = async (): Promise<string> => {
    const contract = { customer_id: 'acme', plan_id: 'pro', ends_at: END };
    return (await createContract(world.identity, 'operator', contract)).contract_id;
  };
  const grant = async (target: string) => {
    const caller = await person.admitted('license');
    const request = { action: GIVE_ACTION, target, code: person.nextCode() } as const;
    const { step_up_token } = await grantStepUp(world.identity, caller, request);
    return { caller, step_up_token };
  };

  test('the step-up is consumed together with the change, or neither happens', async () => {
    const id = await newContract();
    const by = await grant(`contract:${id}`);
    const later = { ends_at: END + 1000 };
    const refused = updateContract(world.identity, by, id, { ...later, plan_id: 'none' });
    await expect(refused).rejects.toMatchObject({ code: 'not_found' });
    await updateContract(world.identity, by, id, { ends_at: END - 1000 });
    await updateContract(world.identity, by, id, later);
    const again = updateContract(world.identity, by, id, { ends_at: END + 2000 });
    await expect(again).rejects.toMatchObject({ code: 'step_up_required', reason: 'used' });
    expect(await getContract(world.identity.storage.read, id)).toMatchObject(later);
  });

  test('a step-up for one contract does not allow a change of another contract or a plan', async () => {
    const [one, other] = [await newContract(), await newContract()];
    const by = await grant(`contract:${one}`);
    const refused = { code: 'step_up_required', reason: 'other_target' };
    const more = { entitlements: ['live_trading'] };
    await expect(updateContract(world.identity, by, other, more)).rejects.toMatchObject(refused);
    await expect(updatePlan(world.identity, by, 'pro', more)).rejects.toMatchObject(refused);
    const contract = { customer_id: 'acme', plan_id: 'pro', ends_at: END };
    await expect(createContract(world.identity, by, contract)).rejects.toMatchObject(refused);
    expect(await getPlan(world.identity.storage.read, 'pro')).toMatchObject({ entitlements: [] });
  });

  test('a token that was revoked in the meantime can change nothing', async () => {
    const id = await newContract();
    const caller = { ...person.caller('license'), token_id: randomUUID() };
    const by = { caller, step_up_token: undefined };
    const narrowed = updateContract(world.identity, by, id, { ends_at: END - 1000 });
    await expect(narrowed).rejects.toMatchObject({ reason: 'unknown_token' });
  });
});
