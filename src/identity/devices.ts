import { ServiceError } from '../base/errors.ts';
import { isId } from '../lease/claims.ts';
import { importKeyset, publicKeyId } from '../lease/keys.ts';
import { successionBody } from '../base/proof-claims.ts';
import type { Db, DevicesTable } from '../storage/tables.ts';
import { appendAudit, type Actor } from './audit.ts';
import { refuseInvalid, textProblems } from './request-problems.ts';
import type { Identity } from './context.ts';
import { getInstallation } from './installations.ts';
import {
  checkPossession,
  type CheckedProof,
  findDevice,
  type ProvenRequest,
  useDeviceProof,
} from './device-proof.ts';
import { isWithin, narrowingKey, type Narrowing } from './narrowing.ts';
import { readRowsPage, type Page, type PageRequest } from '../storage/paging.ts';

export type Device = Readonly<DevicesTable>;

/** Records the machine of a device, to which its leases are bound if the plan requires it. */
export async function setMachine(
  tx: Db,
  { device_id, machine_hash }: Pick<Device, 'device_id' | 'machine_hash'>,
): Promise<void> {
  await tx
    .updateTable('devices')
    .set({ machine_hash })
    .where('device_id', '=', device_id)
    .execute();
}

export interface Candidate {
  readonly device: Device;
  readonly isKnown: boolean;
  readonly admit: () => Promise<void>;
}

/**
 * Finds or prepares the device that an administrator admits to an installation.
 *
 * @param about with a key and name that have been checked.
 * @throws ServiceError `conflict` for a key that was revoked or belongs to another installation.
 */
export async function deviceToAdmit(
  tx: Db,
  now: number,
  actor: Actor,
  about: Pick<Device, 'device_id' | 'deployment_id' | 'x' | 'name' | 'machine_hash'>,
): Promise<Candidate> {
  const { device_id, deployment_id, name } = about;
  const known = await findDevice(tx, device_id);
  if (known !== undefined) {
    refuseOther(known, deployment_id);
    return { device: known, isKnown: true, admit: async () => {} };
  }
  const device = newDevice({ ...about, replaces: null }, now);
  const admit = async (): Promise<void> => {
    await appendAudit(tx, now, {
      actor,
      action: 'admin.identity.device.admit',
      target: `deployment:${deployment_id}`,
      details: { device_id, name },
    });
    await tx.insertInto('devices').values(device).execute();
  };
  return { device, isKnown: false, admit };
}

/** Rejects a key that was revoked or belongs to another installation. */
export function refuseOther(
  { device_id, deployment_id, revoked_at }: Device,
  wanted: string,
): void {
  if (revoked_at === null && deployment_id === wanted) return;
  const why = revoked_at === null ? `belongs to the installation ${deployment_id}` : 'was revoked';
  throw new ServiceError('conflict', `the key ${device_id} ${why}`, {
    reason: revoked_at === null ? 'other_deployment' : 'revoked_key',
    remedy: 'Move device.key away and enroll again; this creates a new key.',
  });
}

/** Returns the key id. @throws ServiceError `invalid_request` for an invalid or weak key. */
export function checkedKey(x: string, pointer = '/jwk/x'): string {
  const kid = publicKeyId(x);
  const imported = importKeyset({ keys: [{ kty: 'OKP', crv: 'Ed25519', x, kid }] });
  if (imported.ok) return kid;
  const { reason, detail } = imported;
  throw new ServiceError('invalid_request', 'the public key cannot be used', {
    reason,
    problems: [{ code: 'invalid_value', pointer, message: detail }],
    remedy: 'Generate a new Ed25519 key pair.',
  });
}

export function newDevice(
  device: Pick<Device, 'device_id' | 'deployment_id' | 'x' | 'name' | 'replaces' | 'machine_hash'>,
  now: number,
): Device {
  return {
    ...device,
    enrolled_at: now,
    first_used_at: null,
    revoked_at: null,
    revoked_by: null,
    revoked_reason: null,
  };
}

export interface Successor {
  /** The public key, base64url. */
  readonly x: string;
  /** Proof signed by this key for the same request, with `successionBody` of the old device as body. */
  readonly proof: string;
}

/**
 * Registers the next key of a device. Both keys work until the first use of the new one, so a lost
 * response or a repeated request does no harm. Revokes an earlier successor that was never used.
 *
 * @throws ServiceError `invalid_request` for an invalid key, `conflict` for a known one.
 * @throws ProofRefusal
 */
