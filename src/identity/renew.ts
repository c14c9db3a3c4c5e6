import { createHash, createPublicKey, verify } from 'node:crypto';
import { sql } from 'kysely';
import { ServiceError } from '../base/errors.ts';
import { readClaims, type LeaseClaims } from '../lease/claims.ts';
import { parseEnvelope, PAYLOAD_TYPE, preAuthEncoding } from '../lease/envelope.ts';
import { LeaseError } from '../lease/refusal.ts';
import { formatTime, parseTime } from '../lease/time.ts';
import type { Db, DevicesTable } from '../storage/tables.ts';
import { appendAudit, type AuditEvent } from './audit.ts';
import { machineOf, purposeClaims, type Holder } from './binding.ts';
import type { Identity } from './context.ts';
import { useDeviceProof, type CheckedProof } from './device-proof.ts';
import { markDeviceUsed, setMachine } from './devices.ts';
import { usableSigner } from './keys.ts';
import {
  answerText,
  groundsOf,
  newLease,
  recordLease,
  type LeaseAnswer,
  type Warning,
} from './lease-record.ts';
import { entitlementSet } from './registry.ts';
import { installationRevoked, machineRevoked, REINSTATE } from './revoke.ts';
import type { Signer } from './signing-key.ts';
import { leaseTerms, type Grounds, type Terms, type Wishes } from './terms.ts';

/** What a device asks for: nothing but a lease. Entitlements and TTL are the registry's. */
export interface RenewRequest {
  /** Made and kept by the device before it asks: repeating it gets the same answer. */
  readonly renewal_id: string;
  /** The lease it holds, the content of its file; absent when it holds none. */
  readonly lease?: unknown;
  /** `machineHash` of its machine, for a plan that binds leases to machines. */
  readonly machine_hash?: string | undefined;
}

export interface Renewed {
  /** The body of the answer, see `LeaseAnswer`; of the same request the same bytes. */
  readonly body: string;
  /** False when the answer had been given before. */
  readonly fresh: boolean;
  readonly warnings: readonly Warning[];
}

/** For so long the answer to a renewal is kept, so that one that was lost can be asked for again. */
const REPEAT_MS = 24 * 3_600_000;

/**
 * Gives a device the lease that follows the one it holds, or its first. The one it holds stays as
 * good as it was.
 *
 * @throws ServiceError `invalid_device_proof`, `license_lease_unavailable`, `license_revoked`,
 * `contract_ended`, `credential_cloned`, `idempotency_mismatch`, `invalid_request`.
 */
export async function renewLease(
  identity: Identity,
  proof: CheckedProof,
  request: RenewRequest,
): Promise<Renewed> {
  const { storage, clock } = identity;
  const asked = readRequest(request);
  const outcome = await storage.write(async (tx): Promise<Renewed | ServiceError> => {
    const now = clock();
    const device = await useDeviceProof(tx, now, proof);
    const actor = `device:${device.device_id}` as const;
    const event = { actor, action: 'identity.license.renew' };
    return giveLease(identity, tx, now, device, asked, event);
  });
  // Thrown only here: the entry in the audit log stays.
  if (outcome instanceof ServiceError) throw outcome;
  return outcome;
}

/** What a renewal would give: of `LeaseAnswer` all but the lease. */
export type DryRun = Omit<LeaseAnswer, 'lease' | 'lease_id'>;

/**
 * Makes all checks of a renewal and says what it would give. Nothing is issued, and nothing recorded
 * but that the proof was used.
 *
 * @throws ServiceError as `renewLease`
 */
export async function dryRunRenewal(
  identity: Identity,
  proof: CheckedProof,
  request: RenewRequest,
): Promise<DryRun> {
  const { storage, clock, policy } = identity;
  const asked = readRequest(request);
  const outcome = await storage.write(async (tx): Promise<DryRun | ServiceError> => {
    const now = clock();
    const device = await useDeviceProof(tx, now, proof);
    const planned = await planRenewal(identity, tx, now, device, asked);
    if ('given' in planned) {
      const { lease: _lease, lease_id: _id, ...rest } = JSON.parse(planned.given) as LeaseAnswer;
      return rest;
    }
    const { fork, terms, warnings } = planned;
    if (fork !== undefined && policy.clone_policy === 'refuse') return cloned(fork);
    return {
      deployment_id: device.deployment_id,
      entitlements: terms.entitlements,
      issued_at: formatTime(terms.issued_at),
      expires_at: formatTime(terms.expires_at),
      grace_ends_at: formatTime(terms.grace_ends_at),
      limits: terms.limits,
      warnings,
    };
  });
  // Thrown only here: the proof stays used.
  if (outcome instanceof ServiceError) throw outcome;
  return outcome;
}

