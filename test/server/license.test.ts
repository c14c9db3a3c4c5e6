import { z } from '@hono/zod-openapi';
import { afterEach, beforeEach, describe, expect, it, test } from 'vitest';
import { administrator, jsonResponse, defineRoute, type Problem } from '../../src/api/http.ts';
import { formatTime } from '../../src/lease/time.ts';
import { createLog } from '../../src/base/log.ts';
import { openOwnGate } from '../../src/server/license.ts';
import { startServer } from '../../src/server/server.ts';
import { resolveSettings } from '../../src/base/resolve-settings.ts';
import {
  DAY,
  KEY,
  keysetOf,
  leaseOf,
  newLicensePlace,
  type LicensePlace,
  type WatchedGate,
} from '../gate/license-place.ts';
import { newTestApp, type TestApp } from './in-process.ts';
import { isAtLength } from '../length.ts';

let place: LicensePlace;
let gate: WatchedGate;
let server: TestApp;

beforeEach(async () => {
  place = newLicensePlace();
  place.put(place.files.keyset, keysetOf(KEY));
  place.put(place.files.lease, leaseOf('1'));
  gate = await place.open();
  server = await newTestApp({}, gate);
});

afterEach(async () => {
  await server.close();
  await place.remove();
});

const Order = z.strictObject({ placed: z.literal(true) }).openapi('Order');

const placeOrder = defineRoute({
  method: 'post',
  path: '/orders',
  operationId: 'placeOrder',
  summary: 'Trade',
  tags: ['Server'],
  security: administrator('trade'),
  feature: 'live_trading',
  responses: { 201: jsonResponse('Done.', Order) },
});

/** Adds the route and sends a request to it. */
async function order(headers: Readonly<Record<string, string>>) {
  server.app.openapi(placeOrder, (c) => c.json({ placed: true as const }, 201));
  return server.send('POST', '/orders', { headers });
}

describe('a route that names a feature', () => {
  it('admits authorized callers while the license is valid', async () => {
    const authorization = await server.bearer('trade');
    const { status, headers } = await order({ authorization });
    expect([status, headers.get('x-service-license-status')]).toEqual([201, null]);
  });

  it('reports the grace period', async () => {
    const authorization = await server.bearer('trade');
    place.time.now += 8 * DAY;
    const { status, headers } = await order({ authorization });
    expect([status, headers.get('x-service-license-status')]).toEqual([201, 'grace']);
  });

  it('rejects requests when the license has expired, and logs it', async () => {
    const authorization = await server.bearer('trade');
    place.time.now += 10 * DAY;
    expect(await order({ authorization })).toMatchObject({
      status: 403,
      body: { code: 'license_invalid', reason: 'expired', request_id: expect.any(String) },
    });
    expect(JSON.parse(server.log.at(-1)!)).toMatchObject({
      path: '/orders',
      status: 403,
      code: 'license_invalid',
      reason: 'expired',
    });
  });

  it('does not reveal the state of the license to unauthorized callers', async () => {
    place.time.now += 10 * DAY;
    expect(await order({})).toMatchObject({ status: 401, body: { code: 'not_authenticated' } });
  });

  it('is described in the OpenAPI document', async () => {
    await order({});
    const { body } = await server.send('GET', '/openapi.json');
    expect(body).toHaveProperty(['paths', '/orders', 'post'], {
      ...(body as { paths: Record<string, { post: object }> }).paths['/orders']!.post,
      'x-license-feature': 'live_trading',
      responses: expect.objectContaining({
        201: expect.objectContaining({
          headers: { 'X-Service-License-Status': expect.any(Object) },
        }),
        403: expect.objectContaining({
          description: '`not_allowed`, `license_invalid`',
          headers: { 'X-Service-License-Status': expect.any(Object) },
        }),
      }),
    });
  });

  it.each([
    ['post', '/auth/license/leases'],
    ['post', '/identity/contracts'],
    ['post', '/healthz'],
    ['post', '/readyz'],
    ['post', '/metrics'],
    ['post', '/.well-known/license-keys.json'],
    ['post', '/halts'],
    ['post', '/bots/{bot_id}/halt'],
    ['post', '/bots/halt-all'],
    ['post', '/bots/{bot_id}:halt'],
    ['post', '/bots/{bot_id}/emergency-halt'],
    ['post', '/bots/{bot_id}/stop'],
    ['delete', '/bots/{bot_id}/stopped'],
    ['post', '/orders:cancelAll'],
    ['post', '/KillSwitch'],
    ['get', '/bots'],
  ] as const)('is none of those that must always work: %s %s', (method, path) => {
    const definition = { ...placeOrder, method, path };
    expect(() => defineRoute({ ...definition, feature: 'live_trading' })).toThrow(
      `${method} ${path} must work without a license`,
    );
  });
});

