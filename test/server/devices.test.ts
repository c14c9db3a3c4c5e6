import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Device } from '../../src/api/devices.ts';
import type { Problem } from '../../src/api/http.ts';
import { newDeviceKey, type DeviceKey } from '../../src/client/device-key.ts';
import { makeDeviceProof } from '../../src/client/device-proof.ts';
import { createContract } from '../../src/identity/contracts.ts';
import { createCustomer } from '../../src/identity/customers.ts';
import { createInstallation } from '../../src/identity/installations.ts';
import { createPlan } from '../../src/identity/plans.ts';
import { successionBody } from '../../src/base/proof-claims.ts';
import { newTestApp, PUBLIC_URL, type Answer, type TestApp } from './in-process.ts';

const CODES = '/identity/deployments/acme-tokyo/enrolment-codes';
const NOW = '2026-01-02T03:04:05Z';

let server: TestApp;
let authorization: string;
let key: DeviceKey;

beforeEach(async () => {
  server = await newTestApp();
  authorization = await server.bearer('license');
  key = newDeviceKey();
  const { identity } = server.services;
  await createCustomer(identity, 'server', { customer_id: 'acme', name: 'Acme' });
  await createPlan(identity, 'server', { plan_id: 'pro', name: 'Pro' });
  const contract = { contract_id: 'acme-2026', customer_id: 'acme', plan_id: 'pro' };
  await createContract(identity, 'server', { ...contract, ends_at: Date.UTC(2027, 0) });
  const installation = { deployment_id: 'acme-tokyo', contract_id: 'acme-2026', name: 'Tokyo' };
  await createInstallation(identity, 'server', installation);
});

afterEach(() => server.close());

const administer = (method: string, path: string, body?: unknown): Promise<Answer> =>
  server.send(method, path, { headers: { authorization }, body });

/** @param clock the clock of the device. */
const prove = (
  path: string,
  body: unknown,
  signer = key,
  { clock = server.now, nonce }: { clock?: number; nonce?: string } = {},
): Promise<Answer> => {
  const bytes = Buffer.from(JSON.stringify(body));
  const sent = { method: 'POST', url: PUBLIC_URL + path, body: bytes };
  const proof = makeDeviceProof(signer, sent, clock, nonce);
  const headers = { authorization: `DeviceProof ${proof}`, 'content-type': 'application/json' };
  return server.send('POST', path, { headers, body: bytes });
};

const jwkOf = ({ x }: DeviceKey) => ({ kty: 'OKP', crv: 'Ed25519', x });
const newCode = async (): Promise<string> => {
  const answer = await administer('POST', CODES);
  expect(answer).toMatchObject({
    status: 201,
    body: { deployment_id: 'acme-tokyo', expires_at: '2026-01-02T03:14:05Z' },
  });
  return (answer.body as { code: string }).code;
};
const enroll = async (): Promise<Device> => {
  const body = { code: await newCode(), jwk: jwkOf(key), name: 'trading-1' };
  const answer = await prove('/auth/license/devices', body);
  expect(answer.status).toBe(201);
  return answer.body as Device;
};
const rotate = (next: DeviceKey, options?: { clock?: number; nonce?: string }): Promise<Answer> => {
  const path = '/auth/license/devices/rotate';
  const sent = { method: 'POST', url: PUBLIC_URL + path, body: successionBody(key.device_id) };
  const body = { jwk: jwkOf(next), proof: makeDeviceProof(next, sent, options?.clock ?? 0) };
  return prove(path, body, key, options);
};

test('a device enrolls with a code and is listed', async () => {
  const device = await enroll();
  expect(device).toEqual({
    device_id: key.device_id,
    deployment_id: 'acme-tokyo',
    x: key.x,
    name: 'trading-1',
    enrolled_at: NOW,
    replaces: null,
    first_used_at: null,
    revoked_at: null,
    revoked_by: null,
    revoked_by_name: null,
    revoked_reason: null,
    machine_hash: null,
  });
  const list = { status: 200, body: { items: [device], next_cursor: null } };
  expect(await administer('GET', '/identity/devices')).toMatchObject(list);
  expect(await administer('GET', '/identity/devices?deployment_id=acme-tokyo')).toMatchObject(list);
  const { status } = await administer('GET', '/identity/devices?deployment_id=acme-osaka');
  expect(status).toBe(404);
});