/** A request of a device, whoever brings it. */
interface Asked {
  readonly renewal_id: string;
  readonly held: Held | undefined;
  readonly machine_hash: string | undefined;
  /** Of the administrator who brings it. */
  readonly wishes: Wishes | undefined;
  /** The same for the same lease that is presented. */
  readonly presented: string;
  /** The same where what is wished is the same, too. */
  readonly hash: string;
}

/** @throws ServiceError `invalid_request` */
export function readRequest(
  { renewal_id, lease, machine_hash }: RenewRequest,
  wishes?: Wishes,
): Asked {
  const held = lease === undefined ? undefined : readHeld(lease);
  const presented = sha256(held?.claims.lease_id ?? '');
  const { entitlements, ttl_seconds, grace_period_seconds } = wishes ?? {};
  const wished = [
    entitlements && entitlementSet(entitlements),
    ttl_seconds,
    grace_period_seconds,
    ...(wishes?.ttl_max_seconds === undefined ? [] : [wishes.ttl_max_seconds]),
  ];
  // Where nothing is wished, the device gets the same when it asks by itself after all.
  const isWish = wished.some((wish) => wish !== undefined);
  const hash = isWish ? `${presented} ${sha256(JSON.stringify(wished))}` : presented;
  return { renewal_id, held, machine_hash, wishes, presented, hash };
}

/** The lease that is to be given. */
interface Planned {
  readonly usable: Signer;
  readonly grounds: Grounds;
  readonly terms: Terms;
  readonly holder: Holder;
  readonly previous: Previous | undefined;
  /** A sentence about why the device may have been cloned. */
  readonly fork: string | undefined;
  readonly warnings: readonly Warning[];
}

/** The answer that was given to the same request before. */
interface Given {
  readonly given: string;
}

/** @throws ServiceError as `renewLease` */
async function planRenewal(
  { policy, signer }: Identity,
  tx: Db,
  now: number,
  device: DevicesTable,
  { renewal_id, held, machine_hash, wishes, presented, hash }: Asked,
): Promise<Planned | Given> {
  const line = await lineOf(tx, device);
  const previous = held && (await findHeld(tx, held, device, line));
  const grounds = await groundsOf(tx, device.deployment_id);
  if (policy.registry_enforced) {
    if (grounds.revoked_at !== null) {
      throw await installationRevoked(tx, now, device.deployment_id, wishes && REINSTATE);
    }
    if ((previous?.revoked_at ?? null) !== null || (await hasRevokedLease(tx, line))) {
      throw await machineRevoked(tx, now, line);
    }
  }

  const before = await answered(tx, device.deployment_id, renewal_id);
  if (before && !(before.request_hash.startsWith(presented) && line.includes(before.device_id!))) {
    throw new ServiceError(
      'idempotency_mismatch',
      `the renewal ${renewal_id} was asked for by another device or with another lease`,
      { remedy: 'Make a new renewal_id.' },
    );
  }
  // A key that was rotated since then gets a lease of its own.
  const isSame = before?.device_id === device.device_id && before.request_hash === hash;
  // What took longer to be carried to the machine than it lasted is of no use.
  const isOver = before && now >= Math.min(before.answered_at + REPEAT_MS, before.grace_ends_at);
  if (before?.answer && isSame && !isOver) return { given: before.answer };

  const usable = await usableSigner(tx, signer);
  const terms = leaseTerms(policy, grounds, wishes ?? {}, now);
  const { device_id } = device;
  const holder = { device_id, machine_hash: machineOf(grounds, device, machine_hash) };
  purposeClaims(policy, grounds, holder);
  const warnings: Warning[] = [];
  const sign = await forkOf(tx, line, previous, renewal_id);
  const fork = sign && `${sign}, so there may be two of the device ${device_id}`;
  if (fork !== undefined) warnings.push({ code: 'credential_cloned', detail: fork });
  if (previous !== undefined && !previous.known) {
    const detail = `the lease ${previous.lease_id} is signed by this service and not in its registry`;
    warnings.push({ code: 'unknown_lease', detail });
  }
  return { usable, grounds, terms, holder, previous, fork, warnings };
}

/**
 * Issues the lease, and keeps the answer for when it is asked for again.
 *
 * @param event as which it is recorded.
 * @param admit called once it is not refused, before anything is recorded of it.
 * @returns the error to throw once the write is done, where a clone is refused.
 * @throws ServiceError as `renewLease`
 */
