import { endFault, type ChainHead, GENESIS } from '../../src/base/hash-chain.ts';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'undici';
import { newDeviceKey, type DeviceKey } from '../../src/client/device-key.ts';
import { makeDeviceProof } from '../../src/client/device-proof.ts';
import { seededRandom } from '../../src/engine/random.ts';
import { readAudit, verifyAudit } from '../../src/identity/audit.ts';
import { publishedKeys } from '../../src/identity/signing-keys.ts';
import { REVOKE_ACTION } from '../../src/identity/revoke.ts';
import { importKeyset } from '../../src/lease/keys.ts';
import { verifyLease } from '../../src/lease/verify.ts';
import { openStorage, type Storage } from '../../src/storage/storage.ts';
import type { Db } from '../../src/storage/tables.ts';
import type { TestDatabase } from '../storage/databases.ts';
import { startServer, type RunningServer } from './running.ts';
import { addVendor, type Vendor, type VendorDevice } from './vendor.ts';

export interface TorturePlan {
  readonly rounds: number;
  /** Number of servers on one database; more than one need PostgreSQL. One is killed in each round. */
  readonly servers: number;
  /** Seed of the times of kills, and of the requests. */
  readonly seed: number;
}

/** Counts of a successful run; a loss throws instead. */
export interface TortureReport {
  /** Acknowledged requests. */
  readonly acknowledged: Readonly<Record<Deed, number>>;
  /** Requests whose response was cut off, and how many of them had taken effect. */
  readonly cutOff: Readonly<Record<Deed, { readonly sent: number; readonly done: number }>>;
  readonly auditEntries: number;
}

type Deed = 'issue' | 'renew' | 'enroll' | 'revoke';

/** Latest kill after the first response, ms; before that there is nothing to lose. */
const LONGEST_LOAD_MS = 400;
/** Time for which the surviving servers continue, ms. */
const AFTER_KILL_MS = 100;

const ISSUERS = 4;
const RENEWERS = 6;
const ENROLLERS = 2;
const VICTIMS_PER_ROUND = 3;

/** Origin that devices sign for, independent of the ports of servers. */
const ORIGIN = 'https://licenses.example';
const LEASES = '/auth/license/leases';
const DEVICES = '/auth/license/devices';

interface Device extends VendorDevice {
  /** The lease that the device holds. */
  lease?: unknown;
  lease_id?: string;
  /** Body of the renewal in progress. */
  asked?: string;
  /** The last request that returned a lease, and the response. */
  proven?: { readonly authorization: string; readonly body: string; readonly text: string };
}

interface Enrollment {
  readonly code: string;
  readonly device: Device;
}

interface Revocation {
  readonly device: Device;
  readonly path: string;
  readonly step_up: string;
}

export interface Reply {
  readonly status: number;
  readonly text: string;
  readonly json: Readonly<Record<string, unknown>>;
}

interface Server {
  readonly running: RunningServer;
  readonly pool: Pool;
  isKilled: boolean;
}

/** Facts that the clients know about one round. */
class Round {
  /** Acknowledged responses that contain a lease. */
  readonly leases: Reply['json'][] = [];
  readonly enrolled: Enrollment[] = [];
  readonly revoked: Revocation[] = [];
  /** Requests whose response was cut off. */
  issuesCutOff = 0;
  readonly renewalsCutOff: Device[] = [];
  readonly enrollmentsCutOff: Enrollment[] = [];
  readonly revocationsCutOff: Revocation[] = [];
}

/**
 * Puts servers under load, kills one with SIGKILL at a random moment, restarts it, and checks it and
 * the database against everything acknowledged, in each round.
 *
 * @param database an empty database.
 * @throws Error that describes what was lost or duplicated.
 */
export async function torture(
  database: TestDatabase,
  plan: TorturePlan,
  onRound: (round: number) => void = () => {},
): Promise<TortureReport> {
  const victims = plan.rounds * VICTIMS_PER_ROUND;
  const size = { installations: RENEWERS + victims, recoveryCodes: victims };
  const vendor = await using(database, (storage) => addVendor(storage, Date.now(), size));
  const run = new Torture(database, vendor, plan.seed);
  try {
    await run.start(plan.servers);
    for (let round = 1; round <= plan.rounds; round += 1) {
      try {
        await run.round();
      } catch (error) {
        throw new Error(`round ${round}: ${(error as Error).message}`, { cause: error });
      }
      onRound(round);
    }
    return run.report();
  } finally {
    await run.stop();
  }
}

