import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import type { CheckedSecret } from '../../../src/deploy/cloud/check.ts';
import type { PublicKey } from '../../../src/lease/keys.ts';
import { fingerprintOf, FOREIGN_ROOT, PIN, published } from '../../gate/signed-keyset.ts';
import { claimsOf, issue, testKey, type SigningKey } from '../../lease/issuer.ts';
import { newCloudWorld, type CloudWorld } from './cloud-world.ts';

const PREFIX = 'service/customer/acme/prod/license';
const ATTACKER = testKey(9);
const EXPIRED = { issued_at: '2025-01-05T09:30:00Z', expires_at: '2026-01-05T09:30:00Z' };
const FOREIGN_PIN = fingerprintOf(FOREIGN_ROOT);

interface Preflight {
  readonly ok: boolean;
  readonly secrets: readonly [keyset: CheckedSecret, lease: CheckedSecret];
  readonly trust: {
    readonly by: string;
    readonly pin: string | null;
    readonly root: string | null;
  };
}

let world: CloudWorld;
let serverKey: SigningKey;
beforeAll(async () => {
  world = await newCloudWorld();
});
beforeEach(async () => {
  world.test.now = Date.now();
  await world.configure({ license_deployment_id: 'acme-prod' });
  await world.ask(0, 'seed');
  const { keys } = JSON.parse(await readFile(secret('public_key'), 'utf8')) as {
    readonly keys: readonly [PublicKey];
  };
  const [{ kty, crv, x, kid }] = keys;
  serverKey = { ...ATTACKER, jwk: { kty, crv, x, kid } };
});
afterEach(() => vi.restoreAllMocks());
afterAll(() => world.close());

const secret = (name: string): string => join(world.directory, 'secrets', PREFIX, name);

const pinned = (pin = PIN): void => void Object.assign(world.env, { SERVICE_LICENSE_ROOT: pin });
afterEach(() => void Reflect.deleteProperty(world.env, 'SERVICE_LICENSE_ROOT'));

async function preflight(code: number): Promise<Preflight> {
  return world.ask<Preflight>(code, 'preflight');
}

const statuses = ({ secrets }: Preflight): string =>
  secrets.map(({ status, reason }) => (reason === null ? status : `${status} ${reason}`)).join();

describe('preflight', () => {
  test('reports that no root signs a bare keyset', async () => {
    const checked = await preflight(0);
    expect(checked.trust).toEqual({ by: 'unpinned', pin: null, root: null });
    const { stdout } = await world.cloud('preflight');
    expect(stdout).toContain('unpinned: the keys are trusted because they are in the secret');
    expect(stdout).toContain('no root signs them');
  });

  test('names the root of a signed keyset when no root is pinned', async () => {
    await writeFile(secret('public_key'), published([serverKey]));
    expect((await preflight(0)).trust).toEqual({ by: 'unpinned', pin: null, root: PIN });
    expect((await world.cloud('preflight')).stdout).toContain(`signed by the root ${PIN}`);
  });

  test('verifies the lease by the signed keys and ignores bare keys in the same file', async () => {
    const document = JSON.parse(published([serverKey])) as object;
    const keys = [ATTACKER.jwk, serverKey.jwk];
    await writeFile(secret('public_key'), JSON.stringify({ ...document, keys }));
    const issued_at = new Date().toISOString().replace(/\.\d+Z$/, 'Z');
    const claims = claimsOf(ATTACKER, { deployment_id: 'acme-prod', issued_at });
    await writeFile(secret('lease'), issue(claims, ATTACKER));
    expect(statuses(await preflight(4))).toBe('ok,unverified unknown_key');
  });

  test('accepts a keyset that the pinned root signs', async () => {
    await writeFile(secret('public_key'), published([serverKey]));
    pinned();
    const checked = await preflight(0);
    expect(checked.trust).toEqual({ by: 'pin', pin: PIN, root: PIN });
    const { stdout } = await world.cloud('preflight');
    expect(stdout).toContain(`descend from the pinned root ${PIN}`);
    expect(stdout).not.toContain('unpinned');
  });

  test('rejects a bare keyset and the keyset of another root when a root is pinned', async () => {
    pinned();
    const bare = await preflight(4);
    expect(statuses(bare)).toBe('unverified not_vouched_for,unverified unknown_key');
    expect((await world.cloud('preflight')).stderr).toContain('Compare SERVICE_LICENSE_ROOT');

    await writeFile(secret('public_key'), published([serverKey]));
    pinned(FOREIGN_PIN);
    const foreign = await preflight(4);
    expect(statuses(foreign)).toBe('unverified other_root,unverified unknown_key');
  });

  test('rejects an expired keyset only when a root is pinned', async () => {
    await writeFile(secret('public_key'), published([serverKey], EXPIRED));
    expect(statuses(await preflight(0))).toBe('ok,ok');
    pinned();
    expect(statuses(await preflight(4))).toBe('expired keyset_expired,ok');
    expect((await world.cloud('preflight')).stderr).toContain('identity root sign-keyset');
  });
});

test('cloud seed issues no lease if the pinned root did not sign the keys of the server', async () => {
  pinned();
  const before = await world.issued();
  const keyset = await readFile(secret('public_key'), 'utf8');
  const refused = await world.cloud('seed');
  expect(refused).toMatchObject({ code: 3, stdout: '' });
  expect(refused.stderr).toMatch(
    /^error invalid_data: cannot use the keys of the server: The keys are not signed/,
  );
  expect(await world.issued()).toEqual(before);
  expect(await readFile(secret('public_key'), 'utf8')).toBe(keyset);
});

test('cloud renew replaces an expired keyset without issuing a lease', async () => {
  pinned();
  const expired = published([serverKey], EXPIRED);
  await writeFile(secret('public_key'), expired);
  const before = await world.issued();
  publishing(expired);
  expect((await world.cloud('renew')).stderr).toMatch(/^error license_invalid: \S+ is expired/);
  publishing(published([serverKey], { version: 2 }));
  await world.ask(0, 'renew');
  expect(statuses(await preflight(0))).toBe('ok,ok');
  expect(await world.issued()).toEqual(before);
});

/** Makes the server publish this keyset document. */
function publishing(document: string): void {
  vi.restoreAllMocks();
  const { app } = world.test;
  const { fetch } = app;
  vi.spyOn(app, 'fetch').mockImplementation(async (request, ...rest) => {
    const answer = await fetch(request, ...rest);
    if (!request.url.endsWith('/.well-known/license-keys.json')) return answer;
    const headers = new Headers(answer.headers);
    headers.delete('content-length');
    return new Response(document, { headers });
  });
}
