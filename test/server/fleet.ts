import { randomUUID } from 'node:crypto';
import { earliestRequest, retryDelayMs } from '../../daemon/retry-schedule.ts';
import type { DeviceKey } from '../../src/client/device-key.ts';
import { makeDeviceProof } from '../../src/client/device-proof.ts';
import { seededRandom } from '../../src/engine/random.ts';
import type { Identity } from '../../src/identity/context.ts';
import { purgeDevices } from '../../src/identity/devices.ts';
import { registerSigner, retireKey } from '../../src/identity/signing-keys.ts';
import { eraseAnswers } from '../../src/identity/renew-lease.ts';
import type { Signer } from '../../src/identity/signing-key.ts';
import { readClaims, type LeaseClaims } from '../../src/lease/claims.ts';
import { parseEnvelope } from '../../src/lease/envelope.ts';
import { renewalMoment } from '../../src/lease/renewal-moment.ts';
import type { HeldTrust } from '../../src/lease/trust.ts';
import { verifyLease } from '../../src/lease/verify.ts';
import { createApp } from '../../src/server/app.ts';
import { createLog } from '../../src/base/log.ts';
import { createMetrics } from '../../src/server/metrics.ts';
import type { App } from '../../src/server/services.ts';
import { openStorage, type Storage } from '../../src/storage/storage.ts';
import { USUAL_POLICY } from '../identity/policy.ts';
import { FleetTrust, newSigner, yearOfRotations, type OperatedServer } from './fleet-rotations.ts';
import { chatOf, idleTasks, noProduction, notifierOf, NO_FEDERATION } from './idle-tasks.ts';
import { OPEN_GATE } from './open-gate.ts';
import { addVendor, type VendorDevice } from './vendor.ts';

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Start of the simulation, in milliseconds since the Unix epoch. */
const START = Date.UTC(2026, 0, 5);
const ORIGIN = 'https://licenses.example';

export interface FleetPlan {
  readonly devices: number;
  readonly days: number;
  readonly outageHours: number;
  /** Seed of the times of first requests and retries. */
  readonly seed: number;
  /** Whether the operator rotates keys and root as in `yearOfRotations`. */
  readonly rotations?: boolean;
}

/** Times in whole seconds since the start of the simulation. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/** Leases issued in a span, per second of simulated time. */
export interface Traffic extends Span {
  readonly leases: number;
  readonly mean: number;
  readonly busiestSecond: number;
  readonly busiestMinute: number;
}

export interface FleetReport {
  /** The outage, at the time when most renewals are due. */
  readonly outage: Span;
  /** The initial issuing, the hour after the outage, and the time from then on. */
  readonly traffic: Readonly<Record<'first' | 'afterOutage' | 'calm', Traffic>>;
  /** Requests during the outage. */
  readonly unanswered: number;
  /** Responses other than a lease. */
  readonly refusals: readonly string[];
  /** Most requests of one device, in total and in an hour. */
  readonly mostRequests: number;
  readonly mostRequestsInAnHour: number;
  /** Leases not renewed before expiry, and before the end of the grace period. */
  readonly lapsed: { readonly pastExpiry: number; readonly pastGrace: number };
  /** Leases in the registry at the end. */
  readonly registered: number;
  /** Steps of the operator, by day, with the traffic of the following day. */
  readonly rotations: readonly {
    readonly day: number;
    readonly name: string;
    readonly traffic: Traffic;
  }[];
  /** Machines whose lease is signed by the last key of the server. */
  readonly underLastKey: number;
}

interface Device extends VendorDevice {
  /** The lease as received, and its claims. */
  lease?: { readonly file: unknown; readonly claims: LeaseClaims };
  /** Id of a renewal in progress. */
  renewal_id?: string;
  /** Consecutive failed requests. */
  failures: number;
  /** Times of requests in the last hour, in milliseconds since the Unix epoch. */
  sent: number[];
  requests: number;
  /** Accepted keys. */
  held?: HeldTrust;
}

/**
 * Simulates a fleet whose devices follow the schedules of lease and daemon, with the code of the server
 * on a SQLite file. The clock advances second by second; a device sends its request in the first whole
 * second at or after its due time.
 *
 * @param file path of the database, which must not exist.
 * @param onDay called after each day with its results.
 */
