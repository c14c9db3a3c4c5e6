import type { ExpressionBuilder } from 'kysely';
import { ServiceError } from '../base/errors.ts';
import { formatTime } from '../lease/time.ts';
import type { Db, Tables } from '../storage/tables.ts';
import { appendAudit } from './audit.ts';
import { refuseInvalid, textProblems } from './checks.ts';
import type { Identity } from './context.ts';
import { consumeStepUp } from './step-up.ts';
import { checkCaller, meansOf, type Caller } from './tokens.ts';

export const REVOKE_ACTION = 'identity.license.revoke';

/**
 * What is revoked: a lease, with its line of renewals and all else that the machine has which it was
 * given to; or an installation, with all its leases. A lease that an administrator was given stands for
 * no machine, so revoking it denies none of them a lease of its own.
 */
export type RevokeTarget = { readonly lease_id: string } | { readonly deployment_id: string };

export interface RevokeRequest {
  readonly reason: string;
  /** The installation's id, typed once more. */
  readonly confirm: string;
  /** Of `grantStepUp`, for `REVOKE_ACTION` and `stepUpTarget`. */
  readonly step_up_token: string | undefined;
}

export interface Revoked {
  readonly deployment_id: string;
  /** How many leases that still worked this call has revoked. */
  readonly revoked_leases: number;
  /** Milliseconds since the Unix epoch; when it was revoked first. */
  readonly revoked_at: number;
  /**
   * When the last copy stops working: until then nothing can take it back. Null when none works any
   * more. It holds only while `registry_enforced`.
   */
  readonly effective_at: number | null;
  /** False: renewals go on all the same, by the server's setting. */
  readonly registry_enforced: boolean;
}

/** What a step-up is granted for: `lease:…` or `deployment:…`. */
export function stepUpTarget(target: RevokeTarget): string {
  return 'lease_id' in target ? `lease:${target.lease_id}` : `deployment:${target.deployment_id}`;
}

/**
 * Denies renewal from now on. The audit entry comes first and in the same write: a revocation that
 * cannot be recorded does not happen. Revoking again changes nothing and answers the same.
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
        `confirm is not the id of the installation, ${found.deployment_id}`,
        { remedy: 'Check that it is the one you mean, and type its id.' },
      );
    }
    const { administrator_id } = caller;
    const stepUp = stepUpTarget(target);
    await consumeStepUp(tx, now, administrator_id, request.step_up_token, REVOKE_ACTION, stepUp);
    const { open, active, effective_at } = await outstanding(tx, found, now);
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
          device_ids: await machinesOf(tx, found),
        }),
        ...meansOf(caller),
      },
    });
    const change = { revoked_at: now, revoked_by: actor, revoked_reason: request.reason };
    if (found.lineage_id === undefined) {
      // All leases of a revoked installation are revoked; that is not noted with each of them.
      await tx
        .updateTable('deployments')
        .set(change)
        .where('deployment_id', '=', found.deployment_id)
        .execute();
    } else {
      await tx
        .updateTable('license_leases')
        .set(change)
        .where((is) => isMeant(is, found))
        .where('revoked_at', 'is', null)
        .execute();
    }
    return { ...answer, revoked_leases: active, revoked_at: found.revoked_at ?? now };
  });
}

/** What a revocation would do, before somebody confirms it. */
export interface Revocation extends Pick<
  Revoked,
  'deployment_id' | 'effective_at' | 'registry_enforced'
> {
  /** Leases that still work and are not revoked yet. */
  readonly working_leases: number;
  /** The machines that have one that works. */
  readonly device_ids: readonly string[];
}

/**
 * Whom `revoke` would hit, and when the last copy of what they have stops.
 * @throws ServiceError `not_found`
 */
export async function previewRevocation(
  { storage, clock, policy }: Identity,
  target: RevokeTarget,
): Promise<Revocation> {
  const now = clock();
  const found = await findTarget(storage.read, target);
  const { active, effective_at } = await outstanding(storage.read, found, now);
  return {
    deployment_id: found.deployment_id,
    working_leases: active,
    device_ids: await machinesOf(storage.read, found, now),
    effective_at,
    registry_enforced: policy.registry_enforced,
  };
}

/**
 * Ids of the devices that got the leases; with `workingAt`, only of leases that work at that time.
 */
async function machinesOf(db: Db, found: Found, workingAt?: number): Promise<string[]> {
  const rows = await db
    .selectFrom('license_leases')
    .select('device_id')
    .distinct()
    .where((is) => isMeant(is, found))
    .where('device_id', 'is not', null)
    .$if(workingAt !== undefined, (query) => query.where('grace_ends_at', '>', workingAt!))
    .orderBy('device_id')
    .execute();
  return rows.map(({ device_id }) => device_id!);
}

interface Found {
  readonly deployment_id: string;
  /** Undefined for a whole installation. */
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
    throw notFound(`there is no lease ${target.lease_id}`, 'leases');
  }
  const installation = await tx
    .selectFrom('deployments')
    .select(['deployment_id', 'revoked_at'])
    .where('deployment_id', '=', target.deployment_id)
    .executeTakeFirst();
  if (installation !== undefined) return { ...installation, lineage_id: undefined };
  throw notFound(`there is no installation ${target.deployment_id}`, 'deployments');
}

function notFound(message: string, noun: string): ServiceError {
  return new ServiceError('not_found', message, {
    remedy: `See \`service-local identity ${noun} list\`.`,
  });
}

function isMeant(is: ExpressionBuilder<Tables, 'license_leases'>, found: Found) {
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
  /** Leases not yet revoked. */
  readonly open: number;
  /** Of them, those that still work. */
  readonly active: number;
  /** When the last copy of any lease, revoked or not, stops working; null when none works. */
  readonly effective_at: number | null;
}

async function outstanding(tx: Db, found: Found, now: number): Promise<Outstanding> {
  const { open, active } = await tx
    .selectFrom('license_leases')
    .select(({ fn }) => [
      fn.countAll<number>().as('open'),
      fn.countAll<number>().filterWhere('grace_ends_at', '>', now).as('active'),
    ])
    .where((is) => isMeant(is, found))
    .where('revoked_at', 'is', null)
    .executeTakeFirstOrThrow();
  const { last } = await tx
    .selectFrom('license_leases')
    .select(({ fn }) => fn.max('grace_ends_at').as('last'))
    .where((is) => isMeant(is, found))
    .executeTakeFirstOrThrow();
  return { open, active, effective_at: last !== null && last > now ? last : null };
}

/**
 * Refuses a lease to an installation that is revoked.
 * @param remedy of whoever asks for it.
 */
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
  return revoked(`the license of the installation ${installationId} is revoked`, last, now, remedy);
}

/**
 * Refuses a lease to a machine of which one is revoked.
 * @param line the device, and those whose keys it took over.
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
  return revoked(`the license of the device ${line[0]} is revoked`, last, now, ASK);
}

const ASK = 'Ask whoever issued the license.';

/** For administrators. */
export const REINSTATE = 'Take it back with `service-local identity deployments reinstate`.';

function revoked(what: string, last: number | null, now: number, remedy: string): ServiceError {
  const until = last === null || last <= now ? '' : `; what it has works until ${formatTime(last)}`;
  return new ServiceError('license_revoked', what + until, { remedy });
}