export async function rotateDevice(
  { storage, clock }: Identity,
  old: CheckedProof,
  { x, proof }: Successor,
  request: Omit<ProvenRequest, 'body'>,
  audiences: readonly string[],
): Promise<Device> {
  const device_id = checkedKey(x);
  const body = successionBody(old.device.device_id);
  await checkPossession(x, proof, { ...request, body }, audiences);
  return storage.write(async (tx) => {
    const now = clock();
    const device = await useDeviceProof(tx, now, old);
    const actor = `device:${device.device_id}` as const;
    await markDeviceUsed(tx, now, device);
    const known = await findDevice(tx, device_id);
    if (known?.replaces === device.device_id && known.revoked_at === null) return known;
    if (known !== undefined) {
      throw new ServiceError('conflict', `the key ${device_id} is already registered`, {
        reason: 'known_key',
        remedy: 'Move device.key.next away and rotate again; this creates a new key.',
      });
    }
    const { deployment_id, name, machine_hash } = device;
    const revoked_along = await waitingSuccessors(tx, device);
    await appendAudit(tx, now, {
      actor,
      action: 'identity.device.rotate',
      target: `device:${device.device_id}`,
      details: { deployment_id, successor: device_id, revoked_along },
    });
    await tx
      .updateTable('devices')
      .set({ revoked_at: now, revoked_by: actor, revoked_reason: REPLACED })
      .where('replaces', '=', device.device_id)
      .where('revoked_at', 'is', null)
      .execute();
    const successor = newDevice(
      { device_id, deployment_id, x, name, replaces: device.device_id, machine_hash },
      now,
    );
    await tx.insertInto('devices').values(successor).execute();
    return successor;
  });
}

const REPLACED = 'replaced';

/** Returns the ids of registered successors that were not used yet: one or none. */
async function waitingSuccessors(tx: Db, { device_id }: Device): Promise<string[]> {
  const rows = await tx
    .selectFrom('devices')
    .select('device_id')
    .where('replaces', '=', device_id)
    .where('revoked_at', 'is', null)
    .execute();
  return rows.map((row) => row.device_id);
}

/** Records the first use of a key, which revokes the key that it replaces. */
export async function markDeviceUsed(tx: Db, now: number, device: Device): Promise<void> {
  if (device.first_used_at !== null) return;
  const actor = `device:${device.device_id}` as const;
  if (device.replaces !== null) {
    await appendAudit(tx, now, {
      actor,
      action: 'identity.device.replace',
      target: `device:${device.replaces}`,
      details: { deployment_id: device.deployment_id },
    });
    await tx
      .updateTable('devices')
      .set({ revoked_at: now, revoked_by: actor, revoked_reason: REPLACED })
      .where('device_id', '=', device.replaces)
      .where('revoked_at', 'is', null)
      .execute();
  }
  await tx
    .updateTable('devices')
    .set({ first_used_at: now })
    .where('device_id', '=', device.device_id)
    .execute();
}

/**
 * Returns the devices of all installations or of one, ordered by id.
 * @throws ServiceError `not_found` for the installation.
 */
export async function listDevices(
  db: Db,
  {
    deployment_id,
    within,
  }: { readonly deployment_id?: string | undefined; readonly within?: Narrowing | undefined },
  request: PageRequest,
): Promise<Page<Device>> {
  if (deployment_id !== undefined) await getInstallation(db, deployment_id);
  const query = db
    .selectFrom('devices')
    .selectAll()
    .$if(deployment_id !== undefined, (of) => of.where('deployment_id', '=', deployment_id!))
    .$if(within !== undefined, (of) => of.where(isWithin(within!)));
  const list = ['devices', deployment_id, narrowingKey(within)] as const;
  return readRowsPage(list, request, query, 'device_id');
}

/**
 * Revokes a device and its unused successor. Issued leases keep working; they are revoked separately.
 * Idempotent.
 *
 * @throws ServiceError `not_found`, `invalid_request`
 */
export async function revokeDevice(
  { storage, clock }: Identity,
  actor: Actor,
  deviceId: string,
  reason: string,
): Promise<Device> {
  refuseInvalid(textProblems('/reason', reason));
  return storage.write(async (tx) => {
    const now = clock();
    // Invalid ids are not queried: PostgreSQL rejects texts that contain NUL.
    const device = isId(deviceId) ? await findDevice(tx, deviceId) : undefined;
    if (device === undefined) {
      throw new ServiceError('not_found', `there is no device ${JSON.stringify(deviceId)}`, {
        remedy: 'See `service-local identity devices list`.',
      });
    }
    if (device.revoked_at !== null) return device;
    const revoked_along = await waitingSuccessors(tx, device);
    await appendAudit(tx, now, {
      actor,
      action: 'admin.identity.device.revoke',
      target: `device:${deviceId}`,
      details: { deployment_id: device.deployment_id, reason, revoked_along },
    });
    const change = { revoked_at: now, revoked_by: actor, revoked_reason: reason };
    await tx
      .updateTable('devices')
      .set(change)
      .where('device_id', 'in', [deviceId, ...revoked_along])
      .execute();
    return { ...device, ...change };
  });
}

/** Deletes expired proofs and unused codes. Used codes stay as a record of each enrollment. */
export async function purgeDevices(tx: Db, now: number): Promise<void> {
  await tx.deleteFrom('used_proofs').where('expires_at', '<=', now).execute();
  await tx
    .deleteFrom('enrolment_codes')
    .where('expires_at', '<=', now)
    .where('used_at', 'is', null)
    .execute();
}