class Torture {
  readonly #database: TestDatabase;
  readonly #administrator: string;
  readonly #codes: string[];
  readonly #renewers: readonly Device[];
  readonly #victims: Device[];
  readonly #random: () => number;
  readonly #servers: Server[] = [];
  #isLoaded = false;
  #onAnswer = (): void => {};

  #auditHead: ChainHead = GENESIS;
  /** Counts of verified audit entries, by action. */
  readonly #audited = new Map<string, number>();
  readonly #acknowledged = { issue: 0, renew: 0, enroll: 0, revoke: 0 };
  readonly #cutOff = {
    issue: { sent: 0, done: 0 },
    renew: { sent: 0, done: 0 },
    enroll: { sent: 0, done: 0 },
    revoke: { sent: 0, done: 0 },
  };

  constructor(database: TestDatabase, vendor: Vendor, seed: number) {
    this.#database = database;
    this.#administrator = vendor.authorization;
    this.#codes = [...vendor.recovery_codes];
    this.#renewers = vendor.devices.slice(0, RENEWERS);
    this.#victims = vendor.devices.slice(RENEWERS);
    this.#random = seededRandom(seed);
  }

  async start(servers: number): Promise<void> {
    while (this.#servers.length < servers) {
      const running = await startServer(this.#database, ['--public-url', ORIGIN]);
      const pool = new Pool(running.url, { connections: 64 });
      this.#servers.push({ running, pool, isKilled: false });
    }
  }

  async stop(): Promise<void> {
    while (this.#servers.length > 0) await this.#kill(0);
  }

  async #kill(index: number): Promise<void> {
    const [server] = this.#servers.splice(index, 1);
    server!.isKilled = true;
    await server!.running.kill();
    await server!.pool.destroy();
  }

  report(): TortureReport {
    return {
      acknowledged: this.#acknowledged,
      cutOff: this.#cutOff,
      auditEntries: this.#auditHead.seq,
    };
  }

  async round(): Promise<void> {
    const servers = this.#servers.length;
    const known = await this.#loadAndKill();
    await this.start(servers);
    // Opened only now, so that the restarted server had to recover the database alone.
    await using(this.#database, async ({ read }) => {
      const keys = await readKeys(read);
      await this.#checkProofs();
      await checkLeases(read, known.leases, keys);
      await this.#checkRenewals(read, known, keys);
      await checkStoredAnswers(read, keys);
      await this.#checkEnrollments(read, known);
      await this.#checkRevocations(read, known);
      await this.#checkAudit(read);
      await this.#checkWholes(read);
      this.#cutOff.issue.sent += known.issuesCutOff;
    });
  }

  async #loadAndKill(): Promise<Round> {
    const known = new Round();
    this.#isLoaded = true;
    const answered = Promise.withResolvers<void>();
    this.#onAnswer = answered.resolve;
    const load = Promise.all([
      ...Array.from({ length: ISSUERS }, () => this.#keepIssuing(known)),
      ...this.#renewers.map((device) => this.#keepRenewing(known, device)),
      ...Array.from({ length: ENROLLERS }, () => this.#keepEnrolling(known)),
      this.#keepRevoking(known),
    ]);
    // Awaited below; without a handler, Node would report an unhandled rejection.
    load.catch(() => {});
    await Promise.race([answered.promise, load]);
    await sleep(this.#random() * LONGEST_LOAD_MS);
    await this.#kill(Math.floor(this.#random() * this.#servers.length));
    if (this.#servers.length > 0) await sleep(AFTER_KILL_MS);
    this.#isLoaded = false;
    await load;
    return known;
  }

  // Clients: each continues until the load ends or a kill cuts off a response.

  async #keepIssuing(known: Round): Promise<void> {
    while (this.#isLoaded) {
      const { deployment_id } = this.#anyOf(this.#renewers);
      const reply = await this.#postJson(LEASES, { deployment_id });
      if (reply === undefined) {
        known.issuesCutOff += 1;
        return;
      }
      known.leases.push(must(reply, 201));
      this.#acknowledged.issue += 1;
    }
  }

  async #keepRenewing(known: Round, device: Device): Promise<void> {
    while (this.#isLoaded && (await this.#renew(known, device)));
  }

  async #keepEnrolling(known: Round): Promise<void> {
    while (this.#isLoaded) {
      const { deployment_id } = this.#anyOf(this.#renewers);
      const told = await this.#post(
        `/identity/deployments/${deployment_id}/enrolment-codes`,
        this.#administrator,
      );
      if (told === undefined) return;
      const code = must(told, 201)['code'] as string;
      const enrollment = { code, device: { key: newDeviceKey(), deployment_id } };
      const reply = await this.#enroll(code, enrollment.device.key);
      if (reply === undefined) {
        known.enrollmentsCutOff.push(enrollment);
        return;
      }
      must(reply, 201);
      known.enrolled.push(enrollment);
      this.#acknowledged.enroll += 1;
      if (!(await this.#renew(known, enrollment.device))) return;
    }
  }

  async #keepRevoking(known: Round): Promise<void> {
    for (let i = 0; i < VICTIMS_PER_ROUND && this.#isLoaded; i += 1) {
      const device = this.#victims.pop()!;
      if (!(await this.#renew(known, device))) return;
      const [of, id] =
        this.#random() < 0.5
          ? (['lease', device.lease_id!] as const)
          : (['deployment', device.deployment_id] as const);
      const granted = await this.#postJson('/identity/step-ups', {
        action: REVOKE_ACTION,
        target: `${of}:${id}`,
        code: this.#codes.pop()!,
      });
      if (granted === undefined) return;
      const step_up = must(granted, 201)['step_up_token'] as string;
      const revocation = { device, path: `/identity/${of}s/${id}/revoke`, step_up };
      const reply = await this.#revoke(revocation);
      if (reply === undefined) {
        known.revocationsCutOff.push(revocation);
        return;
      }
      must(reply, 200);
      known.revoked.push(revocation);
      this.#acknowledged.revoke += 1;
      // Immediately, and at any server.
      const refused = await this.#askForRenewal(device);
      if (refused === undefined) return;
      must(refused, 403, 'license_revoked');
    }
  }

  // Steps of a client.

  /** @returns whether there was a response. */
  async #renew(known: Round, device: Device): Promise<boolean> {
    const reply = await this.#askForRenewal(device);
    if (reply === undefined) {
      known.renewalsCutOff.push(device);
      return false;
    }
    known.leases.push(must(reply, 201));
    this.#acknowledged.renew += 1;
    return true;
  }

  async #askForRenewal(device: Device): Promise<Reply | undefined> {
    device.asked ??= JSON.stringify({ renewal_id: randomUUID(), lease: device.lease });
    const body = device.asked;
    const authorization = proofOf(device.key, LEASES, body);
    const reply = await this.#post(LEASES, authorization, body);
    if (reply?.status === 201) {
      device.lease = reply.json['lease'];
      device.lease_id = reply.json['lease_id'] as string;
      device.proven = { authorization, body, text: reply.text };
      delete device.asked;
    }
    return reply;
  }

  async #enroll(code: string, key: DeviceKey): Promise<Reply | undefined> {
    const jwk = { kty: 'OKP', crv: 'Ed25519', x: key.x };
    const body = JSON.stringify({ code, jwk, name: ENROLLED });
    return this.#post(DEVICES, proofOf(key, DEVICES, body), body);
  }

  async #revoke({ device, path, step_up }: Revocation): Promise<Reply | undefined> {
    const body = { reason: 'torture', confirm: device.deployment_id };
    return this.#postJson(path, body, { 'service-step-up': step_up });
  }

  async #postJson(
    path: string,
    body: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Reply | undefined> {
    return this.#post(path, this.#administrator, JSON.stringify(body), headers);
  }

  /** @returns undefined if the server was killed before it responded. */
  async #post(
    path: string,
    authorization: string,
    body = '',
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Reply | undefined> {
    if (this.#servers.length === 0) return undefined;
    const server = this.#anyOf(this.#servers);
    try {
      const answer = await server.pool.request({
        method: 'POST',
        path,
        headers: { authorization, 'content-type': 'application/json', ...headers },
        body,
      });
      const text = await answer.body.text();
      this.#onAnswer();
      return { status: answer.statusCode, text, json: JSON.parse(text) as Reply['json'] };
    } catch (error) {
      if (server.isKilled) return undefined;
      throw error;
    }
  }

  #anyOf<T>(choices: readonly T[]): T {
    return choices[Math.floor(this.#random() * choices.length)]!;
  }

  // Checks after the kill.

  /** Checks that used proofs are rejected, and repeated renewals get the same bytes, after a restart. */
  async #checkProofs(): Promise<void> {
    for (const { key, proven } of this.#renewers) {
      if (proven === undefined) continue;
      const { authorization, body, text } = proven;
      const replayed = await this.#post(LEASES, authorization, body);
      must(replayed, 401, 'invalid_device_proof', 'replayed');
      const again = await this.#post(LEASES, proofOf(key, LEASES, body), body);
      must(again, 201);
      if (again!.text !== text) throw new Error(`a renewal got another answer: ${body}`);
    }
  }

  /** Repeats a renewal whose response was lost, which returns one valid lease. */
  async #checkRenewals(read: Db, known: Round, keys: Keys): Promise<void> {
    for (const device of known.renewalsCutOff) {
      const body = device.asked!;
      const { renewal_id } = JSON.parse(body) as { readonly renewal_id: string };
      const rows = await read
        .selectFrom('renewals')
        .select('lease_id')
        .where('renewal_id', '=', renewal_id)
        .execute();
      this.#cutOff.renew.sent += 1;
      this.#cutOff.renew.done += rows.length;
      const reply = await this.#askForRenewal(device);
      const { lease_id, lease } = must(reply, 201);
      if (rows.some((row) => row.lease_id !== lease_id)) {
        throw new Error(`the renewal ${renewal_id} was done twice`);
      }
      mustBeSigned({ lease_id, lease }, keys);
      const again = await this.#post(LEASES, proofOf(device.key, LEASES, body), body);
      must(again, 201);
      if (again!.text !== reply!.text) throw new Error(`${renewal_id} got another answer`);
    }
  }

  /** Checks that a code enrolled one device: the acknowledged one, or the one that repeats its request. */
  async #checkEnrollments(read: Db, { enrolled, enrollmentsCutOff }: Round): Promise<void> {
    for (const { code } of enrolled) {
      const other = await this.#enroll(code, newDeviceKey());
      must(other, 401, 'not_authenticated', 'used_code');
    }
    for (const { code, device } of enrollmentsCutOff) {
      const { device_id } = device.key;
      const rows = await read
        .selectFrom('devices')
        .select('device_id')
        .where('device_id', '=', device_id)
        .execute();
      this.#cutOff.enroll.sent += 1;
      this.#cutOff.enroll.done += rows.length;
      const reply = must(await this.#enroll(code, device.key), 201);
      if (reply['device_id'] !== device_id) throw new Error(`${device_id} was enrolled as another`);
      must(await this.#askForRenewal(device), 201);
    }
  }

  /** Checks that revoked devices get no lease, and that a second factor allowed one revocation. */
  async #checkRevocations(read: Db, { revoked, revocationsCutOff }: Round): Promise<void> {
    for (const revocation of revocationsCutOff) {
      const { device } = revocation;
      const isDone = await isRevoked(read, device);
      this.#cutOff.revoke.sent += 1;
      this.#cutOff.revoke.done += isDone ? 1 : 0;
      if (!isDone) must(await this.#revoke(revocation), 200);
    }
    for (const revocation of [...revoked, ...revocationsCutOff]) {
      must(await this.#askForRenewal(revocation.device), 403, 'license_revoked');
      must(await this.#revoke(revocation), 401, 'step_up_required', 'used');
    }
  }

  async #checkAudit(read: Db): Promise<void> {
    for (;;) {
      const { entries, head } = await readAudit(read, this.#auditHead.seq, 1000);
      const last = verifyAudit(this.#auditHead, entries);
      const fault = 'fault' in last ? last : undefined;
      if (fault) throw new Error(`entry ${fault.seq} of the audit log is ${fault.fault}`);
      this.#auditHead = last as ChainHead;
      for (const { action } of entries) {
        this.#audited.set(action, (this.#audited.get(action) ?? 0) + 1);
      }
      if (entries.length > 0) continue;
      const cut = endFault(this.#auditHead, head);
      if (cut) throw new Error(`entry ${cut.seq} of the audit log is ${cut.fault}`);
      return;
    }
  }

  /** Checks that each operation has all its rows and its audit entry, exactly once. */
  async #checkWholes(read: Db): Promise<void> {
    const leases = await read
      .selectFrom('license_leases')
      .select(({ fn }) => [
        fn.countAll<number>().as('all'),
        fn.countAll<number>().filterWhere('device_id', 'is', null).as('issued'),
        fn.count<number>('renewal_id').as('renewed'),
        fn.count<number>('renewal_id').distinct().as('renewals'),
      ])
      .executeTakeFirstOrThrow();
    this.#mustBeAudited('admin.identity.license.issue', leases.issued);
    this.#mustBeAudited('identity.license.renew', leases.renewed);
    mustEqual('leases of renewals', leases.renewed, leases.renewals);
    this.#cutOff.issue.done = leases.issued - this.#acknowledged.issue;

    const { devices } = await read
      .selectFrom('devices')
      .select(({ fn }) => fn.countAll<number>().as('devices'))
      .where('name', '=', ENROLLED)
      .executeTakeFirstOrThrow();
    const codes = await read
      .selectFrom('enrolment_codes')
      .select(({ fn }) => [
        fn.count<number>('used_at').as('used'),
        fn.count<number>('device_id').distinct().as('devices'),
      ])
      .executeTakeFirstOrThrow();
    this.#mustBeAudited('identity.device.enrol', devices);
    mustEqual('used codes', codes.used, devices);
    mustEqual('devices of codes', codes.devices, devices);

    const { lineages } = await read
      .selectFrom('license_leases')
      .select(({ fn }) => fn.count<number>('lineage_id').distinct().as('lineages'))
      .where('revoked_at', 'is not', null)
      .executeTakeFirstOrThrow();
    const { deployments } = await read
      .selectFrom('deployments')
      .select(({ fn }) => fn.count<number>('revoked_at').as('deployments'))
      .executeTakeFirstOrThrow();
    this.#mustBeAudited('admin.identity.license.revoke', lineages + deployments);
  }

  #mustBeAudited(action: string, count: number): void {
    mustEqual(`entries of ${action}`, this.#audited.get(action) ?? 0, count);
  }
}

const ENROLLED = 'enrolled';

export async function using<T>(
  { location }: TestDatabase,
  work: (storage: Storage) => Promise<T>,
): Promise<T> {
  const storage = await openStorage(location);
  try {
    return await work(storage);
  } finally {
    await storage.close();
  }
}

function proofOf(key: DeviceKey, path: string, body: string): string {
  const request = { method: 'POST', url: ORIGIN + path, body: Buffer.from(body) };
  return `DeviceProof ${makeDeviceProof(key, request, Date.now())}`;
}

type Keys = Parameters<typeof verifyLease>[1];

async function readKeys(read: Db): Promise<Keys> {
  const keyset = importKeyset({ keys: await publishedKeys(read) });
  if (!keyset.ok) throw new Error(keyset.detail);
  return keyset.keys;
}

/** Checks that acknowledged leases are recorded and signed. */
async function checkLeases(read: Db, answers: readonly Reply['json'][], keys: Keys): Promise<void> {
  for (const answer of answers) {
    mustBeSigned(answer, keys);
    const id = answer['lease_id'] as string;
    const row = await read
      .selectFrom('license_leases')
      .select('lease_id')
      .where('lease_id', '=', id)
      .executeTakeFirst();
    if (row === undefined) throw new Error(`the lease ${id} was acknowledged, and is gone`);
  }
}

/** Checks that each response that is stored for a repeated request contains a signed lease. */
async function checkStoredAnswers(read: Db, keys: Keys): Promise<void> {
  const rows = await read.selectFrom('renewals').select(['lease_id', 'answer']).execute();
  for (const { lease_id, answer } of rows) {
    const { lease } = JSON.parse(answer!) as Reply['json'];
    mustBeSigned({ lease_id, lease }, keys);
  }
}

function mustBeSigned({ lease_id, lease }: Reply['json'], keys: Keys): void {
  const verified = verifyLease(JSON.stringify(lease), keys);
  if (!verified.ok || verified.claims.lease_id !== lease_id) {
    throw new Error(`the lease ${String(lease_id)} is not signed`);
  }
}

async function isRevoked(read: Db, { deployment_id, lease_id }: Device): Promise<boolean> {
  const row = await read
    .selectFrom('deployments')
    .innerJoin('license_leases', 'license_leases.deployment_id', 'deployments.deployment_id')
    .select(['deployments.revoked_at', 'license_leases.revoked_at as lease_revoked_at'])
    .where('deployments.deployment_id', '=', deployment_id)
    .where('license_leases.lease_id', '=', lease_id!)
    .executeTakeFirstOrThrow();
  return (row.revoked_at ?? row.lease_revoked_at) !== null;
}

/** @returns the body. @throws Error unless the response has the expected status. */
export function must(
  reply: Reply | undefined,
  status: number,
  code?: string,
  reason?: string,
): Reply['json'] {
  const isThat =
    reply?.status === status &&
    (code === undefined || reply.json['code'] === code) &&
    (reason === undefined || reply.json['reason'] === reason);
  if (isThat) return reply.json;
  const wanted = [status, code, reason].filter(Boolean).join(' ');
  throw new Error(`wanted ${wanted}, and got ${reply?.status ?? 'no answer'} ${reply?.text ?? ''}`);
}

export function mustEqual(what: string, actual: number, expected: number): void {
  if (actual !== expected) throw new Error(`${what}: ${actual}, and not ${expected}`);
}
