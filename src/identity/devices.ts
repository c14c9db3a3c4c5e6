import { formatEnrollmentText, parseEnrollmentText } from '../lease/enrollment-code.ts';
import { ServiceError } from '../base/errors.ts';
import { isId } from '../lease/claims.ts';
import { importKeyset, publicKeyId } from '../lease/keys.ts';
import { successionBody } from '../base/proof-claims.ts';
import type { Db, DevicesTable } from '../storage/tables.ts';
import { appendAudit, type Actor } from './audit.ts';
import { refuseInvalid, textProblems } from './checks.ts';
import { machineIdRequired } from './binding.ts';
import type { Identity } from './context.ts';
import { getInstallation } from './installations.ts';
import {
  checkPossession,
  type CheckedProof,
  findDevice,
  type ProvenRequest,
  useDeviceProof,
} from './device-proof.ts';
import { registrarActor, registrarDetails, type Registrar } from './grants.ts';
import { findInstallationTerms } from './lease-record.ts';
import { isWithin, narrowingKey, type Narrowing } from './narrowing.ts';
import { readPage, type Page, type PageRequest } from '../storage/paging.ts';
import { installationRevoked, REINSTATE } from './revoke.ts';
import { hashCode, newCode } from './secrets.ts';
import { selectTrust } from './trust.ts';

export type Device = Readonly<DevicesTable>;

const CODE_MS = 10 * 60_000;

export interface EnrollmentCode {
  /** Shown once and stored as a hash; includes the fingerprint of the issuer's root, if it has one. */
  readonly code: string;
  readonly root_fingerprint: string | null;
  readonly deployment_id: string;
  /** Milliseconds since the Unix epoch. */
  readonly expires_at: number;
}

/** @throws ServiceError `not_found`; `license_revoked` if the registry is enforced. */
export async function createEnrollmentCode(
  { storage, clock, policy }: Identity,
  by: Registrar,
  installationId: string,
): Promise<EnrollmentCode> {
  const actor = registrarActor(by);
  const code = newCode();
  return storage.write(async (tx) => {
    const now = clock();
    const { revoked_at } = await getInstallation(tx, installationId);
    if (policy.registry_enforced && revoked_at !== null) {
      throw await installationRevoked(tx, now, installationId, REINSTATE);
    }
    await appendAudit(tx, now, {
      actor,
      action: 'admin.identity.device.enrol_code',
      target: `deployment:${installationId}`,
      details: { ...registrarDetails(by) },
    });
    const rootFingerprint = (await selectTrust(tx))?.root_fingerprint;
    const answer = {
      code: formatEnrollmentText({ code, rootFingerprint }),
      root_fingerprint: rootFingerprint ?? null,
      deployment_id: installationId,
      expires_at: now + CODE_MS,
    };
    await tx
      .insertInto('enrolment_codes')
      .values({
        code_hash: hashCode(code),
        deployment_id: installationId,
        created_by: actor,
        created_at: now,
        expires_at: answer.expires_at,
        used_at: null,
        device_id: null,
      })
      .execute();
    return answer;
  });
}

export interface EnrollmentRequest {
  readonly code: string;
  /** The public key, base64url. */
  readonly x: string;
  readonly name: string;
  /** `machineHash` of the machine; required by plans that bind leases to machines. */
  readonly machine_hash?: string | undefined;
}

/**
 * Enrolls a key as a device of the code's installation. The proof is signed by that key. It needs no
 * nonce, because the code in the body works once. A client that did not receive the response can
 * repeat the request at any time: the same code and key get the same response. A device that enrolls
 * again with a new code may be on another machine.
 *
 * @throws ServiceError `not_authenticated` with a reason for an invalid code; `not_allowed`, reason
 * `machine_id_required`, if the plan binds leases to machines and the request has no machine hash;
 * `invalid_request` for an invalid key or name; `conflict` for a key that was revoked or belongs to
 * another installation.
 * @throws ProofRefusal
 */
