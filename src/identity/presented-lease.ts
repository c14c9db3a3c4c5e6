/** The lease that a device presents when it renews. */
import { createPublicKey, verify } from 'node:crypto';
import { ServiceError } from '../base/errors.ts';
import { readClaims, type LeaseClaims } from '../lease/claims.ts';
import { parseEnvelope, PAYLOAD_TYPE, preAuthEncoding } from '../lease/envelope.ts';
import { LeaseError } from '../lease/refusal.ts';
import { parseTime } from '../lease/time.ts';
import type { Db, DevicesTable } from '../storage/tables.ts';

export interface PresentedLease {
  readonly claims: LeaseClaims;
  readonly envelope: ReturnType<typeof parseEnvelope>;
}

/** @throws ServiceError `invalid_request` */
export function parsePresented(lease: unknown): PresentedLease {
  try {
    const envelope = parseEnvelope(JSON.stringify(lease));
    return { claims: readClaims(envelope.payload), envelope };
  } catch (error) {
    if (!(error instanceof LeaseError)) throw error;
    throw invalidLease(error.reason, error.message);
  }
}

export interface PreviousLease {
  readonly lease_id: string;
  readonly lineage_id: string;
  readonly issued_at: number;
  readonly revoked_at: number | null;
  /** Null for a lease that was issued to an administrator. */
  readonly device_id: string | null;
  readonly known: boolean;
}

/**
 * Finds the presented lease. A validly signed lease that the registry lacks is accepted, because it may
 * have been lost when a backup was restored.
 */
export async function findPrevious(
  tx: Db,
  { claims, envelope }: PresentedLease,
  device: DevicesTable,
  line: readonly string[],
): Promise<PreviousLease> {
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
    throw otherLease('other_device', `the lease ${lease_id} was issued to another device`);
  }
  return { lease_id, ...previous, known: row !== undefined };
}

function otherLease(reason: string, message: string): ServiceError {
  return new ServiceError('not_allowed', message, {
    reason,
    remedy: 'Send the latest lease of this device, or none.',
  });
}

/** Whether a signing key of this service signed the lease, including retired keys. */
async function isSigned(
  tx: Db,
  { payload, signatures }: PresentedLease['envelope'],
): Promise<boolean> {
  // Other texts are not ids of keys, and the database may reject them.
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
    remedy: 'Send the lease file unchanged, or none.',
  });
}
