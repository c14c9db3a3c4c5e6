import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAdaptorServer, type HttpBindings } from '@hono/node-server';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { readDeviceKey } from '../../src/client/device-key.ts';
import { enroll, rotateKey, type Device } from '../../src/client/enrollment.ts';
import { licenseFiles } from '../../src/gate/license-files.ts';
import { ServiceError } from '../../src/base/errors.ts';
import { createEnrollmentCode } from '../../src/identity/enrollment.ts';
import type { Identity } from '../../src/identity/context.ts';
import { importKeyset } from '../../src/lease/keys.ts';
import { verifyLease } from '../../src/lease/verify.ts';
import { createApp } from '../../src/server/app.ts';
import { createMetrics } from '../../src/server/metrics.ts';
import { createLog } from '../../src/base/log.ts';
import { newLeaseWorld, type LeaseWorld } from '../identity/lease-world.ts';
import { testKey } from '../lease/issuer.ts';
import {
  chatOf,
  idleTasks,
  noProduction,
  notifierOf,
  NO_FEDERATION,
} from '../server/idle-tasks.ts';
import { OPEN_GATE } from '../server/open-gate.ts';

let world: LeaseWorld;
let identity: Identity;
let server: Server;
let home: string;
let device: Device;
let warnings: string[];
/** The requests that came, as `POST /auth/license/devices`. */
let requests: string[];
/** Which of them, from 1, is done and not answered: the connection breaks. */
let unanswered: number;
let forged: Readonly<Record<string, string>>;

beforeEach(async () => {
  world = await newLeaseWorld('sqlite');
  ({ identity } = world);
  [warnings, requests, unanswered, forged] = [[], [], 0, {}];
  let app: ReturnType<typeof createApp>;
  server = createAdaptorServer({
    async fetch(request, bindings) {
      const { pathname } = new URL(request.url);
      const answer = await app.fetch(request);
      if (requests.push(`${request.method} ${pathname}`) === unanswered) {
        (bindings as HttpBindings).outgoing.destroy();
      }
      return forged[pathname] === undefined ? answer : new Response(forged[pathname], answer);
    },
  }) as Server;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const log = createLog(() => {}, true);
  app = createApp({
    identity,
    origins: [url],
    isProxy: () => false,
    gate: OPEN_GATE,
    tasks: idleTasks(identity),
    production: noProduction(identity),
    chat: chatOf(identity),
    notifier: notifierOf(identity),
    federation: NO_FEDERATION,
    stopping: new AbortController().signal,
    log,
    metrics: createMetrics(identity),
  });
  home = join(mkdtempSync(join(tmpdir(), 'service-local-enrollment-')), 'home');
  device = {
    files: licenseFiles(home, {}),
    url,
    clock: () => world.now,
    warn: (text) => warnings.push(text),
  };
});

afterEach(async () => {
  server.close();
  server.closeAllConnections();
  await world.close();
  rmSync(join(home, '..'), { recursive: true });
});

const newCode = async (installation = 'tokyo'): Promise<string> =>
  (await createEnrollmentCode(identity, 'operator', installation)).code;
const count = async (table: 'devices' | 'license_leases'): Promise<number> =>
  (await identity.storage.read.selectFrom(table).selectAll().execute()).length;
const names = (): string[] =>
  readdirSync(home)
    .filter((name) => name !== 'license.lock')
    .sort();
const contents = (): Record<string, string> =>
  Object.fromEntries(names().map((name) => [name, readFileSync(join(home, name), 'utf8')]));
const ENROLL = 'POST /auth/license/devices';
const KEYS = 'GET /.well-known/license-keys.json';
const LEASE = 'POST /auth/license/leases';
const ROTATE = 'POST /auth/license/devices/rotate';