test.runIf(isAtLength)('an expired license blocks only routes that name a feature', async () => {
  const authorization = await server.bearer('read', 'write', 'trade', 'halt', 'license', 'admin');
  place.time.now += 10 * DAY;
  expect(gate.check('live_trading')).toMatchObject({ allowed: false, reason: 'expired' });
  await order({});
  const { body: document } = await server.send('GET', '/openapi.json');
  const { paths } = document as { paths: Record<string, Record<string, object>> };
  const routes = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method, path, operation })),
  );
  const refused: string[] = [];
  for (const { method, path } of routes) {
    // An authorized caller and an invalid body: the license is checked before the body.
    const { body } = await server.send(method.toUpperCase(), path.replaceAll(/\{\w+\}/g, 'x'), {
      headers: { authorization },
    });
    if ((body as Partial<Problem>).code === 'license_invalid') refused.push(`${method} ${path}`);
  }
  const named = routes.filter(({ operation }) => 'x-license-feature' in operation);
  expect(routes.length).toBeGreaterThan(30);
  expect(refused).toEqual(named.map(({ method, path }) => `${method} ${path}`));
  expect(refused).toEqual(['post /bots/{bot_ref}/deploy', 'post /orders']);
});

describe('the license of a server', () => {
  /** The gate of a server, and its log. */
  async function openOwn(env: Readonly<Record<string, string>> = {}) {
    const log: string[] = [];
    const { values } = resolveSettings(place.home, { SERVICE_LOCAL_HOME: place.home, ...env });
    const logged = createLog((line) => log.push((JSON.parse(line) as { msg: string }).msg), true);
    const { metrics } = server.services;
    const own = await openOwnGate(values, {}, logged, metrics);
    const decision = own.check('live_trading');
    const states = (await metrics.text()).match(/^service_local_license_state.*$/gm);
    await own.close();
    return { decision, log, states };
  }
  const ENFORCEMENT = 'SERVICE_LOCAL_LICENSE_ENFORCEMENT_ENABLED';
  const REGISTRY = 'SERVICE_LOCAL_LICENSE_REGISTRY_ENFORCED';

  beforeEach(() => {
    const issued_at = formatTime(Date.now() - 60_000);
    place.put(place.files.lease, leaseOf('own', 0, { issued_at }));
  });

  it('is reported at the start, in the log and in the metrics', async () => {
    expect(await openOwn()).toEqual({
      decision: { allowed: true, status: 'valid' },
      log: [
        expect.stringMatching(/^license own is valid until .*Z, with a grace period until .*Z$/),
      ],
      states: ['service_local_license_state{state="valid"} 1'],
    });
  });

  it('is reported as expired or rejected', async () => {
    place.put(place.files.lease, leaseOf('old'));
    expect((await openOwn()).log).toEqual([
      'license old is valid until 2026-01-12T09:30:00Z, with a grace period until 2026-01-15T09:30:00Z. The lease was not renewed, and its grace period is over.',
    ]);
    place.put(place.files.lease, 'torn');
    expect(await openOwn()).toMatchObject({
      log: [expect.stringContaining('license_lease.json was rejected: ')],
      states: ['service_local_license_state{state="none"} 1'],
    });
  });

  it('is not mentioned if there is none', async () => {
    const { decision, log } = await openOwn({ SERVICE_LOCAL_HOME: `${place.home}/empty` });
    expect(decision).toMatchObject({ allowed: false, reason: 'missing' });
    expect(log).toEqual([]);
  });

  it.each([
    ['true', 'true', false],
    ['true', 'false', false],
    ['false', 'true', false],
    ['false', 'false', true],
  ])(
    'is needed with license_enforcement_enabled %s and license_registry_enforced %s, unless %s',
    async (enforcement, registry, allowed) => {
      place.put(place.files.lease, '');
      const { decision } = await openOwn({ [ENFORCEMENT]: enforcement, [REGISTRY]: registry });
      expect(decision.allowed).toBe(allowed);
    },
  );

  it('is read by the server itself, which starts with any license', async () => {
    place.put(place.files.lease, 'torn');
    const log: string[] = [];
    const env = { SERVICE_LOCAL_HOME: place.home, SERVICE_LOCAL_SERVER_PORT: '0' };
    const { values } = resolveSettings(place.home, env);
    const running = await startServer(
      values,
      {},
      createLog((line) => log.push(line), true),
    );
    expect((await fetch(`${running.url}/healthz`)).status).toBe(200);
    await running.stop();
    expect(log.join('\n')).toContain('license_lease.json was rejected: ');
  });
});
