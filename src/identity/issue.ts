import { v7 as uuidv7 } from 'uuid';
import * as z from 'zod';
import { ServiceError } from '../base/errors.ts';
import { isId } from '../lease/claims.ts';
import { formatTime } from '../lease/time.ts';
import type { Db } from '../storage/tables.ts';
import { OFFLINE_REQUEST_TYPE, type OfflineRequestClaims } from '../base/proof-claims.ts';
import { appendAudit } from './audit.ts';
import { refuseInvalid, textProblems } from './request-problems.ts';
import { machineHashProblems, purposeClaims } from './binding.ts';
import { installationScope, type Identity } from './context.ts';
import { isSignedBy, readDeviceJwt, THUMBPRINT, type JwtForm } from './device-jwt.ts';
import { checkedKey, deviceToAdmit } from './devices.ts';
import { usableSigner } from './signing-keys.ts';
import { answerText, findInstallationTerms, newLease, recordLease } from './lease-record.ts';
import {
  boundRequestedTerms,
  refuseLongerRenewals,
  refuseOutside,
  type Narrowed,
} from './narrowing.ts';
import { conditionProblems } from './registry.ts';
import { readRequest } from './plan-renewal.ts';
import { issueRenewal, signDraft, writeSigned, type DryRun, type Renewed } from './renew-lease.ts';
import { installationRevoked, REINSTATE } from './revoke.ts';
import type { Signer } from './signing-key.ts';
import { leaseTerms, type InstallationTerms, type Terms, type RequestedTerms } from './terms.ts';
import { callerDetails, type Caller } from './tokens.ts';

export interface IssueRequest extends RequestedTerms {
  readonly deployment_id: string;
  /** Optional check: the customer of the installation's contract. */
  readonly customer_id?: string | undefined;
}

/**
 * Issues a lease to an administrator.
 *
 * @param request a repeated `issue_id`, which the client chooses, is refused.
 * @returns the response body, see `LeaseAnswer`; it is not stored.
 * @throws ServiceError `license_lease_unavailable`, `not_found`, `license_revoked`,
 * `contract_ended`, `not_allowed`, `invalid_request`; `conflict` with the reason `already_issued`.
 */
export async function issueLease(
  identity: Identity,
  caller: Caller,
  { issue_id, ...request }: IssueRequest & { readonly issue_id?: string | undefined },
): Promise<string> {
  const { storage, clock, policy } = identity;
  refuseInvalid(conditionProblems(policy, request));
  const issue = async (tx: Db) => {
    const now = clock();
    if (issue_id !== undefined) await refuseIssued(tx, request.deployment_id, issue_id);
    const { usable, registered, terms } = await planIssue(identity, tx, now, caller, request);
    const origin = {
      issued_by: `administrator:${caller.administrator_id}`,
      ...NO_DEVICE,
      renewal_id: null,
      previous: null,
    } as const;
    const lease = newLease(usable, policy, registered, terms, origin, uuidv7({ msecs: now }));
    await appendAudit(tx, now, {
      actor: origin.issued_by,
      action: 'admin.identity.license.issue',
      target: `lease:${lease.claims.lease_id}`,
      details: {
        deployment_id: registered.deployment_id,
        entitlements: terms.entitlements,
        expires_at: lease.claims.expires_at,
        grace_ends_at: lease.claims.grace_ends_at,
        ...callerDetails(caller),
      },
    });
    await recordLease(tx, lease, registered, terms, origin);
    if (issue_id !== undefined) {
      const { lease_id, deployment_id } = lease.claims;
      const kept = { request_hash: '', answer: null, answered_at: now };
      await tx
        .insertInto('renewals')
        .values({ deployment_id, renewal_id: issue_id, lease_id, ...kept })
        .execute();
    }
    return { lease, limits: terms.limits, signer: usable };
  };
  const issued = await storage.write(issue, { scope: installationScope(request) });
  // After the transaction, because other writes wait for it.
  const signature = issued.signer.sign(issued.lease.toSign);
  return answerText(issued.lease, signature, issued.limits, []);
}

/**
 * Returns the result that `issueLease` would have, without issuing or recording anything.
 * @throws ServiceError as `issueLease`
 */
export async function previewLease(
  identity: Identity,
  caller: Narrowed,
  request: IssueRequest,
): Promise<DryRun> {
  const { storage, clock, policy } = identity;
  refuseInvalid(conditionProblems(policy, request));
  const { terms } = await planIssue(identity, storage.read, clock(), caller, request);
  return {
    deployment_id: request.deployment_id,
    entitlements: terms.entitlements,
    issued_at: formatTime(terms.issued_at),
    expires_at: formatTime(terms.expires_at),
    grace_ends_at: formatTime(terms.grace_ends_at),
    limits: terms.limits,
    warnings: [],
  };
}

/** Checks a request and determines the terms of the lease. */
async function planIssue(
  { policy, signer }: Identity,
  db: Db,
  now: number,
  caller: Narrowed,
  request: IssueRequest,
): Promise<{
  readonly usable: Signer;
  readonly registered: InstallationTerms;
  readonly terms: Terms;
}> {
  await refuseOutside(db, caller, { deployment_id: request.deployment_id });
  const usable = await usableSigner(db, signer);
  const registered = await findInstallationTerms(db, request.deployment_id);
  const requested = boundRequestedTerms(caller, policy, registered, request);
  refuseOtherCustomer(registered, request);
  if (policy.registry_enforced && registered.revoked_at !== null) {
    throw await installationRevoked(db, now, registered.deployment_id, REINSTATE);
  }
  purposeClaims(policy, registered, NO_DEVICE);
  return { usable, registered, terms: leaseTerms(policy, registered, requested, now) };
}

