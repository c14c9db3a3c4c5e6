import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { runLoop, type LoopOptions, type Tick } from '../../daemon/loop.ts';
import type { Machine } from '../../daemon/machine.ts';
import { deviceKeyAt } from '../../src/client/device-key.ts';
import { storeKeyset, storeLease } from '../../src/client/lease-store.ts';
import { seededRandom } from '../../src/engine/random.ts';
import type { LeaseClaims } from '../../src/lease/claims.ts';
import { formatTime } from '../../src/lease/time.ts';
import { licenseFiles } from '../../src/gate/license-files.ts';
import { createLog } from '../../src/base/log.ts';
import {
  claimsOf,
  issue,
  keysetOf as signedKeyset,
  testKey,
  type SigningKey,
} from '../lease/issuer.ts';

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

const GOOD = testKey(1);
const FOREIGN = testKey(2);

export type Fault = (request: FaultyRequest) => void | Promise<void>;

export interface FaultyRequest {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly renewal_id: string | undefined;
  readonly rig: Rig;
}

/** A machine with a daemon, whose clock only the test turns, and its server. */
export interface Rig {
  readonly machine: Machine;
  readonly device_id: string;
  /** The clock of the machine may be wrong: both in milliseconds since the Unix epoch. */
  now: number;
  serverNow: number;
  bootId: string;
  uptime: number;
  ttlSeconds: number;
  graceSeconds: number;
  /** Undefined: it is well. */
  fault: Fault | undefined;
  /** Nothing listens. */
  isDown: boolean;
  timeoutMs: number;
  /** When requests came, by the time that passes evenly: seconds. */
  readonly requests: number[];
  /** The renewal_id of each renewal that was asked for, and the lease that came with it. */
  readonly asked: { readonly renewal_id: string; readonly lease?: unknown }[];
  /** All leases that were given, the last one last. */
  readonly leases: LeaseClaims[];
  readonly log: string[];
  /** Lets time pass for all clocks. */
  pass(ms: number): void;
  /** A lease of the server for this device, unless the claims say otherwise. */
  newLease(change?: Partial<LeaseClaims>, key?: SigningKey): string;
  /** Puts lease and keys into the home, as enrollment does. */
  enroll(): Promise<void>;
  runUntil(end: number, onTick?: (tick: Tick) => Promise<void>): Promise<void>;
  close(): void;
}

export async function newRig(): Promise<Rig> {
  const directory = mkdtempSync(join(tmpdir(), 'service-local-daemon-'));
  const files = licenseFiles(join(directory, 'home'), {});
  const answers = new Map<string, string>();
  const server = createServer((incoming, outgoing) => void serve(incoming, outgoing));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const { device_id } = await deviceKeyAt(files.key);
  const random = seededRandom(7);

  const serve = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    rig.requests.push(rig.uptime);
    const body = await text(incoming);
    const asked = body === '' ? undefined : (JSON.parse(body) as Rig['asked'][number]);
    if (asked !== undefined) rig.asked.push(asked);
    if (rig.fault !== undefined) {
      await rig.fault({ incoming, outgoing, renewal_id: asked?.renewal_id, rig });
    } else if (asked === undefined) {
      send(outgoing, 200, keysetOf(GOOD));
    } else {
      const known = answers.get(asked.renewal_id);
      const lease = known ?? rig.newLease({ renewal_id: asked.renewal_id });
      answers.set(asked.renewal_id, lease);
      send(outgoing, 201, `{"lease":${lease},"limits":[],"warnings":[]}`);
    }
  };

  let count = 0;
  const rig: Rig = {
    machine: {
      files,
      get url() {
        return rig.isDown ? 'http://127.0.0.1:1' : `http://127.0.0.1:${port}`;
      },
      clock: () => rig.now,
      boot: () => ({ boot_id: rig.bootId, uptime_seconds: rig.uptime }),
      random,
      warn() {},
      get timeoutMs() {
        return rig.timeoutMs;
      },
    },
    device_id,
    now: Date.UTC(2026, 2, 1),
    serverNow: Date.UTC(2026, 2, 1),
    bootId: 'boot',
    uptime: 1000,
    ttlSeconds: (7 * DAY) / 1000,
    graceSeconds: (3 * DAY) / 1000,
    fault: undefined,
    isDown: false,
    timeoutMs: 20_000,
    requests: [],
    asked: [],
    leases: [],
    log: [],
    pass(ms) {
      rig.now += ms;
      rig.serverNow += ms;
      rig.uptime += ms / 1000;
    },
    newLease(change = {}, key = GOOD) {
      const claims = claimsOf(key, {
        lease_id: `lease-${(count += 1)}`,
        issued_at: formatTime(rig.serverNow),
        ttl_seconds: rig.ttlSeconds,
        grace_period_seconds: rig.graceSeconds,
        device_thumbprint: device_id,
        ...change,
      });
      rig.leases.push(claims);
      return issue(claims, key);
    },
    async enroll() {
      await storeKeyset(files.keyset, keysetOf(GOOD));
      await storeLease(files.lease, rig.newLease());
    },
    async runUntil(end, onTick) {
      const stop = new AbortController();
      let next = 0;
      let told = Promise.resolve();
      const wait: LoopOptions['wait'] = async (ms) => {
        await told;
        // Looks at which nothing can happen are left out, as by a machine that sleeps.
        const left = Math.max(ms, Math.min(next - rig.now, end - rig.serverNow));
        rig.pass(Math.ceil(left / 1000) * 1000);
      };
      const log = createLog((line) => rig.log.push(line), false);
      await runLoop(rig.machine, {
        signal: stop.signal,
        log,
        wait,
        onTick(tick) {
          next = Date.parse(tick.state.next_attempt_at ?? '') || 0;
          if (onTick !== undefined) told = onTick(tick);
          if (rig.serverNow >= end) stop.abort();
        },
      });
      await told;
    },
    close() {
      server.close();
      server.closeAllConnections();
      rmSync(directory, { recursive: true });
    },
  };
  return rig;
}

