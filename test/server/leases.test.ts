import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { LeaseAnswer, LeaseRecord, Revoked } from '../../src/api/leases.ts';
import type { Keyset } from '../../src/api/keys.ts';
import { newDeviceKey, type DeviceKey } from '../../src/client/device-key.ts';
import { makeDeviceProof } from '../../src/client/device-proof.ts';
import { createContract } from '../../src/identity/contracts.ts';
import { createCustomer } from '../../src/identity/customers.ts';
import { createInstallation } from '../../src/identity/installations.ts';
import { createPlan } from '../../src/identity/plans.ts';
import { hashSecret } from '../../src/identity/secrets.ts';
import { addToken } from '../../src/identity/tokens.ts';
import { importKeyset } from '../../src/lease/keys.ts';
import { verifyLease } from '../../src/lease/verify.ts';
import { openStorage, type Storage } from '../../src/storage/storage.ts';
import { mainlyOn, newDatabase, type TestDatabase } from '../storage/databases.ts';
import { USUAL_POLICY } from '../identity/policy.ts';
import { serveHere, type ServerHere } from './running.ts';

const DAY = 86_400;

describe.each(mainlyOn('sqlite'))('leases over HTTP, from a server on %s', (kind) => {
  let database: TestDatabase;
  let storage: Storage;
  let server: ServerHere;
  let bearer: string;
  let made = 0;

  beforeAll(async () => {
    database = await newDatabase(kind);
    storage = await openStorage(database.location);
    server = await serveHere(database);
    const identity = { storage, clock: Date.now, policy: USUAL_POLICY, signer: undefined as never };
    await createCustomer(identity, 'operator', { customer_id: 'acme', name: 'Acme' });
    const entitlements = ['live_trading', 'kb_federation'];
    await createPlan(identity, 'operator', { plan_id: 'pro', name: 'Pro', entitlements });
    const contract = { contract_id: 'c', customer_id: 'acme', plan_id: 'pro' };
    const ends_at = (Math.floor(Date.now() / 1000) + 300 * DAY) * 1000;
    await createContract(identity, 'operator', { ...contract, ends_at });
    bearer = await storage.write(async (tx) => {
      const row = {
        administrator_id: 'root',
        name: 'root',
        password_hash: 'none',
        totp_secret: 'none',
        totp_last_step: 0,
        created_at: 0,
        disabled_at: null,
      };
      await tx.insertInto('administrators').values(row).execute();
      const terms = {
        label: 'test',
        scopes: ['license', 'admin', 'read'],
        expires_in_seconds: 600,
      } as const;
      return `Bearer ${(await addToken(tx, Date.now(), 'operator', 'root', terms)).token}`;
    });
  });
  afterAll(async () => {
    await server.stop();
    await storage.close();
    await database.remove();
  });

  /** Creates a separate installation for each test. */
  const newInstallation = async (): Promise<string> => {
    const deployment_id = `site-${made++}`;
    const identity = { storage, clock: Date.now, policy: USUAL_POLICY, signer: undefined as never };
    const request = { deployment_id, contract_id: 'c', name: 'Site' };
    await createInstallation(identity, 'operator', request);
    return deployment_id;
  };
  const send = (method: string, path: string, body?: unknown, headers = {}): Promise<Response> =>
    fetch(server.url + path, {
      method,
      headers: {
        authorization: bearer,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  const problem = async (answering: Promise<Response>): Promise<object> => {
    const answer = await answering;
    expect(answer.headers.get('content-type')).toBe('application/problem+json');
    return (await answer.json()) as object;
  };
  const prove = (key: DeviceKey, path: string, body: unknown): Promise<Response> => {
    const url = server.url + path;
    const sent = { method: 'POST', url, body: Buffer.from(JSON.stringify(body)) };
    const authorization = `DeviceProof ${makeDeviceProof(key, sent, Date.now())}`;
    return send('POST', path, body, { authorization });
  };
  const enroll = async (installation: string): Promise<DeviceKey> => {
    const path = `/identity/deployments/${installation}/enrolment-codes`;
    const { code } = (await (await send('POST', path)).json()) as { code: string };
    const key = newDeviceKey();
    const jwk = { kty: 'OKP', crv: 'Ed25519', x: key.x };
    const answer = await prove(key, '/auth/license/devices', { code, jwk, name: 'machine' });
    expect(answer.status).toBe(201);
    return key;
  };
  const stepUp = async (target: string): Promise<string> => {
    const token = randomUUID();
    const row = {
      token_hash: hashSecret(token),
      administrator_id: 'root',
      action: 'identity.license.revoke',
      target,
      expires_at: Date.now() + 60_000,
      used_at: null,
    };
    await storage.write((tx) => tx.insertInto('step_ups').values(row).execute());
    return token;
  };

  test('issued leases verify with the published keys and are in the registry', async () => {
    const deployment_id = await newInstallation();
    const request = { deployment_id, entitlements: ['live_trading'], ttl_seconds: 3600 };
    const answer = await send('POST', '/auth/license/leases', request);
    expect(answer.status).toBe(201);
    expect(answer.headers.get('cache-control')).toBe('no-store');
    const { lease, limits, warnings, ...said } = (await answer.json()) as LeaseAnswer;
    expect([limits, warnings]).toEqual([[], []]);
    const keys = await fetch(`${server.url}/.well-known/license-keys.json`);
    const keyset = importKeyset(await keys.text());
    if (!keyset.ok) throw new Error(keyset.detail);
    const verified = verifyLease(JSON.stringify(lease), keyset.keys);
    expect(verified).toMatchObject({
      ok: true,
      claims: { deployment_id, customer_id: 'acme', ttl_seconds: 3600, lease_id: said.lease_id },
    });
    const record = await send('GET', `/identity/leases/${said.lease_id}`);
    expect((await record.json()) as LeaseRecord).toMatchObject({
      ...said,
      state: 'valid',
      issued_by: 'administrator:root',
    });
  });

  test('a device renews its lease, and a repeated request returns the same bytes', async () => {
    const installation = await newInstallation();
    const key = await enroll(installation);
    const first = await prove(key, '/auth/license/leases', { renewal_id: randomUUID() });
    const { lease, lease_id } = (await first.json()) as LeaseAnswer;
    const request = { renewal_id: randomUUID(), lease };
    const answers = [];
    for (let i = 0; i < 2; i++) {
      const answer = await prove(key, '/auth/license/leases', request);
      expect(answer.status).toBe(201);
      answers.push(await answer.text());
    }
    expect(answers[1]).toBe(answers[0]);
    const renewed = JSON.parse(answers[0]!) as LeaseAnswer;
    const record = await send('GET', `/identity/leases/${renewed.lease_id}`);
    expect(await record.json()).toMatchObject({
      previous_lease_id: lease_id,
      issued_by: `device:${key.device_id}`,
      entitlements: ['kb_federation', 'live_trading'],
    });
    const metrics = await (await send('GET', '/metrics')).text();
    expect(metrics).toMatch(/^service_local_license_leases_repeated_total [1-9]/m);
  });

  test('an error states which fields the caller must send', async () => {
    const deployment_id = await newInstallation();
    const key = await enroll(deployment_id);
    const leases = '/auth/license/leases';
    expect(await problem(send('POST', leases, { renewal_id: 'x' }))).toMatchObject({
      status: 400,
      code: 'invalid_request',
      errors: [{ pointer: '/deployment_id' }],
    });
    expect(await problem(prove(key, leases, { deployment_id }))).toMatchObject({
      status: 400,
      errors: [{ pointer: '/renewal_id' }],
    });
    const typo = { deployment_id, ttl_second: 3600 };
    expect(await problem(send('POST', leases, typo))).toMatchObject({
      errors: [{ pointer: '/ttl_second', suggestion: 'ttl_seconds' }],
    });
    expect(
      await problem(send('POST', leases, { deployment_id }, { authorization: '' })),
    ).toMatchObject({ status: 401, code: 'not_authenticated' });
  });

  test('renewal after a revocation fails with 403 and the time when the last copy stops working', async () => {
    const deployment_id = await newInstallation();
    const key = await enroll(deployment_id);
    const first = await prove(key, '/auth/license/leases', { renewal_id: randomUUID() });
    const { lease, grace_ends_at } = (await first.json()) as LeaseAnswer;
    const path = `/identity/deployments/${deployment_id}/revoke`;
    const request = { reason: 'unpaid', confirm: deployment_id };
    expect(await problem(send('POST', path, request))).toMatchObject({
      status: 401,
      code: 'step_up_required',
      reason: 'missing',
    });
    const token = await stepUp(`deployment:${deployment_id}`);
    const answer = await send('POST', path, request, { 'service-step-up': token });
    expect((await answer.json()) as Revoked).toMatchObject({
      deployment_id,
      revoked_leases: 1,
      effective_at: grace_ends_at,
      registry_enforced: true,
    });
    const renewal = prove(key, '/auth/license/leases', { renewal_id: randomUUID(), lease });
    expect(await problem(renewal)).toMatchObject({
      status: 403,
      code: 'license_revoked',
      retryable: false,
      detail: expect.stringContaining(grace_ends_at) as string,
    });
    const metrics = await (await send('GET', '/metrics')).text();
    expect(metrics).toContain('license_leases_denied_total{code="license_revoked",reason=""} 1');
  });

  test('only the public keys can be read by scripts of any web site', async () => {
    const allowed = async (path: string, headers = {}): Promise<unknown> => {
      const answer = await fetch(`${server.url}${path}`, { headers });
      return [answer.status, answer.headers.get('access-control-allow-origin')];
    };
    const path = '/.well-known/license-keys.json';
    const etag = (await fetch(`${server.url}${path}`)).headers.get('etag')!;
    expect(await allowed(path)).toEqual([200, '*']);
    expect(await allowed(path, { 'if-none-match': etag })).toEqual([304, '*']);
    expect(await allowed('/auth/license/public-key')).toEqual([200, '*']);
    expect(await allowed('/auth/license/public-key?public_key_id=x')).toEqual([404, '*']);
    expect(await allowed('/healthz')).toEqual([200, null]);
    expect(await allowed('/identity/keys')).toEqual([401, null]);
  });

  test('public keys can be cached, and read by id', async () => {
    const path = `${server.url}/.well-known/license-keys.json`;
    const answer = await fetch(path);
    expect(answer.headers.get('cache-control')).toContain('max-age=300');
    const { keys } = (await answer.json()) as Keyset;
    const etag = answer.headers.get('etag')!;
    const again = await fetch(path, { headers: { 'if-none-match': etag } });
    expect(again.status).toBe(304);
    const key = `${server.url}/auth/license/public-key`;
    const active = (await (await fetch(key)).json()) as object;
    expect(active).toMatchObject({
      public_key_id: keys[0]!.kid,
      status: 'active',
      jwk: keys[0],
      pem: expect.stringMatching(/^-----BEGIN PUBLIC KEY-----\n/) as string,
    });
    const byId = await fetch(`${key}?public_key_id=${keys[0]!.kid}`);
    expect(await byId.json()).toEqual(active);
    expect(await problem(fetch(`${key}?public_key_id=nobody`))).toMatchObject({
      status: 404,
      code: 'not_found',
    });
  });

  test('the active signing key cannot be retired', async () => {
    const list = (await (await send('GET', '/identity/keys')).json()) as {
      items: { public_key_id: string }[];
    };
    expect(list.items).toMatchObject([{ status: 'active', retirable_at: null }]);
    const path = `/identity/keys/${list.items[0]!.public_key_id}/retire`;
    expect(await problem(send('POST', path))).toMatchObject({
      status: 409,
      code: 'key_in_use',
      reason: 'active',
    });
  });
});
