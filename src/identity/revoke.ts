import { ServiceError } from '../errors.ts';
import { formatTime } from '../lease/time.ts';
import type { Db } from '../storage/tables.ts';
import { appendAudit } from './audit.ts';
import { refuseInvalid, textProblems } from './checks.ts';
import type { Identity } from './context.ts';
import { consumeStepUp } from './step-up.ts';
import type { Caller } from './tokens.ts';

export const REVOKE_ACTION = 'identity.license.revoke';

/** What is revoked: a lease with all that it was renewed into, or a deployment with all its leases. */
export type RevokeTarget = { readonly lease_id: string } | { readonly deployment_id: string };

export interface RevokeRequest {
  readonly reason: string;
  /** The deployment's id, typed once more. */
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
    const found = await findTarget(tx, target);
    if (request.confirm !== found.deployment_id) {
      throw new ServiceError(
        'confirmation_mismatch',
        `confirm is not the id of the deployment, ${found.deployment_id}`,
        { remedy: 'Check that it is the one you mean, and type its id.' },
      );
    }
    const { administrator_id, token_id } = caller;
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
        token_id,
      },
    });
    const change = { revoked_at: now, revoked_by: actor, revoked_reason: request.reason };
    if (found.lineage_id === undefined) {
      // All leases of a revoked deployment are revoked; that is not noted with each of them.
      await tx
        .updateTable('deployments')
        .set(change)
        .where('deployment_id', '=', found.deployment_id)
        .execute();
    } else {
      await tx
        .updateTable('license_leases')
        .set(change)
        .where('lineage_id', '=', found.lineage_id)
        .where('revoked_at', 'is', null)
        .execute();
    }
    return { ...answer, revoked_leases: active, revoked_at: found.revoked_at ?? now };
  });
}

interface Found {
  readonly deployment_id: string;
  /** Undefined for a whole deployment. */
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
  const deployment = await tx
    .selectFrom('deployments')
    .select(['deployment_id', 'revoked_at'])
    .where('deployment_id', '=', target.deployment_id)
    .executeTakeFirst();
  if (deployment !== undefined) return { ...deployment, lineage_id: undefined };
  throw notFound(`there is no deployment ${target.deployment_id}`, 'deployments');
}

function notFound(message: string, noun: string): ServiceError {
  return new ServiceError('not_found', message, {
    remedy: `See \`service-local identity ${noun} list\`.`,
  });
}

function chosen({
  deployment_id,
  lineage_id,
}: Found): ['lineage_id' | 'deployment_id', '=', string] {
  return lineage_id === undefined
    ? ['deployment_id', '=', deployment_id]
    : ['lineage_id', '=', lineage_id];
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
    .where(...chosen(found))
    .where('revoked_at', 'is', null)
    .executeTakeFirstOrThrow();
  const { last } = await tx
    .selectFrom('license_leases')
    .select(({ fn }) => fn.max('grace_ends_at').as('last'))
    .where(...chosen(found))
    .executeTakeFirstOrThrow();
  return { open, active, effective_at: last !== null && last > now ? last : null };
}

/** The refusal of a lease to what is revoked, with the date until which the last one works. */
export async function refuseRevoked(tx: Db, deploymentId: string): Promise<ServiceError> {
  const { last } = await tx
    .selectFrom('license_leases')
    .select(({ fn }) => fn.max('grace_ends_at').as('last'))
    .where('deployment_id', '=', deploymentId)
    .executeTakeFirstOrThrow();
  const until = last === null ? '' : `; what was issued before works until ${formatTime(last)}`;
  return new ServiceError(
    'license_revoked',
    `the license of the deployment ${deploymentId} is revoked${until}`,
    { remedy: 'Ask whoever issued the license.' },
  );
}
