import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { LeaseAnswer } from '../../src/api/leases.ts';
import { newDeviceKey, type DeviceKey } from '../../src/client/device-key.ts';
import { makeOfflineRequest } from '../../src/client/device-proof.ts';
import { readAudit } from '../../src/identity/audit.ts';
import { createContract } from '../../src/identity/contracts.ts';
import { createCustomer } from '../../src/identity/customers.ts';
import { createInstallation } from '../../src/identity/installations.ts';
import type { Narrowing } from '../../src/identity/narrowing.ts';
import { createPlan } from '../../src/identity/plans.ts';
import { addToken } from '../../src/identity/tokens.ts';
import { formatTime } from '../../src/lease/time.ts';
import { newWorld, PASSWORD, type Person, type World } from '../identity/people.ts';
import { mainlyOn } from '../storage/databases.ts';
import { serveHere, type ServerHere } from './running.ts';

const DAY = 86_400;

interface Sent {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

describe.each(mainlyOn('sqlite'))('a narrowed token, at a server on %s', (kind) => {
  let world: World;
  let server: ServerHere;
  let ada: Person;
  let wide: string;
  let tokyo: string;
  let acme: string;
  const tokenOf = async (narrowing?: Partial<Narrowing>): Promise<string> => {
    const all = { deployment_ids: null, customer_id: null, max_ttl_seconds: null, ...narrowing };
    const terms = { label: 'CI', scopes: ['license'], expires_in_seconds: 3600 } as const;
    const { token } = await world.identity.storage.write((tx) =>
      addToken(tx, Date.now(), 'operator', ada.id, {
        ...terms,
        ...(narrowing && { narrowing: all }),
      }),
    );
    return token;
  };

  beforeAll(async () => {
    world = await newWorld(kind);
    world.now = Date.now();
    ada = await world.newPerson();
    const by = [world.identity, 'operator'] as const;
    await createPlan(...by, { plan_id: 'pro', name: 'Pro', entitlements: ['live_trading'] });
    for (const [customer_id, installations] of [
      ['acme', ['tokyo', 'osaka']],
      ['bolt', ['oslo']],
    ] as const) {
      await createCustomer(...by, { customer_id, name: customer_id });
      const contract = { contract_id: `${customer_id}-1`, customer_id, plan_id: 'pro' };
      await createContract(...by, { ...contract, ends_at: Date.UTC(2099, 0) });
      for (const deployment_id of installations) {
        const of = { contract_id: contract.contract_id, name: deployment_id };
        await createInstallation(...by, { deployment_id, ...of });
      }
    }
    server = await serveHere(world.database);
    wide = await tokenOf();
    tokyo = await tokenOf({ deployment_ids: ['tokyo'], max_ttl_seconds: 7 * DAY });
    acme = await tokenOf({ customer_id: 'acme' });
  });
  afterAll(async () => {
    await server.stop();
    await world.close();
  });

  const send = async (
    token: string,
    method: string,
    path: string,
    body?: unknown,
  ): Promise<Sent> => {
    const answer = await fetch(server.url + path, {
      method,
      headers: {
        ...(token !== '' && { authorization: `Bearer ${token}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    return { status: answer.status, body: (await answer.json()) as Sent['body'] };
  };
  const issue = (token: string, deployment_id: string, rest: object = {}): Promise<Sent> =>
    send(token, 'POST', '/auth/license/leases', { deployment_id, ...rest });
  const refusedFor = (reason: string) => ({ status: 403, body: { code: 'not_allowed', reason } });
  const idsOf = ({ body }: Sent, name: string): unknown[] =>
    (body['items'] as Record<string, unknown>[]).map((item) => item[name]);

  test('issues leases only for its installations or customer', async () => {
    expect(await issue(tokyo, 'tokyo')).toMatchObject({ status: 201 });
    expect(await issue(acme, 'osaka')).toMatchObject({ status: 201 });
    for (const [token, installation] of [
      [tokyo, 'osaka'],
      [tokyo, 'oslo'],
      [tokyo, 'unknown'],
      [acme, 'oslo'],
      [acme, 'unknown'],
    ] as const) {
      expect(await issue(token, installation)).toMatchObject(refusedFor('outside_narrowing'));
      const dryRun = { deployment_id: installation };
      const path = '/auth/license/leases/dry-run';
      expect(await send(token, 'POST', path, dryRun)).toMatchObject(
        refusedFor('outside_narrowing'),
      );
    }
    expect(await issue(wide, 'oslo')).toMatchObject({ status: 201 });
  });

  test('issues leases up to its maximum TTL, which is also the default', async () => {
    expect(await issue(tokyo, 'tokyo', { ttl_seconds: 7 * DAY })).toMatchObject({ status: 201 });
    const tooLong = refusedFor('ttl_above_token_maximum');
    expect(await issue(tokyo, 'tokyo', { ttl_seconds: 7 * DAY + 1 })).toMatchObject(tooLong);
    expect(await issue(tokyo, 'tokyo', { ttl_seconds: 80 * DAY })).toMatchObject(tooLong);
    const grace = refusedFor('grace_above_token_maximum');
    expect(await issue(tokyo, 'tokyo', { grace_period_seconds: 30 * DAY })).toMatchObject(grace);
    expect(await issue(tokyo, 'tokyo', { grace_period_seconds: DAY })).toMatchObject({
      status: 201,
    });
    const short = await tokenOf({ max_ttl_seconds: DAY });
    const { status, body } = await issue(short, 'oslo');
    expect(status).toBe(201);
    const { issued_at, expires_at, limits } = body as unknown as LeaseAnswer;
    expect(Date.parse(expires_at) - Date.parse(issued_at)).toBe(DAY * 1000);
    expect(limits).toEqual([
      { field: 'ttl_seconds', wanted: 7 * DAY, granted: DAY, because: 'token_maximum' },
    ]);
  });

  test('without a maximum is limited by the server and the contract', async () => {
    const asked = await issue(wide, 'tokyo', { ttl_seconds: 10 * 365 * DAY });
    expect(asked).toMatchObject({ status: 400, body: { code: 'invalid_request' } });
    const most = await issue(wide, 'tokyo', { ttl_seconds: 90 * DAY });
    expect(most).toMatchObject({ status: 201, body: { limits: [] } });
    const of = { contract_id: 'acme-ending', customer_id: 'acme', plan_id: 'pro' };
    const ends_at = (Math.floor(Date.now() / 1000) + 30 * DAY) * 1000;
    await createContract(world.identity, 'operator', { ...of, ends_at });
    const ending = { deployment_id: 'ending', contract_id: of.contract_id, name: 'Ending' };
    await createInstallation(world.identity, 'operator', ending);
    const { body } = await issue(wide, 'ending', { ttl_seconds: 90 * DAY });
    expect(body).toMatchObject({ grace_ends_at: formatTime(ends_at) });
  });

  test('enrolls machines only if they would not renew for longer than its maximum', async () => {
    const codes = (id: string): string => `/identity/deployments/${id}/enrolment-codes`;
    expect(await send(tokyo, 'POST', codes('tokyo'))).toMatchObject({ status: 201 });
    expect(await send(acme, 'POST', codes('osaka'))).toMatchObject({ status: 201 });
    const outside = refusedFor('outside_narrowing');
    expect(await send(tokyo, 'POST', codes('osaka'))).toMatchObject(outside);
    expect(await send(acme, 'POST', codes('oslo'))).toMatchObject(outside);
    const short = await tokenOf({ max_ttl_seconds: DAY });
    const tooLong = refusedFor('ttl_above_token_maximum');
    expect(await send(short, 'POST', codes('tokyo'))).toMatchObject(tooLong);

    const offline = (key: DeviceKey): object => ({ offline_request: requestOf(key) });
    expect(await issue(tokyo, 'osaka', offline(newDeviceKey()))).toMatchObject(outside);
    expect(await issue(short, 'tokyo', offline(newDeviceKey()))).toMatchObject(tooLong);
    const known = newDeviceKey();
    expect(await issue(tokyo, 'tokyo', offline(known))).toMatchObject({ status: 201 });
    const brief = await issue(short, 'tokyo', offline(known));
    expect(brief).toMatchObject({ status: 201, body: { limits: [{ granted: DAY }] } });
    const long = { ...offline(known), ttl_seconds: 8 * DAY };
    expect(await issue(tokyo, 'tokyo', long)).toMatchObject(tooLong);
  });

  test('does not receive the stored response of a wider token', async () => {
    const key = newDeviceKey();
    const offline_request = requestOf(key);
    const wanted = { offline_request, ttl_seconds: 60 * DAY };
    expect(await issue(wide, 'tokyo', wanted)).toMatchObject({ status: 201 });
    const again = { offline_request };
    expect(await issue(wide, 'tokyo', again)).toMatchObject({ status: 201 });
    const short = await tokenOf({ max_ttl_seconds: DAY });
    const { body } = await issue(short, 'tokyo', again);
    expect(body).toMatchObject({ limits: [{ granted: DAY, because: 'token_maximum' }] });
  });

  test('can show, list and revoke only its own objects', async () => {
    const mine = (await issue(wide, 'tokyo')).body['lease_id'] as string;
    const other = (await issue(wide, 'oslo')).body['lease_id'] as string;
    const device = await send(wide, 'GET', '/identity/devices?deployment_id=tokyo');
    const [device_id] = idsOf(device, 'device_id');
    for (const [token, path] of [
      [tokyo, `/identity/leases/${mine}`],
      [acme, `/identity/leases/${mine}/revocation`],
      [tokyo, '/identity/deployments/tokyo'],
      [tokyo, '/identity/deployments/tokyo/revocation'],
      [tokyo, '/identity/licenses/tokyo'],
      [tokyo, '/identity/contracts/acme-1'],
      [acme, '/identity/contracts/acme-1'],
    ] as const) {
      expect(await send(token, 'GET', path)).toMatchObject({ status: 200 });
    }
    for (const [token, method, path, body] of [
      [tokyo, 'GET', `/identity/leases/${other}`],
      [acme, 'GET', `/identity/leases/${other}`],
      [acme, 'GET', `/identity/leases/${other}/revocation`],
      [tokyo, 'GET', '/identity/deployments/oslo'],
      [tokyo, 'GET', '/identity/deployments/osaka/revocation'],
      [acme, 'GET', '/identity/licenses/oslo'],
      [tokyo, 'GET', '/identity/contracts/bolt-1'],
      [acme, 'GET', '/identity/contracts/bolt-1'],
      [acme, 'POST', `/identity/leases/${other}/revoke`, { reason: 'x', confirm: 'oslo' }],
      [acme, 'POST', '/identity/deployments/oslo/revoke', { reason: 'x', confirm: 'oslo' }],
      [
        await tokenOf({ deployment_ids: ['osaka'] }),
        'POST',
        `/identity/devices/${device_id as string}/revoke`,
        { reason: 'x' },
      ],
    ] as const) {
      const answer = await send(token, method, path, body);
      expect({ path, ...answer }).toMatchObject({ path, ...refusedFor('outside_narrowing') });
    }
    const own = { reason: 'x', confirm: 'tokyo' };
    expect(await send(tokyo, 'POST', '/identity/deployments/tokyo/revoke', own)).toMatchObject({
      status: 401,
      body: { code: 'step_up_required' },
    });
  });

  test('lists only its own objects, and rejects the cursor of another token', async () => {
    await issue(wide, 'oslo');
    for (const [list, name] of [
      ['/identity/leases', 'deployment_id'],
      ['/identity/licenses', 'deployment_id'],
      ['/identity/deployments', 'deployment_id'],
      ['/identity/devices', 'deployment_id'],
      ['/identity/contracts', 'contract_id'],
    ] as const) {
      const seen = async (token: string): Promise<Set<unknown>> =>
        new Set(idsOf(await send(token, 'GET', list), name));
      const [ofTokyo, ofAcme] = [await seen(tokyo), await seen(acme)];
      const [tokyoOnly, acmeOnly] =
        name === 'contract_id'
          ? [['acme-1'], ['acme-1', 'acme-ending']]
          : [['tokyo'], ['tokyo', 'osaka', 'ending']];
      expect({ list, ids: [...ofTokyo] }).toEqual({ list, ids: tokyoOnly });
      for (const id of ofAcme) expect(acmeOnly).toContain(id);
      expect(ofAcme.size).toBeGreaterThan(0);
    }
    const { body } = await send(wide, 'GET', '/identity/leases?limit=1');
    const next = `/identity/leases?limit=1&cursor=${body['next_cursor'] as string}`;
    expect(await send(tokyo, 'GET', next)).toMatchObject({ status: 400 });
  });

  test('may call only operations that check the subjects of the token', async () => {
    const { body: document } = await send('', 'GET', '/openapi.json');
    const paths = document['paths'] as Record<string, Record<string, Operation>>;
    const operations = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
    );
    const ofAdministrators = operations.filter(({ operation: { security } }) =>
      (security ?? []).some((one) => 'administrator' in one),
    );
    const accepting = ofAdministrators.filter(({ operation }) => operation['x-narrowed-tokens']);
    expect(accepting.map(({ operation }) => operation.operationId).toSorted()).toEqual(
      ACCEPTING.toSorted(),
    );
    for (const { path, method, operation } of ofAdministrators) {
      if (ACCEPTING.includes(operation.operationId)) continue;
      const concrete = path.replaceAll(/\{\w+\}/g, 'x');
      const answer = await fetch(server.url + concrete, {
        method: method.toUpperCase(),
        headers: { authorization: `Bearer ${tokyo}` },
      });
      const { code, reason } = (await answer.json()) as { code: string; reason?: string };
      const scopes = (operation.security ?? []).flatMap((one) => one['administrator'] ?? []);
      const isOfScope = scopes.length === 0 || scopes.includes('license');
      expect({ path, method, code, reason }).toEqual({
        path,
        method,
        code: 'not_allowed',
        reason: isOfScope ? 'narrowed_token' : reason,
      });
    }
  });

  test('can revoke itself and no other token', async () => {
    const token = await tokenOf({ customer_id: 'acme' });
    const { body } = await send(token, 'GET', '/identity/token');
    expect(body).toMatchObject({ customer_id: 'acme', deployment_ids: null });
    const { body: other } = await send(wide, 'GET', '/identity/token');
    const path = (id: unknown): string => `/identity/tokens/${id as string}`;
    expect(await send(token, 'DELETE', path(other['token_id']))).toMatchObject({ status: 404 });
    expect(await send(token, 'DELETE', path(body['token_id']))).toMatchObject({ status: 200 });
    expect(await send(token, 'GET', '/identity/token')).toMatchObject({
      status: 401,
      body: { code: 'not_authenticated', reason: 'revoked_token' },
    });
  });

  test('requires password and code, and its terms are checked and recorded', async () => {
    const logIn = async (terms: object): Promise<Sent> =>
      send('', 'POST', '/identity/tokens', {
        administrator: ada.name,
        password: PASSWORD,
        code: ada.recovery_codes[used++],
        label: 'CI',
        scopes: ['license'],
        ...terms,
      });
    let used = 0;
    const narrowed = { deployment_ids: ['tokyo', 'osaka'], max_ttl_seconds: DAY };
    const { status, body } = await logIn(narrowed);
    expect({ status, body }).toMatchObject({
      status: 201,
      body: { ...narrowed, customer_id: null },
    });
    const until =
      Date.parse(body['expires_at'] as string) - Date.parse(body['created_at'] as string);
    expect(until).toBe(30 * DAY * 1000);
    const { entries } = await readAudit(world.identity.storage.read, 0, 1000);
    const entry = entries.find(({ target }) => target === `token:${body['token_id'] as string}`);
    expect(entry?.details).toMatchObject({ narrowing: narrowed });

    const never = await logIn({ expires_in_seconds: null });
    expect(never).toMatchObject({ status: 201, body: { expires_at: null } });
    const endless = never.body['token'] as string;
    expect(await send(endless, 'GET', '/identity/token')).toMatchObject({
      body: { expires_at: null },
    });

    for (const [terms, pointer] of [
      [{ ...narrowed, scopes: ['license', 'admin'] }, '/scopes'],
      [{ ...narrowed, scopes: ['read'] }, '/scopes'],
      [{ ...narrowed, customer_id: 'acme' }, '/customer_id'],
      [{ deployment_ids: [] }, '/deployment_ids'],
      [{ max_ttl_seconds: 60 }, '/max_ttl_seconds'],
    ] as const) {
      const wrong = await logIn(terms);
      used -= 1;
      expect(wrong).toMatchObject({ status: 400, body: { errors: [{ pointer }] } });
    }
    expect(await logIn({ customer_id: 'nobody' })).toMatchObject({ status: 404 });
  });

  test('is rejected with the reason once it has expired', async () => {
    const token = await tokenOf({ customer_id: 'acme' });
    await world.identity.storage.write((tx) =>
      tx
        .updateTable('api_tokens')
        .set({ expires_at: Date.now() })
        .where('token_id', '=', idOf(token))
        .execute(),
    );
    expect(await issue(token, 'tokyo')).toMatchObject({
      status: 401,
      body: { code: 'not_authenticated', reason: 'expired_token' },
    });
  });

  test('is recorded with the enrollment codes and installations that it created', async () => {
    const { body } = await send(wide, 'GET', '/identity/token');
    const made = { deployment_id: 'nagoya', contract_id: 'acme-1', name: 'Nagoya' };
    expect(await send(wide, 'POST', '/identity/deployments', made)).toMatchObject({ status: 201 });
    const codes = '/identity/deployments/nagoya/enrolment-codes';
    expect(await send(wide, 'POST', codes)).toMatchObject({ status: 201 });
    const { entries } = await readAudit(world.identity.storage.read, 0, 1000);
    const { token_id } = body;
    expect(entries.slice(-2)).toMatchObject([
      { action: 'admin.identity.deployment.create', details: { token_id } },
      { action: 'admin.identity.device.enrol_code', details: { token_id } },
    ]);
  });
});

interface Operation {
  readonly operationId: string;
  readonly security?: readonly Readonly<Record<string, readonly string[]>>[];
  readonly 'x-narrowed-tokens'?: true;
}

const ACCEPTING = [
  'createLease',
  'dryRunRenewal',
  'listLeases',
  'getLease',
  'previewLeaseRevocation',
  'previewDeploymentRevocation',
  'revokeLease',
  'revokeDeployment',
  'listLicenses',
  'getLicense',
  'createEnrolmentCode',
  'listDevices',
  'revokeDevice',
  'listContracts',
  'getContract',
  'listDeployments',
  'getDeployment',
  'getOwnToken',
  'revokeToken',
  'createStepUp',
];

function requestOf(key: DeviceKey): string {
  return makeOfflineRequest(key, { name: 'machine', renewal_id: randomUUID() }, Date.now());
}

function idOf(token: string): string {
  const hex = token.slice(4, 36);
  return [0, 8, 12, 16, 20].map((at, i, all) => hex.slice(at, all[i + 1])).join('-');
}