describe('enrollment', () => {
  test('an enrollment stores a device key, the keyset and a lease that verifies', async () => {
    const { device_id, claims } = await enroll(device, await newCode(), 'trading-1');
    expect(requests).toEqual([KEYS, ENROLL, LEASE]);
    expect(names()).toEqual([
      'device.key',
      'license_lease.json',
      'license_lease.json.bak',
      'license_public_key.json',
      'license_root.json',
    ]);
    for (const name of readdirSync(home)) {
      expect(statSync(join(home, name)).mode & 0o777, name).toBe(0o600);
    }
    expect((await readDeviceKey(device.files.key))?.device_id).toBe(device_id);
    const keyset = importKeyset(readFileSync(device.files.keyset, 'utf8'));
    expect(keyset.ok && verifyLease(readFileSync(device.files.lease, 'utf8'), keyset.keys)).toEqual(
      {
        ok: true,
        claims,
        keyId: claims.public_key_id,
      },
    );
    expect(claims).toMatchObject({
      deployment_id: 'tokyo',
      device_thumbprint: device_id,
      entitlements: ['kb_federation', 'live_trading'],
    });
    expect(warnings).toEqual([]);
  });

  test.each([1, 2, 3])(
    'an enrollment can be completed after the response to request %i was lost',
    async (lost) => {
      const code = await newCode();
      unanswered = lost;
      await expect(enroll(device, code, 'trading-1')).rejects.toMatchObject({
        code: 'server_unreachable',
      });
      // Before the keys of the server are judged, there is no key either.
      const before = lost === 1 ? undefined : readFileSync(device.files.key, 'utf8');
      expect(names()).toEqual(lost === 1 ? [] : ['device.key']);
      const { claims } = await enroll(device, code, 'trading-1');
      if (lost > 1) expect(readFileSync(device.files.key, 'utf8')).toBe(before);
      expect([await count('devices'), await count('license_leases')]).toEqual([1, 1]);
      expect(claims.lease_id).toBe(
        (await identity.storage.read.selectFrom('license_leases').selectAll().execute())[0]!
          .lease_id,
      );
      expect(warnings).toEqual([]);
    },
  );

  test('an enrollment can be completed after an interruption at each file', async () => {
    const code = await newCode();
    await enroll(device, code, 'trading-1');
    const all = contents();
    for (const missing of [['lease'], ['lease', 'keyset'], ['keyset']] as const) {
      for (const name of missing) rmSync(device.files[name]);
      await enroll(device, code, 'trading-1');
      expect(contents()).toEqual(all);
    }
    writeFileSync(device.files.lease, all['license_lease.json']!.slice(0, 100));
    await enroll(device, code, 'trading-1');
    expect(contents()).toEqual(all);
    expect([await count('devices'), await count('license_leases')]).toEqual([1, 1]);
  });

  test('an enrollment keeps a valid lease, and renews one that has ended', async () => {
    const { claims } = await enroll(device, await newCode(), 'trading-1');
    world.now += 3_600_000;
    await enroll(device, await newCode(), 'trading-1');
    expect(await count('license_leases')).toBe(1);
    world.now += 8 * 86_400_000;
    const renewed = await enroll(device, await newCode(), 'trading-1');
    expect(renewed.claims.previous_lease_id).toBe(claims.lease_id);
    expect(warnings).toEqual([]);
  });

  test('an enrollment works with a wrong clock', async () => {
    const wrong = { ...device, clock: () => Date.UTC(2001, 0) };
    const { claims } = await enroll(wrong, await newCode(), 'trading-1');
    expect(requests).toEqual([KEYS, ENROLL, LEASE, LEASE]);
    expect(existsSync(device.files.lease)).toBe(true);
    expect(claims.deployment_id).toBe('tokyo');
  });

  test('an enrollment can be completed when the server can sign again', async () => {
    const code = await newCode();
    const { signer } = identity;
    const unavailable = new ServiceError('license_lease_unavailable', 'the key is gone');
    Object.assign(identity, { signer: unavailable });
    await expect(enroll(device, code, 'trading-1')).rejects.toMatchObject({
      code: 'license_lease_unavailable',
    });
    expect(names()).toEqual(['device.key']);
    Object.assign(identity, { signer });
    await enroll(device, code, 'trading-1');
    expect(await count('devices')).toBe(1);
  });

  test('an enrollment refuses keys and leases that do not match', async () => {
    const code = await newCode();
    const refuses = async (
      path: string,
      body: unknown,
      reason: string,
      left: readonly string[],
    ): Promise<void> => {
      forged = { [path]: JSON.stringify(body) };
      await expect(enroll(device, code, 'trading-1')).rejects.toMatchObject({
        code: 'invalid_data',
        reason,
        remedy: expect.stringContaining('No file was changed.') as string,
      });
      expect(names()).toEqual(left);
    };
    const keyset = '/.well-known/license-keys.json';
    await refuses(keyset, { keys: [] }, 'invalid_keyset', []);
    await refuses(keyset, { keys: [testKey(1).jwk] }, 'unknown_key', ['device.key']);
    const answer = { lease: { payloadType: 'x' }, warnings: [] };
    await refuses('/auth/license/leases', answer, 'not_an_envelope', ['device.key']);
  });

  test('an enrollment refuses a lease of another device', async () => {
    const other = { ...device, files: licenseFiles(join(home, '..', 'other'), {}) };
    await enroll(other, await newCode(), 'trading-2');
    const lease = JSON.parse(readFileSync(other.files.lease, 'utf8')) as unknown;
    forged = { '/auth/license/leases': JSON.stringify({ lease, warnings: [] }) };
    await expect(enroll(device, await newCode(), 'trading-1')).rejects.toMatchObject({
      code: 'invalid_data',
      reason: 'other_lease',
    });
    expect(names()).toEqual(['device.key']);
  });

  test('two concurrent enrollments in one home lead to one key and a lease for it', async () => {
    const codes = [await newCode(), await newCode()];
    const all = await Promise.all(codes.map((code) => enroll(device, code, 'trading-1')));
    const { device_id } = (await readDeviceKey(device.files.key))!;
    for (const { claims, ...enrolled } of all) {
      expect([enrolled.device_id, claims.device_thumbprint]).toEqual([device_id, device_id]);
    }
    expect(await count('devices')).toBe(1);
    expect(names()).toHaveLength(5);
  });

  test('an enrollment with the device key of another installation is refused with a remedy', async () => {
    await enroll(device, await newCode(), 'trading-1');
    const before = contents();
    await expect(enroll(device, await newCode('osaka'), 'trading-1')).rejects.toMatchObject({
      code: 'conflict',
      reason: 'other_deployment',
      remedy: `Move ${device.files.key} away and enroll again; enrollment creates a new key.`,
    });
    expect(contents()).toEqual(before);
  });
});