export async function simulateFleet(
  plan: FleetPlan,
  file: string,
  onDay: (day: number, leases: number, unanswered: number) => void = () => {},
): Promise<FleetReport> {
  const end = plan.days * DAY;
  const random = seededRandom(plan.seed);
  const server = new SimulatedServer(file);
  await server.start();
  const devices = (await server.addDevices(plan.devices)).map((device): Device => ({
    ...device,
    failures: 0,
    sent: [],
    requests: 0,
  }));

  /** Devices by the second of their next request. */
  const agenda = new Map<number, Device[]>();
  const schedule = (device: Device, moment: number): void => {
    const earliest = Math.max(moment, earliestRequest(device.sent, server.now));
    const second = Math.ceil((earliest - START) / 1000);
    const others = agenda.get(second);
    if (others === undefined) agenda.set(second, [device]);
    else others.push(device);
  };

  const leases = new Uint32Array(end);
  const unanswered = new Uint32Array(end);
  const refusals: string[] = [];
  const lapsed = { pastExpiry: 0, pastGrace: 0 };
  let mostRequestsInAnHour = 0;
  const trust = new FleetTrust();
  const rotations = plan.rotations ? yearOfRotations(server, server.signer) : [];

  const noteLapse = ({ lease }: Device): void => {
    if (lease === undefined) return;
    if (Date.parse(lease.claims.expires_at) <= server.now) lapsed.pastExpiry += 1;
    if (Date.parse(lease.claims.grace_ends_at) <= server.now) lapsed.pastGrace += 1;
  };

  /** Why the machine rejects the lease with the published keys; judged as the daemon does. */
  const refusalOf = async (device: Device, lease: unknown): Promise<string | undefined> => {
    const judged = trust.judge(await server.published(), device.held, server.now);
    if (typeof judged === 'string') return judged;
    const verified = verifyLease(JSON.stringify(lease), judged.keys);
    if (!verified.ok) return verified.detail;
    device.held = judged;
    return undefined;
  };

  const renew = async (device: Device, second: number): Promise<void> => {
    const { now } = server;
    device.requests += 1;
    device.sent = [...device.sent.filter((at) => at > now - HOUR * 1000), now];
    mostRequestsInAnHour = Math.max(mostRequestsInAnHour, device.sent.length);
    device.renewal_id ??= randomUUID();
    const answer = await server.renew(device.key, device.renewal_id, device.lease?.file);
    const received =
      answer?.status === 201
        ? ((await answer.json()) as { readonly lease: unknown }).lease
        : undefined;
    const refusal = plan.rotations && received ? await refusalOf(device, received) : undefined;
    if (received !== undefined && refusal === undefined) {
      leases[second]! += 1;
      noteLapse(device);
      const claims = readClaims(parseEnvelope(JSON.stringify(received)).payload);
      device.lease = { file: received, claims };
      delete device.renewal_id;
      device.failures = 0;
      schedule(device, renewalMoment(claims));
      return;
    }
    if (answer === undefined) unanswered[second]! += 1;
    else refusals.push(refusal ?? `${answer.status} ${await answer.text()}`);
    device.failures += 1;
    const failure = { count: device.failures, denied: answer?.status === 403 };
    const left = device.lease ? Date.parse(device.lease.claims.expires_at) - now : 0;
    schedule(device, now + retryDelayMs(failure, left, random()));
  };

  for (const device of devices) schedule(device, START + random() * HOUR * 1000);
  let outage: Span = { from: end, to: end };
  for (let second = 0; second < end; second += 1) {
    server.now = START + second * 1000;
    if (second === outage.from) await server.stop();
    if (second === outage.to) await server.start();
    if (second % (10 * MINUTE) === 0) await server.purge();
    if (second % DAY === 0) {
      for (const { day, run } of rotations) if (day * DAY === second) await run();
    }
    const due = agenda.get(second);
    if (due !== undefined) {
      await Promise.all(due.map((device) => renew(device, second)));
      agenda.delete(second);
    }
    // From here on, every device has a lease.
    if (second === HOUR) outage = worstOutage(agenda, plan.outageHours * HOUR);
    if ((second + 1) % DAY === 0) {
      const span = { from: second + 1 - DAY, to: second + 1 };
      onDay((second + 1) / DAY, sumIn(span, leases), sumIn(span, unanswered));
    }
  }
  server.now = START + end * 1000;
  for (const device of devices) noteLapse(device);
  const registered = await server.countLeases();
  await server.stop();
  return {
    outage,
    traffic: {
      first: trafficIn({ from: 0, to: HOUR + 1 }, leases),
      afterOutage: trafficIn({ from: outage.to, to: outage.to + HOUR }, leases),
      calm: trafficIn({ from: outage.to + HOUR, to: end }, leases),
    },
    unanswered: sumIn({ from: 0, to: end }, unanswered),
    refusals,
    mostRequests: Math.max(...devices.map(({ requests }) => requests)),
    mostRequestsInAnHour,
    lapsed,
    registered,
    rotations: rotations
      .filter(({ day }) => (day + 1) * DAY <= end)
      .toSorted((a, b) => a.day - b.day)
      .map(({ day, name }) => {
        const span = { from: day * DAY, to: (day + 1) * DAY };
        return { day, name, traffic: trafficIn(span, leases) };
      }),
    underLastKey: devices.filter(
      ({ lease }) => lease?.claims.public_key_id === server.signer.publicKeyId,
    ).length,
  };
}

