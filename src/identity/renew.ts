import { createHash, createPublicKey, verify } from 'node:crypto';
import { sql } from 'kysely';
import { ServiceError } from '../errors.ts';
import { readClaims } from '../lease/claims.ts';
import { parseEnvelope, PAYLOAD_TYPE, preAuthEncoding } from '../lease/envelope.ts';
import { LeaseError } from '../lease/refusal.ts';
import type { Db, DevicesTable, LicenseLeasesTable } from '../storage/tables.ts';
import { appendAudit } from './audit.ts';
import type { Identity } from './context.ts';
import { useDeviceProof, type CheckedProof } from './device-proof.ts';
import { markDeviceUsed } from './devices.ts';
import { usableSigner } from './keys.ts';
import { answerText, groundsOf, recordLease, signLease, type Warning } from './lease-record.ts';
import { refuseRevoked } from './revoke.ts';
import { leaseTerms } from './terms.ts';

/** What a device asks for: nothing but a lease. Entitlements and TTL are the registry's. */
export interface RenewRequest {
  /** Made and kept by the device before it asks: repeating it gets the same answer. */
  readonly renewal_id: string;
  /** The lease it holds, the content of its file; absent when it holds none. */
  readonly lease?: unknown;
}

export interface Renewed {
  /** The body of the answer, see `LeaseAnswer`; of the same `renewal_id` the same bytes. */
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
  const { storage, clock, policy, signer } = identity;
  const held = request.lease === undefined ? undefined : readHeld(request.lease);
  const requestHash = sha256(`${proof.device.device_id}\n${held?.lease_id ?? ''}`);

  const outcome = await storage.write(async (tx): Promise<Renewed | ServiceError> => {
    const now = clock();
    const device = await useDeviceProof(tx, now, proof);
    const previous = held && (await findHeld(tx, held, device));
    const grounds = await groundsOf(tx, device.deployment_id);
    const isRevoked =
      grounds.revoked_at !== null ||
      (previous?.revoked_at ?? null) !== null ||
      (await hasRevokedLease(tx, device));
    if (isRevoked && policy.registry_enforced) {
      throw await refuseRevoked(tx, device.deployment_id);
    }

    const before = await answered(tx, device.deployment_id, request.renewal_id);
    if (before !== undefined && before.request_hash !== requestHash) {
      throw new ServiceError(
        'idempotency_mismatch',
        `the renewal ${request.renewal_id} was asked for by another device or with another lease`,
        { remedy: 'Make a new renewal_id.' },
      );
    }
    if (before?.answer && now < before.answered_at + REPEAT_MS) {
      return { body: before.answer, fresh: false, warnings: [] };
    }

    const usable = await usableSigner(tx, signer);
    const terms = leaseTerms(policy, grounds, {}, now);
    const warnings: Warning[] = [];
    if (await hasOtherChild(tx, device, previous?.lease_id, request.renewal_id)) {
      const detail = previous
        ? `the lease ${previous.lease_id} was renewed before, by another request`
        : `the device ${device.device_id} had a lease and presents none`;
      warnings.push({ code: 'credential_cloned', detail });
      await appendAudit(tx, now, {
        actor: `device:${device.device_id}`,
        action: 'identity.license.clone_suspected',
        target: `deployment:${device.deployment_id}`,
        details: {
          detail,
          renewal_id: request.renewal_id,
          refused: policy.clone_policy === 'refuse',
        },
      });
      if (policy.clone_policy === 'refuse') return cloned(detail);
    }
    if (previous !== undefined && !previous.known) {
      const detail = `the lease ${previous.lease_id} is signed by this service and not in its registry`;
      warnings.push({ code: 'unknown_lease', detail });
    }

    const origin = {
      issued_by: `device:${device.device_id}`,
      device_id: device.device_id,
      renewal_id: request.renewal_id,
      previous: previous ?? null,
    } as const;
    const lease = signLease(usable, policy, grounds, terms, origin);
    const { lease_id } = lease.claims;
    await appendAudit(tx, now, {
      actor: origin.issued_by,
      action: 'identity.license.renew',
      target: `lease:${lease_id}`,
      details: {
        deployment_id: device.deployment_id,
        previous_lease_id: previous?.lease_id ?? null,
        expires_at: lease.claims.expires_at,
        ...(warnings.length > 0 && { warnings: warnings.map(({ code }) => code) }),
      },
    });
    await recordLease(tx, lease, grounds, terms, origin);
    const body = answerText(lease, terms.limits, warnings);
    const answer = { lease_id, request_hash: requestHash, answer: body, answered_at: now };
    await tx
      .insertInto('renewals')
      .values({
        deployment_id: device.deployment_id,
        renewal_id: request.renewal_id,
        ...answer,
      })
      .onConflict((conflict) =>
        conflict.columns(['deployment_id', 'renewal_id']).doUpdateSet(answer),
      )
      .execute();
    await markDeviceUsed(tx, now, device);
    return { body, fresh: true, warnings };
  });
  // Thrown only here: the entry in the audit log stays.
  if (outcome instanceof ServiceError) throw outcome;
  return outcome;
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
  readonly lease_id: string;
  readonly deployment_id: string;
  readonly envelope: ReturnType<typeof parseEnvelope>;
}