export async function enrollDevice(
  { storage, clock }: Identity,
  { code, x, name, machine_hash: stated }: EnrollmentRequest,
  proof: string,
  request: ProvenRequest,
  audiences: readonly string[],
): Promise<Device> {
  refuseInvalid(textProblems('/name', name));
  const device_id = checkedKey(x);
  await checkPossession(x, proof, request, audiences);
  // Any client can get here, so only requests that change something enter the queue of writes.
  const before = await findCode(storage.read, clock(), code, device_id);
  if (before.known !== undefined && before.isUsed) return before.known;
  const { plan_id, binding } = await findInstallationTerms(storage.read, before.deployment_id);
  if (binding === 'machine' && stated === undefined) throw machineIdRequired(plan_id);
  const machine_hash = stated ?? null;
  return storage.write(async (tx) => {
    const now = clock();
    const { code_hash, deployment_id, known, isUsed } = await findCode(tx, now, code, device_id);
    if (known !== undefined && isUsed) return known;
    const fresh = { device_id, deployment_id, x, name, replaces: null, machine_hash };
    const device = known === undefined ? newDevice(fresh, now) : { ...known, machine_hash };
    await appendAudit(tx, now, {
      actor: `device:${device_id}`,
      action: 'identity.device.enrol',
      target: `deployment:${deployment_id}`,
      details: { name: device.name, ...(machine_hash !== null && { machine_hash }) },
    });
    if (known === undefined) await tx.insertInto('devices').values(device).execute();
    else await setMachine(tx, device);
    await tx
      .updateTable('enrolment_codes')
      .set({ used_at: now, device_id })
      .where('code_hash', '=', code_hash)
      .execute();
    return device;
  });
}

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
  /** Adds the device to the installation, unless it is known. */
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

interface FoundCode {
  readonly code_hash: string;
  readonly deployment_id: string;
  /** The requesting device, if it is already enrolled. */
  readonly known: Device | undefined;
  /** Whether the requesting device used the code before. */
  readonly isUsed: boolean;
}

/**
 * @throws ServiceError `not_authenticated` unless the device may use the code or has used it;
 * `conflict` if its key was revoked or belongs to another installation.
 */
async function findCode(db: Db, now: number, code: string, deviceId: string): Promise<FoundCode> {
  const row = await db
    .selectFrom('enrolment_codes')
    .selectAll()
    .where('code_hash', '=', hashCode(parseEnrollmentText(code)?.code ?? code))
    .executeTakeFirst();
  if (row === undefined) throw badCode('unknown_code', 'the enrollment code is unknown');
  const isUsed = row.device_id === deviceId;
  if (!isUsed && row.used_at !== null) {
    throw badCode('used_code', 'the enrollment code has been used');
  }
  if (!isUsed && row.expires_at <= now)
    throw badCode('expired_code', 'the enrollment code has expired');
  const known = await findDevice(db, deviceId);
  if (known !== undefined) refuseOther(known, row.deployment_id);
  return { ...row, known, isUsed };
}

function badCode(reason: string, message: string): ServiceError {
  return new ServiceError('not_authenticated', message, {
    reason,
    remedy: 'Ask the issuer for a new enrollment code.',
  });
}

/** Rejects a key that was revoked or belongs to another installation. */
function refuseOther({ device_id, deployment_id, revoked_at }: Device, wanted: string): void {
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

function newDevice(
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
 * @throws ServiceError `invalid_request` for an unknown cursor, `not_found` for the installation.
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
  return readPage(
    ['devices', deployment_id, narrowingKey(within)],
    request,
    (device) => device.device_id,
    (after = '', limit) =>
      db
        .selectFrom('devices')
        .selectAll()
        .where('device_id', '>', after)
        .$if(deployment_id !== undefined, (of) => of.where('deployment_id', '=', deployment_id!))
        .$if(within !== undefined, (of) => of.where(isWithin(within!)))
        .orderBy('device_id')
        .limit(limit)
        .execute(),
  );
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
