import type { ExpressionBuilder } from 'kysely';
import { ServiceError } from '../base/errors.ts';
import { formatTime } from '../lease/time.ts';
import type { Db, Tables } from '../storage/tables.ts';
import { appendAudit } from './audit.ts';
import { refuseInvalid, textProblems } from './request-problems.ts';
import type { Identity } from './context.ts';
import { consumeStepUp } from './step-up.ts';
import { checkCaller, callerDetails, type Caller } from './tokens.ts';

export const REVOKE_ACTION = 'identity.license.revoke';

/**
 * A lease, with its renewals and all other leases of the same machine, or an installation with all its
 * leases. A lease that was issued to an administrator belongs to no machine, so revoking it affects
 * only its renewals.
 */
export type RevokeTarget = { readonly lease_id: string } | { readonly deployment_id: string };

export interface RevokeRequest {
  readonly reason: string;
  /** The id of the installation, repeated as confirmation. */
  readonly confirm: string;
  /** From `grantStepUp`, for `REVOKE_ACTION` and `stepUpTarget`. */
  readonly step_up_token: string | undefined;
}

export interface Revoked {
  readonly deployment_id: string;
  /** Count of working leases that this call revoked. */
  readonly revoked_leases: number;
  /** Time of the first revocation, milliseconds since the Unix epoch. */
  readonly revoked_at: number;
  /**
   * Time at which the last copy of a lease stops working, which nothing can bring forward; null if none
   * works. Applies only while `registry_enforced`.
   */
  readonly effective_at: number | null;
  /** If false, renewals continue despite the revocation. */
  readonly registry_enforced: boolean;
}

/** Returns the target of the step-up: `lease:…` or `deployment:…`. */
export function stepUpTarget(target: RevokeTarget): string {
  return 'lease_id' in target ? `lease:${target.lease_id}` : `deployment:${target.deployment_id}`;
}

/**
 * Denies renewal from now on. Idempotent.
 *
 * @throws ServiceError `invalid_request`, `not_found`, `confirmation_mismatch`, `step_up_required`.
 */
export async function revoke(
  { storage, clock, policy }: Identity,
  caller: Caller,
  target: RevokeTarget,
  request: RevokeRequest,
): Promise<Revoked> {
  refuseInvalid(textProblems('/reason', request.reason));
  return storage.write(async (tx) => {
    const now = clock();
    await checkCaller(tx, now, caller);
    const found = await findTarget(tx, target);
    if (request.confirm !== found.deployment_id) {
      throw new ServiceError(
        'confirmation_mismatch',
        `confirm must be the id of the installation, ${found.deployment_id}`,
        { remedy: 'Check that this is the installation that you mean, and send its id.' },
      );
    }
    const { administrator_id } = caller;
    const stepUp = stepUpTarget(target);
    await consumeStepUp(tx, now, administrator_id, request.step_up_token, REVOKE_ACTION, stepUp);
    const { open, active, effective_at } = await countOutstanding(tx, found, now);
    const actor = `administrator:${administrator_id}` as const;
    const answer = {
      deployment_id: found.deployment_id,
      effective_at,
      registry_enforced: policy.registry_enforced,
    };
    if (found.revoked_at !== null && (open === 0 || found.lineage_id === undefined)) {
      return { ...answer, revoked_leases: 0, revoked_at: found.revoked_at };
    }
    await appendAudit(tx, now, {
      actor,
      action: 'admin.identity.license.revoke',
      target: stepUp,
      details: {
        deployment_id: found.deployment_id,
        reason: request.reason,
        leases: active,
        effective_at: effective_at === null ? null : formatTime(effective_at),
        ...(found.lineage_id !== undefined && {
          lineage_id: found.lineage_id,
          device_ids: await findDeviceIds(tx, found),
        }),
        ...callerDetails(caller),
      },
    });
    const change = { revoked_at: now, revoked_by: actor, revoked_reason: request.reason };
    if (found.lineage_id === undefined) {
      // Its leases are revoked with the installation; their rows do not change.
      await tx
        .updateTable('deployments')
        .set(change)
        .where('deployment_id', '=', found.deployment_id)
        .execute();
    } else {
      await tx
        .updateTable('license_leases')
        .set(change)
        .where((is) => isAffected(is, found))
        .where('revoked_at', 'is', null)
        .execute();
    }
    return { ...answer, revoked_leases: active, revoked_at: found.revoked_at ?? now };
  });
}

/** Effects of a revocation that is not confirmed yet. */
export interface Revocation extends Pick<
  Revoked,
  'deployment_id' | 'effective_at' | 'registry_enforced'
> {
  readonly working_leases: number;
  readonly device_ids: readonly string[];
}

/** @throws ServiceError `not_found` */
export async function previewRevocation(
  { storage, clock, policy }: Identity,
  target: RevokeTarget,
): Promise<Revocation> {
  const now = clock();
  const found = await findTarget(storage.read, target);
  const { active, effective_at } = await countOutstanding(storage.read, found, now);
  return {
    deployment_id: found.deployment_id,
    working_leases: active,
    device_ids: await findDeviceIds(storage.read, found, now),
    effective_at,
    registry_enforced: policy.registry_enforced,
  };
}