/** @throws ServiceError `invalid_request` */
function readHeld(lease: unknown): Held {
  try {
    const envelope = parseEnvelope(JSON.stringify(lease));
    const { lease_id, deployment_id } = readClaims(envelope.payload);
    return { lease_id, deployment_id, envelope };
  } catch (error) {
    if (!(error instanceof LeaseError)) throw error;
    throw invalidLease(error.reason, error.message);
  }
}

interface Previous {
  readonly lease_id: string;
  readonly lineage_id: string;
  readonly revoked_at: number | null;
  /** Whether it is in the registry. */
  readonly known: boolean;
}

/**
 * The lease in the registry. One that is not there was forgotten with a restored backup of the
 * database, when its signature is good: the device must not pay for that.
 */
async function findHeld(
  tx: Db,
  { lease_id, deployment_id, envelope }: Held,
  device: DevicesTable,
): Promise<Previous> {
  const row: Pick<LicenseLeasesTable, 'deployment_id' | 'lineage_id' | 'revoked_at'> | undefined =
    await tx
      .selectFrom('license_leases')
      .select(['deployment_id', 'lineage_id', 'revoked_at'])
      .where('lease_id', '=', lease_id)
      .executeTakeFirst();
  if ((row ?? { deployment_id }).deployment_id !== device.deployment_id) {
    throw new ServiceError('not_allowed', `the lease ${lease_id} belongs to another deployment`, {
      reason: 'other_deployment',
      remedy: 'Renew the lease of this deployment, or enrol this device for the other one.',
    });
  }
  if (row !== undefined) return { lease_id, ...row, known: true };
  if (!(await isSigned(tx, envelope))) {
    throw invalidLease('unknown_lease', `the lease ${lease_id} was not issued by this service`);
  }
  return { lease_id, lineage_id: lease_id, revoked_at: null, known: false };
}

/** Whether any key that ever signed here has signed it: retired ones count, as a lease may be old. */
async function isSigned(tx: Db, { payload, signatures }: Held['envelope']): Promise<boolean> {
  const ids = signatures.map(({ keyid }) => keyid);
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

/**
 * Whether a lease of this device was revoked, or of one whose key it took over: who holds a revoked
 * lease must not get another by leaving it out.
 */
async function hasRevokedLease(tx: Db, { device_id }: DevicesTable): Promise<boolean> {
  const { rows } = await sql`
    with recursive line (device_id) as (
      select cast(${device_id} as text)
      union
      select replaces from devices join line on devices.device_id = line.device_id
      where replaces is not null
    )
    select 1 from license_leases join line on license_leases.device_id = line.device_id
    where revoked_at is not null limit 1`.execute(tx);
  return rows.length > 0;
}

async function answered(
  tx: Db,
  deployment: string,
  renewal: string,
): Promise<
  | { readonly request_hash: string; readonly answer: string | null; readonly answered_at: number }
  | undefined
> {
  return tx
    .selectFrom('renewals')
    .select(['request_hash', 'answer', 'answered_at'])
    .where('deployment_id', '=', deployment)
    .where('renewal_id', '=', renewal)
    .executeTakeFirst();
}

/**
 * Whether the lease (or, without one, the device's having none) was renewed before by another
 * request: a device asks once from each place in its line, so there are two of it, or it went back.
 */
async function hasOtherChild(
  tx: Db,
  { device_id }: DevicesTable,
  leaseId: string | undefined,
  renewalId: string,
): Promise<boolean> {
  const child = await tx
    .selectFrom('license_leases')
    .select('lease_id')
    .where((is) =>
      leaseId === undefined
        ? is('device_id', '=', device_id)
        : is('previous_lease_id', '=', leaseId),
    )
    .where('renewal_id', '!=', renewalId)
    .limit(1)
    .executeTakeFirst();
  return child !== undefined;
}

function cloned(detail: string): ServiceError {
  return new ServiceError('credential_cloned', `${detail}: this device may have been cloned`, {
    remedy:
      'The lease it holds stays good. Enrol each machine by a code of its own, after a look at `service-local identity audit list`.',
  });
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
