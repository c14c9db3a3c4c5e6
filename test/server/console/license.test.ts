import { generateKeyPairSync } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createContract } from '../../../src/identity/contracts.ts';
import { createCustomer } from '../../../src/identity/customers.ts';
import { createInstallation } from '../../../src/identity/installations.ts';
import { registerSigner } from '../../../src/identity/signing-keys.ts';
import { createPlan } from '../../../src/identity/plans.ts';
import { signerOf } from '../../../src/identity/signing-key.ts';
import type { Person } from '../../identity/people.ts';
import { newTestApp, type TestApp } from '../in-process.ts';
import { FLEET_KEY, seedFleet } from './fleet.ts';
import { newSignedIn, type Answer, type Visitor } from './visitor.ts';

const DAY = 86_400_000;
const HOSTILE = '<img src=x onerror=alert(1)> "\'&amp; ${7*7}';
const ESCAPED = '&lt;img src=x onerror=alert(1)&gt;';

let server: TestApp;
let person: Person;
let visitor: Visitor;

beforeAll(async () => {
  const signer = signerOf(generateKeyPairSync('ed25519').privateKey);
  server = await newTestApp({ signer });
  ({ person, visitor } = await newSignedIn(server));
});
afterAll(() => server.close());

const open = async (path: string): Promise<string> => {
  const { status, text } = await visitor.open(path);
  expect({ path, status, text: status === 200 ? '' : text }).toEqual({
    path,
    status: 200,
    text: '',
  });
  return text;
};
const fieldOf = (text: string, name: string): string =>
  new RegExp(`name="${name}" value="([^"]*)"`).exec(text)![1]!;
const leasesOf = async (installation: string): Promise<{ lease_id: string; state: string }[]> => {
  const { text } = await visitor.fetch('GET', `/identity/leases?deployment_id=${installation}`);
  return (JSON.parse(text) as { items: { lease_id: string; state: string }[] }).items;
};
const deploy = async (deployment_id: string, endsAt = Date.UTC(2027, 0)): Promise<void> => {
  const { identity } = server.services;
  const [customer_id, plan_id, contract_id] = ['customer', 'plan', 'contract'].map(
    (noun) => `${noun}-of-${deployment_id}`,
  ) as [string, string, string];
  await createCustomer(identity, 'operator', { customer_id, name: 'Acme' });
  const entitlements = ['live_trading'];
  await createPlan(identity, 'operator', { plan_id, name: 'Pro', entitlements });
  const contract = { contract_id, customer_id, plan_id, ends_at: endsAt };
  await createContract(identity, 'operator', { ...contract, entitlements: ['kb_federation'] });
  await createInstallation(identity, 'operator', {
    deployment_id,
    contract_id,
    name: deployment_id,
  });
};
const issue = async (deployment_id: string, fields = {}): Promise<Answer> => {
  const form = { deployment_id, entitlement: 'live_trading', ...fields };
  const review = await visitor.submit('/identity/license/issue/review', form);
  const issue_id = fieldOf(review.text, 'issue_id');
  return visitor.submit('/identity/license/issue', { ...form, issue_id });
};

test('each empty license page names the next command', async () => {
  for (const [path, command] of [
    ['/identity/license', 'service-local identity leases issue --deployment ID'],
    ['/identity/license/issue', 'service-local identity deployments create'],
    ['/identity/license/devices', 'service-local identity devices enroll-code'],
    ['/identity/license/keys', 'service-local identity keys generate'],
    ['/identity/license/customers', 'service-local identity plans create'],
  ] as const) {
    expect(await open(path)).toContain(command);
  }
  const { identity } = server.services;
  await registerSigner(identity, identity.signer as Exclude<typeof identity.signer, Error>);
});