test('an invalid code fails with 401 and a used key with 409, each with a reason', async () => {
  const body = { code: 'x', jwk: jwkOf(key), name: 'trading-1' };
  expect(await prove('/auth/license/devices', body)).toMatchObject({
    status: 401,
    body: { code: 'not_authenticated', reason: 'unknown_code' },
  });
  await enroll();
  await administer('POST', `/identity/devices/${key.device_id}/revoke`, { reason: 'sold' });
  const again = { ...body, code: await newCode() };
  expect(await prove('/auth/license/devices', again)).toMatchObject({
    status: 409,
    body: { code: 'conflict', reason: 'revoked_key' },
  });
});

test('an enrollment accepts a public key but no private key', async () => {
  const body = { code: await newCode(), jwk: { ...jwkOf(key), d: 'x'.repeat(43) }, name: 'a' };
  const answer = await prove('/auth/license/devices', body);
  expect(answer).toMatchObject({ status: 400, body: { errors: [{ pointer: '/jwk/d' }] } });
  expect(JSON.stringify(answer.body)).not.toContain('xxx');
});

test('an enrollment requires a proof signed with the enrolled key', async () => {
  const body = { code: await newCode(), jwk: jwkOf(key), name: 'trading-1' };
  expect(await prove('/auth/license/devices', body, newDeviceKey())).toMatchObject({
    status: 401,
    body: { code: 'invalid_device_proof', reason: 'bad_signature' },
  });
  expect(await server.send('POST', '/auth/license/devices', { body })).toMatchObject({
    status: 401,
    body: { code: 'invalid_device_proof', reason: 'missing_proof' },
  });
});

test('a device can register its next key repeatedly', async () => {
  await enroll();
  const next = newDeviceKey();
  const { status, body } = await rotate(next);
  expect({ status, body }).toMatchObject({
    status: 201,
    body: { device_id: next.device_id, replaces: key.device_id, first_used_at: null },
  });
  expect((await rotate(next)).body).toEqual(body);
});

test('a device with a wrong clock receives a nonce and succeeds with it', async () => {
  await enroll();
  const next = newDeviceKey();
  const refused = await rotate(next, { clock: 0 });
  expect(refused).toMatchObject({
    status: 401,
    body: { code: 'invalid_device_proof', reason: 'use_nonce' },
  });
  const nonce = refused.headers.get('service-nonce')!;
  expect((await rotate(next, { clock: 0, nonce })).status).toBe(201);
  const unknown = await rotate(next, { clock: 0, nonce: `${nonce}A` });
  expect((unknown.body as Problem).reason).toBe('unknown_nonce');
  expect(unknown.headers.get('service-nonce')).toBe(nonce);
});

test('a revoked device is rejected', async () => {
  await enroll();
  const path = `/identity/devices/${key.device_id}/revoke`;
  expect(await administer('POST', path, { reason: 'sold' })).toMatchObject({
    status: 200,
    body: { revoked_at: NOW, revoked_by: expect.stringMatching(/^administrator:/) as string },
  });
  expect(await rotate(newDeviceKey())).toMatchObject({
    status: 401,
    body: { code: 'invalid_device_proof', reason: 'revoked_device' },
  });
  const unknown = `/identity/devices/${newDeviceKey().device_id}/revoke`;
  expect((await administer('POST', unknown, { reason: 'sold' })).status).toBe(404);
});

test('administrators need the scope license for devices', async () => {
  authorization = await server.bearer('admin', 'read', 'write');
  for (const [method, path, body] of [
    ['POST', CODES],
    ['GET', '/identity/devices'],
    ['POST', `/identity/devices/${key.device_id}/revoke`, { reason: 'sold' }],
  ] as const) {
    const answer = await administer(method, path, body);
    expect(answer, path).toMatchObject({ status: 403, body: { code: 'not_allowed' } });
  }
});
