import { formatEnrollmentText, parseEnrollmentText } from '../lease/enrollment-code.ts';
import { ServiceError } from '../base/errors.ts';
import type { Db } from '../storage/tables.ts';
import { appendAudit } from './audit.ts';
import { machineIdRequired } from './binding.ts';
import { refuseInvalid, textProblems } from './request-problems.ts';
import type { Identity } from './context.ts';
import { checkPossession, findDevice, type ProvenRequest } from './device-proof.ts';
import { checkedKey, newDevice, refuseOther, setMachine, type Device } from './devices.ts';
import { registrarActor, registrarDetails, type Registrar } from './grants.ts';
import { getInstallation } from './installations.ts';
import { findInstallationTerms } from './lease-record.ts';
import { installationRevoked, REINSTATE } from './revoke.ts';
import { hashCode, newCode } from './secrets.ts';
import { selectTrust } from './published-trust.ts';
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

interface FoundCode {
  readonly code_hash: string;
  readonly deployment_id: string;
  /** The requesting device, if it is already enrolled. */
  readonly known: Device | undefined;
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