/**
 * Ids of the devices that got the leases; with `workingAt`, only of leases that work at that time.
 */
async function findDeviceIds(db: Db, found: Found, workingAt?: number): Promise<string[]> {
  const rows = await db
    .selectFrom('license_leases')
    .select('device_id')
    .distinct()
    .where((is) => isAffected(is, found))
    .where('device_id', 'is not', null)
    .$if(workingAt !== undefined, (query) => query.where('grace_ends_at', '>', workingAt!))
    .orderBy('device_id')
    .execute();
  return rows.map(({ device_id }) => device_id!);
}

interface Found {
  readonly deployment_id: string;
  /** Undefined for an installation. */
  readonly lineage_id: string | undefined;
  readonly revoked_at: number | null;
}

async function findTarget(tx: Db, target: RevokeTarget): Promise<Found> {
  if ('lease_id' in target) {
    const lease = await tx
      .selectFrom('license_leases')
      .select(['deployment_id', 'lineage_id', 'revoked_at'])
      .where('lease_id', '=', target.lease_id)
      .executeTakeFirst();
    if (lease !== undefined) return lease;
    throw unknownTarget(`there is no lease ${target.lease_id}`, 'leases');
  }
  const installation = await tx
    .selectFrom('deployments')
    .select(['deployment_id', 'revoked_at'])
    .where('deployment_id', '=', target.deployment_id)
    .executeTakeFirst();
  if (installation !== undefined) return { ...installation, lineage_id: undefined };
  throw unknownTarget(`there is no installation ${target.deployment_id}`, 'deployments');
}

function unknownTarget(message: string, noun: string): ServiceError {
  return new ServiceError('not_found', message, {
    remedy: `See \`service-local identity ${noun} list\`.`,
  });
}

function isAffected(is: ExpressionBuilder<Tables, 'license_leases'>, found: Found) {
  const { deployment_id, lineage_id } = found;
  if (lineage_id === undefined) return is('deployment_id', '=', deployment_id);
  const machines = is
    .selectFrom('license_leases as line')
    .select('line.device_id')
    .where('line.lineage_id', '=', lineage_id)
    .where('line.device_id', 'is not', null);
  return is.or([is('lineage_id', '=', lineage_id), is('device_id', 'in', machines)]);
}

interface Outstanding {
  readonly open: number;
  /** Open leases that still work. */
  readonly active: number;
  /** When the last copy of any lease, revoked or not, stops working; null when none works. */
  readonly effective_at: number | null;
}

async function countOutstanding(tx: Db, found: Found, now: number): Promise<Outstanding> {
  const { open, active } = await tx
    .selectFrom('license_leases')
    .select(({ fn }) => [
      fn.countAll<number>().as('open'),
      fn.countAll<number>().filterWhere('grace_ends_at', '>', now).as('active'),
    ])
    .where((is) => isAffected(is, found))
    .where('revoked_at', 'is', null)
    .executeTakeFirstOrThrow();
  const { last } = await tx
    .selectFrom('license_leases')
    .select(({ fn }) => fn.max('grace_ends_at').as('last'))
    .where((is) => isAffected(is, found))
    .executeTakeFirstOrThrow();
  return { open, active, effective_at: last !== null && last > now ? last : null };
}

/** Returns the error for a lease of a revoked installation. */
export async function installationRevoked(
  tx: Db,
  now: number,
  installationId: string,
  remedy = ASK,
): Promise<ServiceError> {
  const { last } = await tx
    .selectFrom('license_leases')
    .select(({ fn }) => fn.max('grace_ends_at').as('last'))
    .where('deployment_id', '=', installationId)
    .executeTakeFirstOrThrow();
  return licenseRevoked(
    `the license of the installation ${installationId} is revoked`,
    last,
    now,
    remedy,
  );
}

/**
 * Returns the error for a device with a revoked lease.
 * @param line ids of the device and of the keys that it replaced.
 */
export async function machineRevoked(
  tx: Db,
  now: number,
  line: readonly string[],
): Promise<ServiceError> {
  const { last } = await tx
    .selectFrom('license_leases')
    .select(({ fn }) => fn.max('grace_ends_at').as('last'))
    .where('device_id', 'in', line)
    .executeTakeFirstOrThrow();
  return licenseRevoked(`the license of the device ${line[0]} is revoked`, last, now, ASK);
}

const ASK = 'Contact the issuer of the license.';

export const REINSTATE = 'Reinstate it with `service-local identity deployments reinstate`.';

function licenseRevoked(
  what: string,
  last: number | null,
  now: number,
  remedy: string,
): ServiceError {
  const until =
    last === null || last <= now ? '' : `; its issued leases work until ${formatTime(last)}`;
  return new ServiceError('license_revoked', what + until, { remedy });
}