/** The server in this process, on the simulated clock. */
class SimulatedServer implements OperatedServer {
  now = START;
  signer = newSigner();
  code = '';
  #authorization = '';
  #identity: Identity | undefined;
  readonly #file: string;
  #storage: Storage | undefined;
  #app: App | undefined;

  constructor(file: string) {
    this.#file = file;
  }

  /** Like the server of the command line, without the network. */
  async start(): Promise<void> {
    const storage = await openStorage({ file: this.#file });
    const signer = await registerSigner({ storage, clock: () => this.now }, this.signer);
    const identity: Identity = { storage, clock: () => this.now, policy: USUAL_POLICY, signer };
    const log = createLog(() => {}, true);
    const metrics = createMetrics(identity);
    this.#storage = storage;
    this.#identity = identity;
    this.#app = createApp({
      identity,
      origins: [ORIGIN],
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
  }

  async stop(): Promise<void> {
    await this.#storage?.close();
    this.#storage = undefined;
    this.#app = undefined;
  }

  async addDevices(installations: number): Promise<readonly VendorDevice[]> {
    const size = { installations, recoveryCodes: 1, years: 2 };
    const vendor = await addVendor(this.#storage!, this.now, size);
    this.#authorization = vendor.authorization;
    this.code = vendor.recovery_codes[0]!;
    return vendor.devices;
  }

  async startWith(signer: Signer): Promise<void> {
    await this.stop();
    this.signer = signer;
    await this.start();
  }

  async retire(publicKeyId: string): Promise<void> {
    await retireKey(this.#identity!, 'operator', publicKeyId);
  }

  async ask(method: string, path: string, body: object, stepUp?: string): Promise<unknown> {
    const headers = {
      authorization: this.#authorization,
      'content-type': 'application/json',
      ...(stepUp !== undefined && { 'service-step-up': stepUp }),
    };
    const answer = await this.#app!.request(`${ORIGIN}${path}`, {
      method,
      headers,
      body: JSON.stringify(body),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return JSON.parse(text) as unknown;
  }

  async published(): Promise<string> {
    const answer = await this.#app!.request(`${ORIGIN}/.well-known/license-keys.json`);
    return answer.text();
  }

  /** @returns undefined during the outage. */
  async renew(key: DeviceKey, renewal_id: string, lease: unknown): Promise<Response | undefined> {
    if (this.#app === undefined) return undefined;
    const url = `${ORIGIN}/auth/license/leases`;
    const body = Buffer.from(JSON.stringify({ renewal_id, lease }));
    const proof = makeDeviceProof(key, { method: 'POST', url, body }, this.now);
    const headers = {
      authorization: `DeviceProof ${proof}`,
      'content-type': 'application/json',
      'content-length': String(body.length),
    };
    return this.#app.request(url, { method: 'POST', headers, body });
  }

  /** Deletes expired data, as the server does every ten minutes. */
  async purge(): Promise<void> {
    await this.#storage?.write(async (tx) => {
      await eraseAnswers(tx, this.now);
      await purgeDevices(tx, this.now);
    });
  }

  async countLeases(): Promise<number> {
    const { count } = await this.#storage!.read
      .selectFrom('license_leases')
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .executeTakeFirstOrThrow();
    return count;
  }
}

/** The span of this length with the most due devices; the last of several. */
function worstOutage(agenda: ReadonlyMap<number, readonly Device[]>, length: number): Span {
  const moments = [...agenda]
    .flatMap(([second, devices]) => devices.map(() => second))
    .sort((a, b) => a - b);
  let worst = { from: 0, to: length };
  let most = 0;
  let after = 0;
  for (const [index, from] of moments.entries()) {
    while (after < moments.length && moments[after]! < from + length) after += 1;
    if (after - index < most) continue;
    most = after - index;
    worst = { from, to: from + length };
  }
  return worst;
}

function trafficIn({ from, to }: Span, leases: Uint32Array): Traffic {
  const minutes = Array.from({ length: Math.ceil((to - from) / MINUTE) }, (_, i) => {
    const begin = from + i * MINUTE;
    return sumIn({ from: begin, to: Math.min(begin + MINUTE, to) }, leases);
  });
  const total = sumIn({ from, to }, leases);
  return {
    from,
    to,
    leases: total,
    mean: total / (to - from),
    busiestSecond: leases.subarray(from, to).reduce((most, count) => Math.max(most, count), 0),
    busiestMinute: minutes.reduce((most, count) => Math.max(most, count), 0) / MINUTE,
  };
}

function sumIn({ from, to }: Span, counts: Uint32Array): number {
  return counts.subarray(from, to).reduce((sum, count) => sum + count, 0);
}