describe('rotation of the key', () => {
  let code: string;

  beforeEach(async () => {
    code = await newCode();
    await enroll(device, code, 'trading-1');
    requests = [];
  });

  /** Asks with the key in its place: for a lease, once the one it has is ended. */
  const use = async (): Promise<void> => {
    world.now += 8 * 86_400_000;
    await enroll(device, await newCode(), 'trading-1');
  };
  const revoked = async (): Promise<(string | null)[]> => {
    const rows = await identity.storage.read
      .selectFrom('devices')
      .select('revoked_reason')
      .orderBy('enrolled_at')
      .execute();
    return rows.map(({ revoked_reason }) => revoked_reason);
  };

  test('a rotation replaces the key, and the old one is refused once the new one is used', async () => {
    const before = await readDeviceKey(device.files.key);
    world.now += 1000;
    const { device_id, replaces } = await rotateKey(device);
    expect(replaces).toBe(before?.device_id);
    expect((await readDeviceKey(device.files.key))?.device_id).toBe(device_id);
    expect(statSync(device.files.key).mode & 0o777).toBe(0o600);
    expect(existsSync(device.files.nextKey)).toBe(false);
    expect(await revoked()).toEqual([null, null]);
    await use();
    expect(await revoked()).toEqual(['replaced', null]);
  });

  test('a rotation continues with the same key after its response was lost', async () => {
    const before = readFileSync(device.files.key, 'utf8');
    unanswered = 1;
    await expect(rotateKey(device)).rejects.toMatchObject({ code: 'server_unreachable' });
    expect(readFileSync(device.files.key, 'utf8')).toBe(before);
    const next = readFileSync(device.files.nextKey, 'utf8');
    await rotateKey(device);
    expect(requests).toEqual([ROTATE, ROTATE]);
    expect(readFileSync(device.files.key, 'utf8')).toBe(next);
    expect(existsSync(device.files.nextKey)).toBe(false);
    expect(await count('devices')).toBe(2);
    await use();
  });

  test('the old key stays valid while the response to a rotation is lost', async () => {
    unanswered = 1;
    await expect(rotateKey(device)).rejects.toMatchObject({ code: 'server_unreachable' });
    await use();
    await rotateKey(device);
    await use();
    expect(await revoked()).toEqual(['replaced', null]);
  });

  test('a rotation works with a wrong clock', async () => {
    await rotateKey({ ...device, clock: () => 0 });
    expect(requests).toEqual([ROTATE, ROTATE]);
  });

  test('a rotation names the path that it cannot write, and continues later', async () => {
    const { key } = device.files;
    const clock = (): number => {
      rmSync(key, { recursive: true });
      mkdirSync(join(key, 'something'), { recursive: true });
      return world.now;
    };
    const before = readFileSync(key, 'utf8');
    await expect(rotateKey({ ...device, clock })).rejects.toMatchObject({
      code: 'output_not_writable',
      message: expect.stringContaining(`${key}: `) as string,
    });
    rmSync(key, { recursive: true });
    writeFileSync(key, before, { mode: 0o600 });
    const { device_id } = (await readDeviceKey(device.files.nextKey))!;
    expect(await rotateKey(device)).toMatchObject({ device_id });
  });

  test('a rotation requires an enrolled machine', async () => {
    rmSync(device.files.key);
    await expect(rotateKey(device)).rejects.toMatchObject({
      code: 'file_not_found',
      message: expect.stringContaining(device.files.key) as string,
    });
    expect(requests).toEqual([]);
  });
});