export async function giveLease(
  identity: Identity,
  tx: Db,
  now: number,
  device: DevicesTable,
  asked: Asked,
  { actor, action, details }: Omit<AuditEvent, 'target'>,
  admit = async (): Promise<void> => {},
): Promise<Renewed | ServiceError> {
  const planned = await planRenewal(identity, tx, now, device, asked);
  if ('given' in planned) return { body: planned.given, fresh: false, warnings: [] };
  const { usable, grounds, terms, holder, previous, fork, warnings } = planned;
  const { policy } = identity;
  const { device_id, deployment_id } = device;
  const { renewal_id, hash } = asked;
  if (fork !== undefined) {
    await appendAudit(tx, now, {
      actor: `device:${device_id}`,
      action: 'identity.license.clone_suspected',
      target: `deployment:${deployment_id}`,
      details: { detail: fork, renewal_id, refused: policy.clone_policy === 'refuse' },
    });
    if (policy.clone_policy === 'refuse') return cloned(fork);
  }
  await admit();
  const origin = { issued_by: actor, ...holder, renewal_id, previous: previous ?? null };
  const lease = newLease(usable, policy, grounds, terms, origin, now);
  const { lease_id } = lease.claims;
  await appendAudit(tx, now, {
    actor,
    action,
    target: `lease:${lease_id}`,
    details: {
      deployment_id,
      previous_lease_id: previous?.lease_id ?? null,
      expires_at: lease.claims.expires_at,
      ...(warnings.length > 0 && { warnings: warnings.map(({ code }) => code) }),
      ...details,
    },
  });
  await recordLease(tx, lease, grounds, terms, origin);
  const body = answerText(lease, usable.sign(lease.toSign), terms.limits, warnings);
  const answer = { lease_id, request_hash: hash, answer: body, answered_at: now };
  await tx
    .insertInto('renewals')
    .values({ deployment_id, renewal_id, ...answer })
    .onConflict((conflict) => conflict.columns(['deployment_id', 'renewal_id']).doUpdateSet(answer))
    .execute();
  await recordMachine(tx, now, device, holder);
  await markDeviceUsed(tx, now, device);
  return { body, fresh: true, warnings };
}

/** Records the machine of a device that was enrolled before its plan bound leases to machines. */
async function recordMachine(
  tx: Db,
  now: number,
  device: DevicesTable,
  { machine_hash }: Holder,
): Promise<void> {
  const { device_id, deployment_id } = device;
  if (machine_hash === device.machine_hash) return;
  await appendAudit(tx, now, {
    actor: `device:${device_id}`,
    action: 'identity.device.bind_machine',
    target: `device:${device_id}`,
    details: { deployment_id, machine_hash },
  });
  await setMachine(tx, { device_id, machine_hash });
}

/** Erases the answers that are not given again: the only stored copies of signed leases. */
export async function eraseAnswers(tx: Db, now: number): Promise<void> {
  await tx
    .updateTable('renewals')
    .set({ answer: null })
    .where('answer', 'is not', null)
    .where('answered_at', '<=', now - REPEAT_MS)
    .execute();
}

interface Held {
  readonly claims: LeaseClaims;
  readonly envelope: ReturnType<typeof parseEnvelope>;
}

/** @throws ServiceError `invalid_request` */
function readHeld(lease: unknown): Held {
  try {
    const envelope = parseEnvelope(JSON.stringify(lease));
    return { claims: readClaims(envelope.payload), envelope };
  } catch (error) {
    if (!(error instanceof LeaseError)) throw error;
    throw invalidLease(error.reason, error.message);
  }
}

interface Previous {
  readonly lease_id: string;
  readonly lineage_id: string;
  readonly issued_at: number;
  readonly revoked_at: number | null;
  /** Whose it is; null for one that an administrator was given. */
  readonly device_id: string | null;
  /** Whether it is in the registry. */
  readonly known: boolean;
}

/**
 * The lease in the registry. One that is not there was forgotten with a restored backup of the
 * database, when its signature is good: the device must not pay for that.
 */
async function findHeld(
  tx: Db,
  { claims, envelope }: Held,
  device: DevicesTable,
  line: readonly string[],
): Promise<Previous> {
  const { lease_id } = claims;
  const row = await tx
    .selectFrom('license_leases')
    .select(['deployment_id', 'device_id', 'lineage_id', 'issued_at', 'revoked_at'])
    .where('lease_id', '=', lease_id)
    .executeTakeFirst();
  if (row === undefined && !(await isSigned(tx, envelope))) {
    throw invalidLease('unknown_lease', `the lease ${lease_id} was not issued by this service`);
  }
  const previous = row ?? {
    deployment_id: claims.deployment_id,
    device_id: claims.device_thumbprint ?? null,
    lineage_id: lease_id,
    issued_at: parseTime(claims.issued_at)!,
    revoked_at: null,
  };
  const { deployment_id, device_id } = previous;
  if (deployment_id !== device.deployment_id) {
    throw otherLease('other_deployment', `the lease ${lease_id} belongs to another installation`);
  }
  if (device_id !== null && !line.includes(device_id)) {
    throw otherLease('other_device', `the lease ${lease_id} was given to another device`);
  }
  return { lease_id, ...previous, known: row !== undefined };
}