/** A published keyset without a root, in which one key vouches for all. */
export const endorsed = (
  keys: readonly SigningKey[],
  by: SigningKey,
  change?: Parameters<typeof signedKeyset>[2],
): string =>
  JSON.stringify({
    keys: keys.map(({ jwk }) => jwk),
    keyset: signedKeyset(keys, [by], change),
  });

const keysetOf = (...keys: readonly SigningKey[]): string =>
  JSON.stringify({ keys: keys.map(({ jwk }) => jwk) });

function send(
  outgoing: ServerResponse,
  status: number,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  const type = status < 400 ? 'application/json' : 'application/problem+json';
  outgoing.writeHead(status, {
    'service-name': 'service-local',
    'content-type': type,
    connection: 'close',
    ...headers,
  });
  outgoing.end(body);
}

/** A server that refuses. */
export const refusing =
  (status: number, code: string, reason?: string, headers = {}): Fault =>
  ({ outgoing }) => {
    const problem = { code, reason, detail: `this is ${code}`, request_id: 'x' };
    send(outgoing, status, JSON.stringify(problem), headers);
  };

/** A server that answers every renewal with this lease, and publishes this. */
export const giving =
  (lease: (request: FaultyRequest) => string, published = keysetOf(GOOD)): Fault =>
  (request) => {
    const { outgoing, renewal_id } = request;
    if (renewal_id === undefined) return send(outgoing, 200, published);
    return send(outgoing, 201, `{"lease":${lease(request)},"limits":[],"warnings":[]}`);
  };

/** All that a server, or who is before it, does wrong. Most give no lease that is good. */
export const FAULTS = {
  slow: () => {},
  'reset at once': ({ incoming }) => void incoming.socket.destroy(),
  async 'reset in mid body'({ outgoing }) {
    outgoing.writeHead(201, { 'service-name': 'service-local', 'content-length': 5000 });
    outgoing.write('{"lease":{"payloadType"');
    await new Promise((resolve) => setImmediate(resolve));
    outgoing.destroy();
  },
  'error 500': refusing(500, 'failure'),
  'error 503': refusing(503, 'overloaded', undefined, { 'retry-after': '1' }),
  'absurd Retry-After': refusing(429, 'rate_limited', undefined, { 'retry-after': '999999999' }),
  'negative Retry-After': refusing(429, 'rate_limited', undefined, { 'retry-after': '-5' }),
  'page of a proxy': ({ outgoing }) =>
    void outgoing.writeHead(200, { 'content-type': 'text/html' }).end('<html>Please log in</html>'),
  'malformed answer': ({ outgoing }) => send(outgoing, 200, '{"lease": {"payl'),
  'empty answer': ({ outgoing }) => send(outgoing, 201, '{}'),
  'nonce for ever': refusing(401, 'invalid_device_proof', 'use_nonce', { 'service-nonce': 'x' }),
  'idempotency mismatch for ever': refusing(422, 'idempotency_mismatch'),
  'unknown lease for ever': refusing(400, 'invalid_request', 'unknown_lease'),
  'a key that nobody trusts': giving(({ rig, renewal_id }) =>
    rig.newLease({ renewal_id: renewal_id! }, FOREIGN),
  ),
  // A genuine lease beside these keys would be a renewal by the held ones.
  'keys of somebody else': giving(
    ({ rig, renewal_id }) => rig.newLease({ renewal_id: renewal_id! }, FOREIGN),
    keysetOf(FOREIGN),
  ),
  'an older lease': giving(({ rig }) => rig.newLease({ ...rig.leases[0]! })),
  'a lease that is over': giving(({ rig, renewal_id }) => {
    const issued_at = formatTime(rig.serverNow - HOUR);
    return rig.newLease({ renewal_id: renewal_id!, issued_at, ttl_seconds: 1 });
  }),
  "another device's lease": giving(({ rig, renewal_id }) =>
    rig.newLease({ renewal_id: renewal_id!, device_thumbprint: GOOD.jwk.kid }),
  ),
  "another installation's lease": giving(({ rig, renewal_id }) =>
    rig.newLease({ renewal_id: renewal_id!, deployment_id: 'elsewhere' }),
  ),
  'no lease': giving(() => 'null'),
  revoked: refusing(403, 'license_revoked'),
  'contract ended': refusing(403, 'contract_ended'),
  'unknown device': refusing(401, 'invalid_device_proof', 'unknown_device'),
} as const satisfies Readonly<Record<string, Fault>>;
