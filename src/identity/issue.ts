import { appendAudit } from './audit.ts';
import { refuseInvalid } from './checks.ts';
import type { Identity } from './context.ts';
import { usableSigner } from './keys.ts';
import { answerText, groundsOf, newLease, recordLease } from './lease-record.ts';
import { conditionProblems } from './registry.ts';
import { deploymentRevoked, REINSTATE } from './revoke.ts';
import { leaseTerms, type Wishes } from './terms.ts';
import type { Caller } from './tokens.ts';

/** What an administrator asks for. */
export interface IssueRequest extends Wishes {
  readonly deployment_id: string;
  /** To be sure: that of the deployment's contract. */
  readonly customer_id?: string | undefined;
}

/**
 * Issues a lease to an administrator.
 *
 * @returns the body of the answer, see `LeaseAnswer`; it is kept nowhere.
 * @throws ServiceError `license_lease_unavailable`, `not_found`, `license_revoked`,
 * `contract_ended`, `not_allowed`, `invalid_request`.
 */
export async function issueLease(
  { storage, clock, policy, signer }: Identity,
  caller: Caller,
  request: IssueRequest,
): Promise<string> {
  refuseInvalid(conditionProblems(policy, request));
  const issued = await storage.write(async (tx) => {
    const now = clock();
    const usable = await usableSigner(tx, signer);
    const grounds = await groundsOf(tx, request.deployment_id);
    if (request.customer_id !== undefined && request.customer_id !== grounds.customer_id) {
      const message = `the deployment ${grounds.deployment_id} belongs to the customer ${grounds.customer_id}`;
      refuseInvalid([{ code: 'invalid_value', pointer: '/customer_id', message }]);
    }
    if (policy.registry_enforced && grounds.revoked_at !== null) {
      throw await deploymentRevoked(tx, now, grounds.deployment_id, REINSTATE);
    }
    const terms = leaseTerms(policy, grounds, request, now);
    const origin = {
      issued_by: `administrator:${caller.administrator_id}`,
      device_id: null,
      renewal_id: null,
      previous: null,
    } as const;
    const lease = newLease(usable, policy, grounds, terms, origin, now);
    await appendAudit(tx, now, {
      actor: origin.issued_by,
      action: 'admin.identity.license.issue',
      target: `lease:${lease.claims.lease_id}`,
      details: {
        deployment_id: grounds.deployment_id,
        entitlements: terms.entitlements,
        expires_at: lease.claims.expires_at,
        grace_ends_at: lease.claims.grace_ends_at,
        token_id: caller.token_id,
      },
    });
    await recordLease(tx, lease, grounds, terms, origin);
    return { lease, limits: terms.limits, signer: usable };
  });
  // Only now, since all other writes wait until one is done.
  const signature = issued.signer.sign(issued.lease.toSign);
  return answerText(issued.lease, signature, issued.limits, []);
}