function otherLease(reason: string, message: string): ServiceError {
  return new ServiceError('not_allowed', message, {
    reason,
    remedy: 'Present the lease that this device was given, or none.',
  });
}

/** Whether any key that ever signed here has signed it: retired ones count, as a lease may be old. */
async function isSigned(tx: Db, { payload, signatures }: Held['envelope']): Promise<boolean> {
  // Anything else is no id of a key, and may be a text that the database does not take.
  const ids = signatures.map(({ keyid }) => keyid).filter((id) => /^[\w-]{43}$/.test(id));
  if (ids.length === 0) return false;
  const keys = await tx
    .selectFrom('signing_keys')
    .select(['public_key_id', 'x'])
    .where('public_key_id', 'in', ids)
    .execute();
  const signed = preAuthEncoding(PAYLOAD_TYPE, payload);
  return signatures.some(({ keyid, bytes }) => {
    const x = keys.find(({ public_key_id }) => public_key_id === keyid)?.x;
    if (x === undefined) return false;
    const jwk = { kty: 'OKP', crv: 'Ed25519', x };
    return verify(null, signed, createPublicKey({ key: jwk, format: 'jwk' }), bytes);
  });
}

function invalidLease(reason: string, message: string): ServiceError {
  return new ServiceError('invalid_request', message, {
    reason,
    problems: [{ code: reason, pointer: '/lease', message }],
    remedy: 'Present the lease file as it was received, or none.',
  });
}

/** The device, and those whose keys it took over, one after the other. */
async function lineOf(tx: Db, { device_id, replaces }: DevicesTable): Promise<readonly string[]> {
  if (replaces === null) return [device_id];
  const { rows } = await sql<{ device_id: string }>`
    with recursive line (device_id, place) as (
      select cast(${device_id} as text), 0
      union all
      select replaces, place + 1 from devices join line on devices.device_id = line.device_id
      where replaces is not null
    )
    select device_id from line order by place`.execute(tx);
  return rows.map((row) => row.device_id);
}

/** Who was given a lease that is revoked must not get another by leaving it out. */
async function hasRevokedLease(tx: Db, line: readonly string[]): Promise<boolean> {
  const revoked = await tx
    .selectFrom('license_leases')
    .select('lease_id')
    .where('device_id', 'in', line)
    .where('revoked_at', 'is not', null)
    .limit(1)
    .executeTakeFirst();
  return revoked !== undefined;
}

interface Answered {
  readonly request_hash: string;
  readonly answer: string | null;
  readonly answered_at: number;
  readonly grace_ends_at: number;
  /** To which device. */
  readonly device_id: string | null;
}

async function answered(
  tx: Db,
  installation: string,
  renewal: string,
): Promise<Answered | undefined> {
  return tx
    .selectFrom('renewals')
    .innerJoin('license_leases', 'license_leases.lease_id', 'renewals.lease_id')
    .select(['request_hash', 'answer', 'answered_at', 'grace_ends_at', 'device_id'])
    .where('renewals.deployment_id', '=', installation)
    .where('renewals.renewal_id', '=', renewal)
    .executeTakeFirst();
}

/**
 * What shows that a device asks from a place from which it, or what it was copied from, has gone on
 * already: a device asks once from each. Repeating a request is no such sign.
 *
 * @returns a sentence about it.
 */
async function forkOf(
  tx: Db,
  line: readonly string[],
  previous: Previous | undefined,
  renewalId: string,
): Promise<string | undefined> {
  const other = tx
    .selectFrom('license_leases')
    .select('lease_id')
    .where('renewal_id', '!=', renewalId)
    .limit(1);
  if (previous !== undefined) {
    const child = await other.where('previous_lease_id', '=', previous.lease_id).executeTakeFirst();
    if (child) return `the lease ${previous.lease_id} was renewed before, by another request`;
    if (previous.known && previous.device_id !== null) return undefined;
  }
  // One that a restored database has forgotten is newer than all that it knows.
  const since = previous === undefined || previous.known ? 0 : previous.issued_at + 1;
  const own = await other
    .where('device_id', 'in', line)
    .where('issued_at', '>=', since)
    .executeTakeFirst();
  return own && `it had the lease ${own.lease_id} and presents ${previous ? 'another' : 'none'}`;
}

function cloned(detail: string): ServiceError {
  return new ServiceError('credential_cloned', `${detail}: this device may have been cloned`, {
    remedy:
      'The lease it holds stays good. Enroll each machine by a code of its own, after a look at `service-local identity audit list`.',
  });
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
