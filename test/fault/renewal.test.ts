import { once } from 'node:events';
import { mkdtempSync, rmSync, truncateSync } from 'node:fs';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAdaptorServer } from '@hono/node-server';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Machine } from '../../daemon/machine.ts';
import { renew, type Outcome as Renewal } from '../../daemon/renewal.ts';
import { enroll } from '../../src/client/enrollment.ts';
import { readLicense } from '../../src/gate/license.ts';
import type { Identity } from '../../src/identity/context.ts';
import { createEnrollmentCode } from '../../src/identity/enrollment.ts';
import { renewalMoment } from '../../src/lease/renewal-moment.ts';
import { licenseFiles } from '../../src/gate/license-files.ts';
import { createLog } from '../../src/base/log.ts';
import { createApp } from '../../src/server/app.ts';
import { createMetrics } from '../../src/server/metrics.ts';
import {
  announceNext,
  newLeaseWorld,
  newSigner,
  type LeaseWorld,
} from '../identity/lease-world.ts';
import {
  chatOf,
  idleTasks,
  noProduction,
  notifierOf,
  NO_FEDERATION,
} from '../server/idle-tasks.ts';
import { OPEN_GATE } from '../server/open-gate.ts';
import { isAtLength, some } from '../length.ts';
import { failAt, type FailPoint, type Outcome } from './fail-points.ts';

let world: LeaseWorld;
let identity: Identity;
let server: Server;
let root: string;
let url: string;
beforeEach(async () => {
  world = await newLeaseWorld('sqlite');
  identity = world.with({ policy: { clone_policy: 'refuse', ttl_seconds: 3600 } });
  let app: ReturnType<typeof createApp>;
  server = createAdaptorServer({ fetch: (request) => app.fetch(request) }) as Server;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const log = createLog(() => {}, true);
  const metrics = createMetrics(identity);
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
    metrics,
  });
  root = mkdtempSync(join(tmpdir(), 'service-local-renewal-'));
});
afterEach(async () => {
  server.close();
  server.closeAllConnections();
  await world.close();
  rmSync(root, { recursive: true });
});

function newMachine(): Machine {
  const home = mkdtempSync(join(root, 'home-'));
  return {
    files: licenseFiles(home, {}),
    url,
    clock: () => world.now,
    boot: () => ({ boot_id: 'boot', uptime_seconds: world.now / 1000 }),
    random: () => 0.5,
    warn: () => undefined,
  };
}

function restarted(machine: Machine): Machine {
  const directory = mkdtempSync(join(root, 'locks-'));
  return { ...machine, files: { ...machine.files, lock: join(directory, 'license.lock') } };
}

const newCode = async (): Promise<string> =>
  (await createEnrollmentCode(identity, 'operator', 'tokyo')).code;

/** Ids of all leases that the server gave, the newest first. */
async function given(): Promise<string[]> {
  const leases = identity.storage.read.selectFrom('license_leases').select('lease_id');
  const rows = await leases.orderBy('issued_at', 'desc').execute();
  return rows.map(({ lease_id }) => lease_id);
}

const held = async ({ files }: Machine) => (await readLicense(files, world.now)).leases[0];

/**
 * Power cuts directly after each rename of a file, when the new name may or may not be durable: one cut
 * for each of the two cases. Every other state that a power cut can leave equals one of these.
 *
 * @param calls of a run that nothing cut off.
 */
function powerCuts(calls: readonly string[]): Pick<FailPoint, 'at' | 'fault'>[] {
  const named = [...calls.keys()].filter((i) => calls[i]!.startsWith('open home-'));
  const faults = ['lost_contents', 'lost_names'] as const;
  const cuts = named.flatMap((i) => faults.map((fault) => ({ at: i + 1, fault })));
  // One of the two faults at each rename.
  return isAtLength ? cuts : cuts.filter((_, i) => i % 4 === 0 || i % 4 === 3);
}

const NEVER = { at: Infinity, fault: 'kill' } as const;

test.each(
  some(1, [
    // The pending request twice, the backup, the lease, and the outcome.
    ['the same keys', 5, false],
    // Also the keyset and the trust anchor.
    ['a new key', 7, true],
  ]),
)(
  'a renewal with %s interrupted by a power cut at any moment resumes, issues one lease and reports no clone',
  async (_keys, writes, isNewKey) => {
    const machine = newMachine();
    const directory = join(machine.files.lease, '..');
    await enroll(machine, await newCode(), 'trading-1');
    const attempt = async (point: Pick<FailPoint, 'at' | 'fault'>): Promise<Outcome> => {
      world.now = renewalMoment((await held(machine))!.claims) + 1000;
      if (isNewKey) Object.assign(identity, { signer: await announceNext(world, identity) });
      return failAt({ directory, ...point }, () => renew(restarted(machine), { force: false }));
    };
    const cuts = powerCuts((await attempt(NEVER)).calls);
    expect(cuts).toHaveLength((isAtLength ? 2 : 1) * writes);
    for (const cut of cuts) {
      const count = (await given()).length;
      const { end } = await attempt(cut);
      expect(end).toBe('power_cut');
      expect(await held(machine)).toBeDefined();
      const { status } = await renew(restarted(machine), { force: false });
      expect(status).toBeOneOf(['renewed', 'not_due'] satisfies Renewal['status'][]);
      const all = await given();
      expect(all).toHaveLength(count + 1);
      expect((await held(machine))!.claims.lease_id).toBe(all[0]);
    }
  },
);

test('an enrollment can be completed with the same code after a power failure at any moment', async () => {
  const attempt = async (point: Pick<FailPoint, 'at' | 'fault'>) => {
    const machine = newMachine();
    const directory = join(machine.files.lease, '..');
    const code = await newCode();
    const work = () => enroll(restarted(machine), code, 'trading-1');
    return { machine, work, outcome: await failAt({ directory, ...point }, work) };
  };
  const cuts = powerCuts((await attempt(NEVER)).outcome.calls);
  // Key, backup, keyset, trust anchor and lease.
  expect(cuts).toHaveLength((isAtLength ? 2 : 1) * 5);
  for (const cut of cuts) {
    const count = (await given()).length;
    const { machine, work, outcome } = await attempt(cut);
    expect(outcome.end).toBe('power_cut');
    const { device_id, claims } = await work();
    expect(claims.device_thumbprint).toBe(device_id);
    expect((await held(machine))!.claims).toEqual(claims);
    expect(await given()).toHaveLength(count + 1);
  }
});

test('an enrollment under other keys keeps the former lease after a power failure, even if only its backup was complete', async () => {
  const attempt = async (point: Pick<FailPoint, 'at' | 'fault'>) => {
    const machine = newMachine();
    const directory = join(machine.files.lease, '..');
    await enroll(machine, await newCode(), 'trading-1');
    truncateSync(machine.files.lease, 40);
    rmSync(machine.files.key);
    Object.assign(identity, { signer: await newSigner(identity) });
    const keyset = await (await fetch(`${url}/.well-known/license-keys.json`)).text();
    const code = await newCode();
    const work = () => enroll(restarted(machine), code, 'trading-1', { keyset });
    return { machine, work, outcome: await failAt({ directory, ...point }, work) };
  };
  for (const cut of powerCuts((await attempt(NEVER)).outcome.calls)) {
    const { machine, work, outcome } = await attempt(cut);
    expect(outcome.end).toBe('power_cut');
    expect(await held(machine)).toBeDefined();
    const { claims } = await work();
    expect((await held(machine))!.claims).toEqual(claims);
  }
});
