import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAdaptorServer, type HttpBindings } from '@hono/node-server';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Machine } from '../../daemon/machine.ts';
import { renew, type Outcome } from '../../daemon/renewal.ts';
import { readState } from '../../daemon/daemon-state.ts';
import { enroll, rotateKey } from '../../src/client/enrollment.ts';
import { readLicense } from '../../src/gate/license.ts';
import type { Identity } from '../../src/identity/context.ts';
import { reinstateInstallation } from '../../src/identity/installations.ts';
import { createEnrollmentCode } from '../../src/identity/enrollment.ts';
import { importKeyset } from '../../src/lease/keys.ts';
import { leaseStatus } from '../../src/lease/status.ts';
import { verifyLease } from '../../src/lease/verify.ts';
import { licenseFiles } from '../../src/gate/license-files.ts';
import { createLog } from '../../src/base/log.ts';
import { createApp } from '../../src/server/app.ts';
import { createMetrics } from '../../src/server/metrics.ts';
import { announceNext, newLeaseWorld, revokeAs, type LeaseWorld } from '../identity/lease-world.ts';
import {
  chatOf,
  idleTasks,
  noProduction,
  notifierOf,
  NO_FEDERATION,
} from '../server/idle-tasks.ts';
import { OPEN_GATE } from '../server/open-gate.ts';
import { some } from '../length.ts';
import { DAY, HOUR } from './rig.ts';

let world: LeaseWorld;
let identity: Identity;
let server: Server;
let home: string;
let machine: Machine;
let warnings: string[];
/** The path of each request. */
let requests: string[];
/** Called when a request has been done and not yet answered; false: it will not be. */
let beforeAnswer: (path: string) => Promise<boolean>;

const KEYS = '/.well-known/license-keys.json';
const LEASE = '/auth/license/leases';

beforeEach(async () => {
  world = await newLeaseWorld('sqlite');
  identity = world.with({ policy: { registry_enforced: true } });
  [warnings, requests] = [[], []];
  beforeAnswer = async () => true;
  let app: ReturnType<typeof createApp>;
  server = createAdaptorServer({
    async fetch(request, bindings) {
      const { pathname } = new URL(request.url);
      const answer = await app.fetch(request);
      requests.push(pathname);
      if (!(await beforeAnswer(pathname))) (bindings as HttpBindings).outgoing.destroy();
      return answer;
    },
  }) as Server;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const log = createLog(() => {}, true);
  const metrics = createMetrics(identity);
  const tasks = idleTasks(identity);
  const production = noProduction(identity);
  const stopping = new AbortController().signal;
  const origins = [url] as const;
  app = createApp({
    identity,
    gate: OPEN_GATE,
    isProxy: () => false,
    tasks,
    production,
    chat: chatOf(identity),
    notifier: notifierOf(identity),
    federation: NO_FEDERATION,
    stopping,
    origins,
    log,
    metrics,
  });
  home = join(mkdtempSync(join(tmpdir(), 'service-local-renewal-')), 'home');
  machine = {
    files: licenseFiles(home, {}),
    url,
    clock: () => world.now,
    boot: () => ({ boot_id: 'boot', uptime_seconds: world.now / 1000 }),
    random: () => 0.5,
    warn: (text) => warnings.push(text),
  };
  const { code } = await createEnrollmentCode(identity, 'operator', 'tokyo');
  await enroll(machine, code, 'trading-1');
  requests = [];
});

afterEach(async () => {
  server.close();
  server.closeAllConnections();
  await world.close();
  rmSync(join(home, '..'), { recursive: true });
});

const now = (): Promise<Outcome> => renew(machine, { force: true });
const contents = (name: 'lease' | 'keyset'): string => readFileSync(machine.files[name], 'utf8');
const leases = async (): Promise<number> =>
  (await identity.storage.read.selectFrom('license_leases').selectAll().execute()).length;
const rotateSigner = async (): Promise<void> =>
  void Object.assign(identity, { signer: await announceNext(world, identity) });

test('the server repeats a response that was lost', async () => {
  beforeAnswer = async () => false;
  expect(await now()).toMatchObject({ status: 'failed', error: { code: 'server_unreachable' } });
  beforeAnswer = async (path) => path !== KEYS;
  expect(await now()).toMatchObject({ status: 'failed', error: { code: 'server_unreachable' } });
  beforeAnswer = async () => true;
  expect(await now()).toMatchObject({ status: 'renewed' });
  expect(await leases()).toBe(2);
  expect(warnings).toEqual([]);
});

test.each(
  some(1, [
    ['before the lease response', LEASE],
    ['before the keyset response', KEYS],
  ]),
)('a signing key that is rotated %s leaves no gap', async (_when, at) => {
  const old = { lease: contents('lease'), keyset: contents('keyset') };
  const states: (string | undefined)[] = [];
  beforeAnswer = async (path) => {
    if (path === at) await rotateSigner();
    const { leases: held } = await readLicense(machine.files, world.now);
    states.push(held[0] && leaseStatus(held[0].claims, world.now).state);
    return true;
  };
  for (let i = 0; i < 3; i += 1) {
    world.now += HOUR;
    expect(await now()).toMatchObject({ status: 'renewed' });
    const { leases: held, refused } = await readLicense(machine.files, world.now);
    expect([held.length, refused]).toEqual([2, []]);
  }
  expect(new Set(states)).toEqual(new Set(['valid']));

  const keyset = importKeyset(old.keyset);
  const verifies = (text: string) => (keyset.ok ? verifyLease(text, keyset.keys) : keyset);
  expect(verifies(contents('lease'))).toMatchObject({ ok: false, reason: 'unknown_key' });
  const held = verifies(old.lease);
  expect(held.ok && leaseStatus(held.claims, world.now + 9 * DAY).state).toBe('grace');
  expect(warnings).toEqual([]);
});

test('a revoked lease stays in force until its end, and is renewed after a reinstatement', async () => {
  const before = contents('lease');
  await revokeAs(world, identity, { deployment_id: 'tokyo' }, 'tokyo');
  expect(await now()).toMatchObject({ status: 'failed', error: { code: 'license_revoked' } });
  expect(contents('lease')).toBe(before);
  const { last_error, next_attempt_because } = await readState(machine.files.state);
  expect(next_attempt_because).toBe('denied');
  expect(last_error?.message).toMatch(/is revoked; its issued leases work until \d{4}-/);
  await reinstateInstallation(identity, 'operator', 'tokyo');
  expect(await now()).toMatchObject({ status: 'renewed' });
});

test('a rotated key presents the lease of the former key', async () => {
  const { device_id } = await rotateKey(machine);
  const outcome = await now();
  expect(outcome).toMatchObject({
    status: 'renewed',
    lease: { claims: { device_thumbprint: device_id } },
  });
  expect(requests.slice(1)).toEqual([LEASE, KEYS]);
  expect(warnings).toEqual([]);
});

test('a wrong clock costs one additional request', async () => {
  const wrong = { ...machine, clock: () => world.now - 365 * DAY };
  expect(await renew(wrong, { force: true })).toMatchObject({ status: 'renewed' });
  expect(requests).toEqual([LEASE, LEASE, KEYS]);
  expect(await leases()).toBe(2);
});
