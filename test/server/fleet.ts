import { randomUUID } from 'node:crypto';
import { earliestRequest, retryDelayMs } from '../../daemon/schedule.ts';
import type { DeviceKey } from '../../src/client/device-key.ts';
import { makeDeviceProof } from '../../src/client/device-proof.ts';
import { seededRandom } from '../../src/engine/random.ts';
import type { Identity } from '../../src/identity/context.ts';
import { purgeDevices } from '../../src/identity/devices.ts';
import { registerSigner, retireKey } from '../../src/identity/keys.ts';
import { eraseAnswers } from '../../src/identity/renew.ts';
import type { Signer } from '../../src/identity/signing-key.ts';
import { readClaims, type LeaseClaims } from '../../src/lease/claims.ts';
import { parseEnvelope } from '../../src/lease/envelope.ts';
import { renewalMoment } from '../../src/lease/schedule.ts';
import type { HeldTrust } from '../../src/lease/trust.ts';
import { verifyLease } from '../../src/lease/verify.ts';
import { createApp } from '../../src/server/app.ts';
import { createLog } from '../../src/base/log.ts';
import { createMetrics } from '../../src/server/metrics.ts';
import type { App } from '../../src/server/services.ts';
import { openStorage, type Storage } from '../../src/storage/storage.ts';
import { USUAL_POLICY } from '../identity/policy.ts';
import { FleetTrust, newSigner, yearOfRotations, type OperatedServer } from './fleet-rotations.ts';
import { chatOf, idleTasks, noProduction, NO_FEDERATION } from './idle-tasks.ts';
import { OPEN_GATE } from './open-gate.ts';
import { addVendor, type VendorDevice } from './vendor.ts';

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** When the simulation begins, in milliseconds since the Unix epoch. */
const START = Date.UTC(2026, 0, 5);
const ORIGIN = 'https://licenses.example';

export interface FleetPlan {
  readonly devices: number;
  readonly days: number;
  readonly outageHours: number;
  /** Of the moments at which devices ask first, and ask again. */
  readonly seed: number;
  /** Whether the operator rotates keys and the root as in `yearOfRotations`. */
  readonly rotations?: boolean;
}

/** Times are whole seconds since the beginning of the simulation. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/** Leases that were given in a span, per second of simulated time. */
export interface Traffic extends Span {
  readonly leases: number;
  readonly mean: number;
  readonly busiestSecond: number;
  readonly busiestMinute: number;
}

export interface FleetReport {
  /** While no server answers: where most renewals are due. */
  readonly outage: Span;
  /** While the fleet gets its first leases, in the hour after the outage, and from then on. */
  readonly traffic: Readonly<Record<'first' | 'afterOutage' | 'calm', Traffic>>;
  /** Requests that met no server. */
  readonly unanswered: number;
  /** Answers other than a lease. */
  readonly refusals: readonly string[];
  /** What one device sent: in all, and in any hour. */
  readonly mostRequests: number;
  readonly mostRequestsInAnHour: number;
  /** Leases that were not renewed before they expired, and before the end of their grace period. */
  readonly lapsed: { readonly pastExpiry: number; readonly pastGrace: number };
  /** Leases in the registry in the end. */
  readonly registered: number;
  /** What the operator did about keys, by the day, with the traffic of the day that followed. */
  readonly rotations: readonly {
    readonly day: number;
    readonly name: string;
    readonly traffic: Traffic;
  }[];
  /** Machines whose lease is signed by the key with which the server signs in the end. */
  readonly underLastKey: number;
}

interface Device extends VendorDevice {
  /** The lease it holds, as it was received and as it reads. */
  lease?: { readonly file: unknown; readonly claims: LeaseClaims };
  /** Of the renewal that it has begun. */
  renewal_id?: string;
  /** Requests in a row that failed. */
  failures: number;
  /** When it sent those of the last hour, in milliseconds since the Unix epoch. */
  sent: number[];
  requests: number;
  /** The keys that it has accepted. */
  held?: HeldTrust;
}

/**
 * A fleet whose devices ask when the schedules of lease and daemon say, and the code of the server on
 * a SQLite file. Its clock goes from second to second: a device asks at the first whole second that
 * is not before its moment, together with all others that do.
 *
 * @param file of the database, which must not be there.
 * @param onDay told after each day what it brought.
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

  /** The devices that will ask, by the second at which they will. */
  const agenda = new Map<number, Device[]>();
  const schedule = (device: Device, moment: number): void => {
    const earliest = Math.max(moment, earliestRequest(device.sent, server.now));
    const second = Math.ceil((earliest - START) / 1000);
    const others = agenda.get(second);
    if (others === undefined) agenda.set(second, [device]);
    else others.push(device);
  };

  /** By the second. */
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

  /** Why the machine refuses the lease, by the keys that the server publishes; as the daemon does. */
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
    // From here on, everybody has a lease.
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

/** The server in this process, on the clock of the simulation. */
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

  /** As the server of the command line does, but for the network. */
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

  /** @returns undefined while it is stopped. */
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

  /** Forgets what the server forgets, which it does every ten minutes. */
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

/** The span of this length in which most devices will ask; of several such spans the last. */
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
