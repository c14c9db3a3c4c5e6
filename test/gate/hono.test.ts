import { Hono } from 'hono';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  DAY,
  KEY,
  keysetOf,
  leaseOf,
  newLicensePlace,
  type LicensePlace,
} from './license-place.ts';

let place: LicensePlace;
beforeEach(() => {
  place = newLicensePlace();
  place.put(place.files.keyset, keysetOf(KEY));
  place.put(place.files.lease, leaseOf('1'));
});
afterEach(() => place.remove());

async function newApp(): Promise<Hono> {
  const gate = await place.open();
  const app = new Hono();
  app.post('/orders', gate.requireFeature('live_trading'), (c) => c.text('placed', 201));
  app.post('/fails', gate.requireFeature('live_trading'), () => {
    throw new Error('no broker');
  });
  app.post('/clusters', gate.requireFeature('byoc_deployments'), (c) => c.text('made', 201));
  app.onError((_, c) => c.text('failed', 500));
  return app;
}

const HEADER = 'x-service-license-status';

test('a request passes while the lease is valid', async () => {
  const answer = await (await newApp()).request('/orders', { method: 'POST' });
  expect([answer.status, await answer.text()]).toEqual([201, 'placed']);
  expect(answer.headers.get(HEADER)).toBeNull();
});

test('every response has the status header in the grace period', async () => {
  const app = await newApp();
  place.time.now += 8 * DAY;
  const answer = await app.request('/orders', { method: 'POST' });
  expect([answer.status, answer.headers.get(HEADER)]).toEqual([201, 'grace']);
  const failure = await app.request('/fails', { method: 'POST' });
  expect([failure.status, failure.headers.get(HEADER)]).toEqual([500, 'grace']);
});

test('a request without a license gets a problem document with reason and remedy', async () => {
  const app = await newApp();
  const missing = await app.request('/clusters', { method: 'POST' });
  expect(missing.status).toBe(403);
  expect(missing.headers.get('content-type')).toBe('application/problem+json');
  expect(await missing.json()).toEqual({
    type: 'about:blank',
    title: 'Forbidden',
    status: 403,
    code: 'license_invalid',
    detail: 'byoc_deployments is not licensed: The lease does not include this feature.',
    reason: 'entitlement_missing',
    remedy: 'Ask the issuer to add the feature to the contract; the next renewal includes it.',
    retryable: false,
  });
  place.time.now += 10 * DAY;
  const expired = await app.request('/orders', { method: 'POST' });
  expect([expired.status, expired.headers.get(HEADER)]).toEqual([403, null]);
  expect(await expired.json()).toMatchObject({
    code: 'license_invalid',
    reason: 'expired',
    remedy: 'Run `service-local doctor` on the machine of this program.',
  });
});