const NO_DEVICE = { device_id: null, machine_hash: null } as const;

/** The signed lease is not stored, so a repeated request cannot be answered again. */
async function refuseIssued(tx: Db, deployment_id: string, issue_id: string): Promise<void> {
  const issued = await tx
    .selectFrom('renewals')
    .select('lease_id')
    .where('deployment_id', '=', deployment_id)
    .where('renewal_id', '=', issue_id)
    .executeTakeFirst();
  if (issued === undefined) return;
  throw new ServiceError(
    'conflict',
    `the lease ${issued.lease_id} was already issued and returned for this issue_id`,
    {
      reason: 'already_issued',
      remedy: 'If it did not arrive, revoke it and issue another with a new issue_id.',
    },
  );
}

/**
 * Issues the lease that a device without network access requests through an administrator. It is the
 * renewal that the device would request itself, so a repeated request gets the same response; other
 * terms give another lease. Admits an unknown device to the installation, unless the lease is refused.
 *
 * @param offlineRequest a JWT with `OfflineRequestClaims`.
 * @throws ServiceError as `issueLease` and `renewLease`; `invalid_request` with a reason for an
 * invalid JWT; `conflict` for a key that was revoked or belongs to another installation.
 */
export async function issueForRequest(
  identity: Identity,
  caller: Caller,
  request: IssueRequest,
  offlineRequest: string,
): Promise<Renewed> {
  const { storage, clock, policy } = identity;
  refuseInvalid(conditionProblems(policy, request));
  const offline = await readOfflineRequest(offlineRequest);
  const { iss, iat, jwk, name, machine_hash = null } = offline;
  const { deployment_id, entitlements, ttl_seconds, grace_period_seconds } = request;
  const requested = { entitlements, ttl_seconds, grace_period_seconds };
  const actor = `administrator:${caller.administrator_id}` as const;
  const details = {
    device_id: iss,
    requested_at: formatTime(iat * 1000),
    ...callerDetails(caller),
  };
  const event = { actor, action: 'admin.identity.license.issue', details };
  const check = async (db: Db, now: number) => {
    await refuseOutside(db, caller, { deployment_id });
    const registered = await findInstallationTerms(db, deployment_id);
    refuseOtherCustomer(registered, request);
    const bounded = boundRequestedTerms(caller, policy, registered, requested);
    const renewal = readRequest(offline, bounded);
    const about = { device_id: iss, deployment_id, x: jwk.x, name, machine_hash };
    const { device, admit, isKnown } = await deviceToAdmit(db, now, actor, about);
    if (!isKnown) refuseLongerRenewals(caller, policy, registered);
    return { device, renewal, event, admit };
  };
  const sign = async () => {
    const { device, renewal } = await check(storage.read, clock());
    return signDraft(identity, device, renewal);
  };
  return writeSigned(identity, sign, async (tx, now, draft) =>
    issueRenewal(identity, tx, now, draft, await check(tx, now)),
  );
}

const POINTER = '/offline_request';

/** In characters. */
const MAX_LENGTH = 64 * 1024;

const OFFLINE_REQUEST: JwtForm<OfflineRequestClaims> = {
  typ: OFFLINE_REQUEST_TYPE,
  claims: z.object({
    iss: THUMBPRINT,
    sub: THUMBPRINT,
    iat: z.int().min(0).max(253_402_300_799),
    jwk: z.object({ kty: z.literal('OKP'), crv: z.literal('Ed25519'), x: z.string() }),
    name: z.string(),
    renewal_id: z.string().refine(isId),
    lease: z.unknown().optional(),
    machine_hash: z.string().optional(),
  }),
  maxLength: MAX_LENGTH,
  malformed: (detail) =>
    invalidOfflineRequest('malformed', `the offline request is invalid: ${detail}`),
};

/** @throws ServiceError `invalid_request` */
async function readOfflineRequest(text: string): Promise<OfflineRequestClaims> {
  const claims = readDeviceJwt(text, OFFLINE_REQUEST);
  const { x } = claims.jwk;
  // First, because an invalid key cannot verify a signature.
  const isOwn = checkedKey(x, POINTER) === claims.iss;
  refuseInvalid([
    ...textProblems(POINTER, claims.name),
    ...machineHashProblems(claims.machine_hash, POINTER),
  ]);
  if (isOwn && (await isSignedBy(text, x))) return claims;
  throw invalidOfflineRequest(
    'bad_signature',
    'the offline request was changed, or another key signed it',
  );
}

function invalidOfflineRequest(reason: string, message: string): ServiceError {
  return new ServiceError('invalid_request', message, {
    reason,
    problems: [{ code: reason, pointer: POINTER, message }],
    remedy: 'Send the text of the file that `service-local license export-request` wrote.',
  });
}

function refuseOtherCustomer(
  { deployment_id, customer_id }: InstallationTerms,
  request: Pick<IssueRequest, 'customer_id'>,
): void {
  if (request.customer_id === undefined || request.customer_id === customer_id) return;
  const message = `the installation ${deployment_id} belongs to the customer ${customer_id}`;
  refuseInvalid([{ code: 'invalid_value', pointer: '/customer_id', message }]);
}
