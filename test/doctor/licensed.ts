import { once } from 'node:events';
import type { Server } from 'node:http';
import { createServer, type ServerOptions } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createAdaptorServer } from '@hono/node-server';
import { daemonFiles } from '../../daemon/daemon-files.ts';
import { newNote, writeNote, type DaemonNote } from '../../daemon/note.ts';
import { NO_STATE, writeState, type DaemonState } from '../../daemon/daemon-state.ts';
import { enroll } from '../../src/client/enrollment.ts';
import type { Machine } from '../../src/doctor/machine-facts.ts';
import { createEnrollmentCode } from '../../src/identity/enrollment.ts';
import type { LeaseClaims } from '../../src/lease/claims.ts';
import { renewalMoment } from '../../src/lease/renewal-moment.ts';
import { formatTime } from '../../src/lease/time.ts';
import { licenseFiles } from '../../src/gate/license-files.ts';
import { createLog } from '../../src/base/log.ts';
import { createApp } from '../../src/server/app.ts';
import { createMetrics } from '../../src/server/metrics.ts';
import { newLeaseWorld, type LeaseWorld } from '../identity/lease-world.ts';
import {
  chatOf,
  idleTasks,
  noProduction,
  notifierOf,
  NO_FEDERATION,
} from '../server/idle-tasks.ts';
import { OPEN_GATE } from '../server/open-gate.ts';

/** Certificate and key of a server that speaks TLS, as `https://localhost`. */
export type Certificate = Pick<ServerOptions, 'cert' | 'key'>;

/** A license server in this process, whose clock the test sets. */
export interface Issuer {
  readonly world: LeaseWorld;
  readonly url: string;
  /** Time in its `Date` headers, ms since the Unix epoch. */
  now: number;
  readonly close: () => Promise<void>;
}

export async function startIssuer(certificate?: Certificate): Promise<Issuer> {
  const world = await newLeaseWorld('sqlite');
  const { identity } = world;
  let app: ReturnType<typeof createApp>;
  const server = createAdaptorServer({
    async fetch(request) {
      const answer = await app.fetch(request);
      answer.headers.set('date', new Date(issuer.now).toUTCString());
      return answer;
    },
    ...(certificate && { createServer, serverOptions: certificate }),
  }) as Server;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const origin = certificate ? 'https://localhost' : 'http://127.0.0.1';
  const url = `${origin}:${(server.address() as AddressInfo).port}`;
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
  const issuer: Issuer = {
    world,
    url,
    now: world.now,
    async close() {
      server.close();
      server.closeAllConnections();
      await world.close();
    },
  };
  return issuer;
}

/** A machine with a valid license, just renewed by its daemon, which is not running. */
export interface Licensed {
  readonly machine: Machine;
  readonly claims: LeaseClaims;
  readonly device_id: string;
  readonly state: DaemonState;
  readonly note: DaemonNote;
}

/** @param directory parent of its home directory. */
export async function newLicensed(
  { world, url, now }: Issuer,
  directory: string,
  installation: string,
): Promise<Licensed> {
  const home = join(directory, 'home');
  const files = licenseFiles(home, {});
  const device = { files, url, clock: () => now, warn: () => {} };
  const { code } = await createEnrollmentCode(world.identity, 'operator', installation);
  const { device_id, claims } = await enroll(device, code, 'trading-1');
  const state: DaemonState = {
    ...NO_STATE,
    last_success_at: formatTime(now),
    next_attempt_at: formatTime(renewalMoment(claims)),
    next_attempt_because: 'due',
  };
  await writeState(files.state, state);
  // The pid of an ended process: the daemon counts as running only while its lock is held.
  const { process: mark, ...others } = newNote(url);
  const ended = mark && { ...mark, started: '0' };
  const note = { ...others, process: ended, started_at: formatTime(now) };
  await writeNote(daemonFiles(home).note, note);
  const machine: Machine = {
    home,
    catalogueDir: join(home, 'catalogue'),
    files,
    env: { HOME: directory },
    url,
    urlBy: 'machine',
    offline: false,
    timeoutMs: 5000,
    clock: () => now,
    boot: () => ({ boot_id: 'boot', uptime_seconds: 1000 }),
  };
  return { machine, claims, device_id, state, note };
}