test('hostile names of customers, plans, contracts and installations are escaped on every page', async () => {
  const entitlements = 'live_trading, kb_federation';
  for (const [path, fields, goTo] of [
    ['customers', { customer_id: 'evil', customer_name: HOSTILE }, 'customers'],
    [
      'plans',
      { plan_id: 'evil', plan_name: HOSTILE, plan_entitlements: entitlements, plan_ttl: '30d' },
      'customers',
    ],
    [
      'contracts',
      {
        contract_id: 'evil',
        contract_customer: 'evil',
        contract_plan: 'evil',
        contract_end: '2027-01-01',
      },
      'customers',
    ],
    [
      'deployments',
      { deployment_id: 'evil', deployment_name: HOSTILE, deployment_contract: 'evil' },
      'deployments/evil',
    ],
  ] as const) {
    const key = crypto.randomUUID();
    const factor = path === 'contracts' ? { code: person.recovery_codes[6]! } : {};
    const form = { ...fields, ...factor, key };
    const made = await visitor.submit(`/identity/license/${path}`, form);
    expect(made).toMatchObject({ status: 303, location: `/identity/license/${goTo}` });
    const again = await visitor.submit(`/identity/license/${path}`, { ...fields, key });
    expect(again).toMatchObject({ status: 303 });
  }
  const hidden = { customer_id: 'hidden', customer_name: 'a \u202Eb', key: crypto.randomUUID() };
  expect(await visitor.submit('/identity/license/customers', hidden)).toMatchObject({
    status: 400,
  });
  const contract = {
    contract_id: 'later',
    contract_customer: 'evil',
    contract_plan: 'evil',
    contract_end: '2027-01-01',
    key: crypto.randomUUID(),
  };
  const confirmation = await visitor.submit('/identity/license/contracts', contract);
  expect(confirmation).toMatchObject({ status: 200 });
  for (const [name, value] of Object.entries(contract)) {
    expect(fieldOf(confirmation.text, name)).toBe(value);
  }
  expect(confirmation.text).toContain('data-target="customer:evil"');
  expect(await open('/identity/license/customers')).not.toContain('>later<');
  const guess = { ...contract, code: '0'.repeat(28) };
  const guessed = await visitor.submit('/identity/license/contracts', guess);
  expect(guessed.text).toContain('The code is wrong or was used before');
  expect(fieldOf(guessed.text, 'contract_id')).toBe('later');
  const taken = { customer_id: 'evil', customer_name: HOSTILE, key: crypto.randomUUID() };
  const rejected = await visitor.submit('/identity/license/customers', taken);
  expect(rejected.status).toBe(409);
  expect(rejected.text).toContain('The customer evil already exists');
  expect(rejected.text).toContain(`value="${ESCAPED}`);
  const wrong = { plan_name: 'x', plan_ttl: 'soon', key: crypto.randomUUID() };
  const unread = await visitor.submit('/identity/license/plans', wrong);
  expect(unread).toMatchObject({ status: 400 });
  for (const path of [
    '/identity/license',
    '/identity/license/customers',
    '/identity/license/deployments/evil',
    '/identity/license/issue',
    '/identity/license/issue?deployment_id=evil',
    '/console/audit',
    `/identity/license?search=${encodeURIComponent(HOSTILE)}`,
    `/identity/license/devices?deployment_id=evil`,
    `/console/audit?actor=${encodeURIComponent(HOSTILE)}`,
  ]) {
    const text = await open(path);
    expect(text).not.toContain('<img');
    expect(text).not.toMatch(/ style="|<style|onclick=/);
  }
  expect(await open('/identity/license')).toContain(ESCAPED);
});

describe('issuing a lease', () => {
  test('shows the terms first and the signed lease once', async () => {
    await deploy('tokyo', server.now + 10 * DAY);
    const ask = await open('/identity/license/issue?deployment_id=tokyo');
    expect(ask).toMatch(/value="live_trading"\s+checked/);
    expect(ask).toContain('from the contract');
    const form = { deployment_id: 'tokyo', entitlement: 'live_trading', ttl: '30d' };
    const review = await visitor.submit('/identity/license/issue/review', form);
    expect(review.status).toBe(200);
    expect(review.text).toMatch(/It lasts \d+ days instead of 30 days, as the contract ends then/);
    expect(await leasesOf('tokyo')).toEqual([]);

    const sent = { ...form, issue_id: fieldOf(review.text, 'issue_id') };
    const [first, second] = await Promise.all([
      visitor.submit('/identity/license/issue', sent),
      visitor.submit('/identity/license/issue', sent),
    ]);
    const [issued, rejected] = first.status === 200 ? [first, second] : [second, first];
    expect(issued.headers.get('cache-control')).toBe('no-store');
    expect(issued.text).toContain('This is the only time that the signed lease is shown');
    const [, payload] = /&quot;payload&quot;:&quot;([^&]+)&quot;/.exec(issued.text)!;
    expect(JSON.parse(Buffer.from(payload!, 'base64').toString())).toMatchObject({
      deployment_id: 'tokyo',
      entitlements: ['live_trading'],
    });
    expect(rejected.status).toBe(409);
    expect(rejected.text).toContain('was already issued and returned for this issue_id');
    expect(await leasesOf('tokyo')).toHaveLength(1);
    const [{ lease_id } = { lease_id: '' }] = await leasesOf('tokyo');
    const pages = await Promise.all(
      ['/identity/license', `/identity/license/leases/${lease_id}`, '/console/audit'].map(open),
    );
    expect([...pages, ...server.log].join('')).not.toContain(payload);
  });

  test('reports a wrong value and keeps it in the form', async () => {
    await deploy('osaka');
    const path = '/identity/license/issue/review';
    const wrong = await visitor.submit(path, { deployment_id: 'osaka', ttl: '<b>', grace: '3d' });
    expect(wrong.status).toBe(400);
    expect(wrong.text).toMatch(/is not a duration for the lease/);
    expect(wrong.text).toMatch(/value="&lt;b&gt;"/);
    const much = await visitor.submit(path, { deployment_id: 'osaka', ttl: '900d' });
    expect(much.text).toContain('must be whole seconds');
    const foreign = await visitor.submit(path, { deployment_id: 'osaka', entitlement: 'all' });
    expect(foreign).toMatchObject({ status: 403 });
    const nowhere = await visitor.submit(path, { deployment_id: 'nowhere' });
    expect(nowhere.status).toBe(404);
    expect(await leasesOf('osaka')).toEqual([]);
  });

  test('issues what the dry run of an administrator has announced', async () => {
    await deploy('kyoto', server.now + 5 * DAY);
    const body = { deployment_id: 'kyoto', ttl_seconds: 8 * 86_400 };
    const dry = await visitor.fetch('POST', '/auth/license/leases/dry-run', body);
    const issued = await visitor.fetch('POST', '/auth/license/leases', body);
    expect([dry.status, issued.status]).toEqual([200, 201]);
    const {
      lease: _lease,
      lease_id: _id,
      ...rest
    } = JSON.parse(issued.text) as Record<string, unknown>;
    expect(JSON.parse(dry.text)).toEqual(rest);
    const device = { renewal_id: 'one' };
    const wrong = await visitor.fetch('POST', '/auth/license/leases/dry-run', device);
    expect(wrong.status).toBe(400);
  });
});

describe('revoking leases', () => {
  const revoke = (path: string, fields: Readonly<Record<string, string>>): Promise<Answer> =>
    visitor.submit(`/identity/license/${path}/revoke`, { reason: 'unpaid', ...fields });

  test('requires the id of the installation and an unused factor, and states when the last copy stops', async () => {
    await deploy('nara');
    await issue('nara');
    const page = await open('/identity/license/deployments/nara/revoke');
    expect(page).toContain('This affects 1 working lease');
    expect(page).toMatch(/The last copy stops working <time/);
    const path = 'deployments/nara';
    const code = person.recovery_codes[0]!;
    const wrong = await revoke(path, { confirm: 'osaka', code });
    expect(wrong.text).toContain('The typed id is not that of the installation, nara');
    expect(wrong.text).toContain('value="unpaid"');
    const guessed = await revoke(path, { confirm: 'nara', code: '0'.repeat(28) });
    expect(guessed.text).toContain('The code is wrong or was used before');
    expect((await leasesOf('nara'))[0]!.state).toBe('valid');

    const done = await revoke(path, { confirm: 'nara', code });
    expect(done).toMatchObject({ status: 303, location: '/identity/license/deployments/nara' });
    const answer = await open('/identity/license/deployments/nara');
    expect(answer).toMatch(/Revoked: 1 working lease of nara\. The last copy stops working at 20/);
    expect((await leasesOf('nara'))[0]!.state).toBe('revoked');
    const audit = await open('/console/audit?target=deployment%3Anara');
    expect(audit).toContain('admin.identity.license.revoke');
    expect(await open('/identity/license?state=revoked')).toContain('deployments/nara');

    const reused = await revoke(path, { confirm: 'nara', code });
    expect(reused.text).toContain('The code is wrong or was used before');
    const rejected = await visitor.open('/identity/license/issue?deployment_id=nara');
    expect(rejected.text).toContain('is revoked');
    const reinstate = '/identity/license/deployments/nara/reinstate';
    const confirmation = await visitor.submit(reinstate);
    expect(confirmation.text).toContain('data-target="deployment:nara"');
    expect((await leasesOf('nara'))[0]!.state).toBe('revoked');
    const mistyped = await visitor.submit(reinstate, { code: '0'.repeat(28) });
    expect(mistyped.text).toContain('The code is wrong or was used before');
    expect(mistyped.text).toContain('data-target="deployment:nara"');
    const back = await visitor.submit(reinstate, { code: person.recovery_codes[7]! });
    expect(back.status).toBe(303);
    expect(await open('/identity/license/deployments/nara')).toContain('nara can get leases again');
  });

  test('accepts a step-up for one target, once, within five minutes', async () => {
    await deploy('kobe');
    await issue('kobe');
    await issue('kobe');
    const [{ lease_id: one } = { lease_id: '' }, { lease_id: other } = { lease_id: '' }] =
      await leasesOf('kobe');
    const grant = async (): Promise<string> => {
      const subject = { action: 'identity.license.revoke', target: `lease:${one}` };
      const body = { ...subject, code: person.nextCode() };
      const { text } = await visitor.fetch('POST', '/identity/step-ups', body);
      return (JSON.parse(text) as { step_up_token: string }).step_up_token;
    };
    const send = async (lease: string, token: string): Promise<unknown> => {
      const body = { reason: 'unpaid', confirm: 'kobe' };
      const path = `/identity/leases/${lease}/revoke`;
      const { text } = await visitor.fetch('POST', path, body, { 'service-step-up': token });
      const { reason, revoked_leases } = JSON.parse(text) as Record<string, unknown>;
      return reason ?? revoked_leases;
    };
    const token = await grant();
    expect(await send(other, token)).toBe('other_target');
    expect(await send(one, token)).toBe(1);
    expect(await send(one, token)).toBe('used');
    const late = await grant();
    server.now += 301_000;
    expect(await send(one, late)).toBe('expired');
  });

  test('revokes one lease with the effect that its preview states', async () => {
    await deploy('ube');
    await issue('ube');
    const [{ lease_id } = { lease_id: '' }] = await leasesOf('ube');
    const preview = await visitor.fetch('GET', `/identity/leases/${lease_id}/revocation`);
    const announced = JSON.parse(preview.text) as Record<string, unknown>;
    expect(announced).toMatchObject({ working_leases: 1, device_ids: [], registry_enforced: true });
    expect(await open(`/identity/license/leases/${lease_id}/revoke`)).toContain(
      'is not tied to a machine',
    );
    const done = await revoke(`leases/${lease_id}`, { confirm: 'ube', code: person.nextCode() });
    expect(done.status).toBe(303);
    const page = await open(`/identity/license/leases/${lease_id}`);
    expect(page).toContain('It can no longer be renewed; existing copies work');
    expect(page).toContain('“unpaid”');
    expect(page).toMatch(new RegExp(`title="administrator:${person.id}"\\s*>${person.name}<`));
    const after = await visitor.fetch('GET', `/identity/leases/${lease_id}/revocation`);
    expect(JSON.parse(after.text)).toEqual({ ...announced, working_leases: 0 });
  });
});

test('the issue page names the command for a lease that the plan binds to a device', async () => {
  const { identity } = server.services;
  const form = { plan_id: 'bound', plan_name: 'Bound', plan_product: 'trader' };
  const key = crypto.randomUUID();
  const plan = { ...form, plan_binding: 'device', key };
  const unread = { ...plan, plan_ttl: 'soon', key: crypto.randomUUID() };
  const again = await visitor.submit('/identity/license/plans', unread);
  expect(again).toMatchObject({ status: 400 });
  expect(again.text).toMatch(/<option value="device"\s+selected>/);
  expect(await visitor.submit('/identity/license/plans', plan)).toMatchObject({ status: 303 });
  const { text } = await visitor.fetch('GET', '/identity/plans/bound');
  expect(JSON.parse(text)).toMatchObject({ product: 'trader', binding: 'device' });
  expect(await open('/identity/license/customers')).toContain('the key of the device');

  await createCustomer(identity, 'operator', { customer_id: 'bound', name: 'Bound' });
  const contract = { contract_id: 'bound', customer_id: 'bound', plan_id: 'bound' };
  await createContract(identity, 'operator', { ...contract, ends_at: Date.UTC(2027, 0) });
  const installation = { deployment_id: 'bound', contract_id: 'bound', name: 'Bound' };
  await createInstallation(identity, 'operator', installation);
  const page = await visitor.open('/identity/license/issue?deployment_id=bound');
  expect(page.status).toBe(403);
  expect(page.text).toContain('license export-request');
});

test('an enrollment code is displayed only once', async () => {
  await deploy('gifu');
  const path = '/identity/license/deployments/gifu';
  const answer = await visitor.submit(`${path}/enrolment-codes`);
  expect(answer).toMatchObject({ status: 200, location: null });
  const [, code] = /<code>([0-9A-Z-]{34})<\/code>/.exec(answer.text)!;
  const after = await Promise.all([path, '/console/audit'].map(open));
  expect([...after, ...server.log].join('')).not.toContain(code);
});

test('the audit log is filtered by actor, action, target and time, page by page', async () => {
  const search = async (query: string): Promise<{ seqs: number[]; next: string | null }> => {
    const { text } = await visitor.fetch('GET', `/identity/audit/search?${query}`);
    const { items, next_cursor } = JSON.parse(text) as {
      items: { seq: number; action: string }[];
      next_cursor: string | null;
    };
    return { seqs: items.map(({ seq }) => seq), next: next_cursor };
  };
  const all = await search('limit=1000');
  expect(all.seqs).toEqual(all.seqs.toSorted((a, b) => b - a));
  const action = 'action=admin.identity.license.issue';
  const issued = await search(action);
  const first = await search(`${action}&limit=2`);
  const rest = await search(`${action}&before_seq=${first.next}`);
  expect([...first.seqs, ...rest.seqs]).toEqual(issued.seqs);
  expect((await search(`${action}&actor=administrator:${person.id}`)).seqs).toEqual(issued.seqs);
  expect((await search(`${action}&actor=operator`)).seqs).toEqual([]);
  const until = new Date(server.now - 300_000).toISOString();
  const [before, since] = [await search(`to=${until}&limit=1000`), await search(`from=${until}`)];
  expect([...since.seqs, ...before.seqs]).toEqual(all.seqs);
  expect(since.seqs.length * before.seqs.length).toBeGreaterThan(0);
  expect(await open('/console/audit?action=nothing')).toContain('No entry matches the filter');
  const wrong = await visitor.open('/console/audit?from=soon');
  expect(wrong.status).toBe(400);
});

test('verifying the audit log names the first altered entry', async () => {
  expect(await open('/console/audit/verification')).toMatch(/all \d+ entries are unaltered/);
  const { text } = await visitor.fetch('GET', '/identity/audit/verification');
  const { verified, fault } = JSON.parse(text) as { verified: number; fault: null };
  expect(fault).toBeNull();
  await server.execute(`update audit_entries set details = '{"x":1}' where seq = ${verified - 1}`);
  const broken = await open('/console/audit/verification');
  expect(broken).toContain(`Entry ${verified - 1} has been altered`);
});

test('silent installations come first, and each installation is on exactly one page', async () => {
  await seedFleet(server.services.identity.storage, server.now, 120);
  const first = await open('/identity/license');
  const [, top] = /id="silent"([^]*)id="all"/.exec(first)!;
  const silent = [...top!.matchAll(/deployments\/(fleet-\d+)"/g)].map(([, id]) => id);
  expect(silent).toEqual([
    'fleet-00000',
    'fleet-00001',
    'fleet-00002',
    'fleet-00100',
    'fleet-00101',
    'fleet-00102',
  ]);
  const seen: string[] = [];
  let path: string | undefined = '/identity/license?search=FLEET-';
  while (path !== undefined) {
    const text = await open(path);
    seen.push(...[...text.matchAll(/deployments\/(fleet-\d+)"/g)].map(([, id]) => id!));
    path = /href="([^"]+cursor=[^"]+)"/.exec(text)?.[1]?.replaceAll('&amp;', '&');
  }
  expect(seen).toHaveLength(120);
  expect(new Set(seen).size).toBe(120);
  expect(await open('/identity/license?state=grace')).toContain('fleet-00101');
  expect(await open('/identity/license?silent=true&state=valid')).toContain('fleet-00002');
  expect(await open('/identity/license?search=device-00042')).toContain('fleet-00042');
  expect(await open('/identity/license?search=no%25such')).toContain(
    'No installation matches the filter',
  );
  expect(await open('/identity/license/devices')).toContain('host-00007');
  const revoked = await visitor.submit(
    '/identity/license/deployments/fleet-00007/devices/device-00007/revoke',
    { reason: HOSTILE },
  );
  expect(revoked.status).toBe(303);
  expect(await open('/identity/license/deployments/fleet-00007')).toContain(ESCAPED);
});

test('a key can be retired only from the date that its page states', async () => {
  const keys = await open('/identity/license/keys');
  expect(keys).toMatch(/not while it is active/);
  expect(keys).toMatch(/from <time datetime="20/);
  const early = await visitor.submit(`/identity/license/keys/${FLEET_KEY}/retire`);
  expect(early.status).toBe(409);
  expect(early.text).toContain('may be in use until');
  server.now += 11 * DAY;
  ({ person, visitor } = await newSignedIn(server));
  expect(await open('/identity/license/keys')).toContain('Retire permanently');
  const retired = await visitor.submit(`/identity/license/keys/${FLEET_KEY}/retire`);
  expect(retired.status).toBe(303);
  expect(await open('/identity/license/keys')).toMatch(/retired <time/);
});
