import { DAY } from '../base/durations.ts';
import type { StepUpAction } from '../base/step-up-actions.ts';
import type {
  AuthenticationResponseJSON,
  PublicKeyCredentialRequestOptionsJSON,
} from '@simplewebauthn/server';
import { ServiceError } from '../base/errors.ts';
import type { Scope } from '../base/scopes.ts';
import type { Db } from '../storage/tables.ts';
import { appendAudit } from './audit.ts';
import type { IdentityStore } from './context.ts';
import { codeSubject, countFailures, forgetFailures, tryLimit } from './failed-tries.ts';
import { checkPasskey, passkeyOptions, usePasskey } from './passkey-proof.ts';
import { findCode, useCode } from './second-factor.ts';
import { hashSecret, newSecret } from './secrets.ts';
import { checkCaller, callerDetails, requireScope, type Caller } from './tokens.ts';

export const STEP_UP_SECONDS = 300;

/** Allowed targets of each action, and the scope that the action requires. */
const ACTIONS: Readonly<Record<StepUpAction, { readonly scope?: Scope; readonly target: RegExp }>> =
  {
    'identity.license.revoke': { scope: 'license', target: /^(lease|deployment):[!-~]{1,128}$/ },
    'identity.passkey.add': { target: /^administrator:[!-~]{1,128}$/ },
    'identity.passkey.delete': { target: /^passkey:[!-~]{1,128}$/ },
    'bots.validation_report.attest': {
      scope: 'write',
      target: /^validation_report:[0-9a-f]{64}$/,
    },
    'identity.root.set': { scope: 'admin', target: /^(root|key):[\w-]{43}$/ },
    'identity.license.give': {
      scope: 'license',
      target: /^(contract|plan|deployment|customer):[!-~]{1,128}$/,
    },
  };

export interface StepUpSubject {
  readonly action: StepUpAction;
  /** `TYPE:ID`, see `ACTIONS`. */
  readonly target: string;
}

/** Contains either `code` or `passkey`. */
export interface StepUpRequest extends StepUpSubject {
  /** Code of the authenticator app, or recovery code. */
  readonly code?: string | undefined;
  /** Response of a passkey to `stepUpOptions` for the same action and target. */
  readonly passkey?: AuthenticationResponseJSON | undefined;
  /** Network of the client, by which wrong codes are counted; see `Origin`. */
  readonly network?: string;
}

export interface StepUp {
  /** Value of the header `Service-Step-Up`; stored only as a hash. */
  readonly step_up_token: string;
  /** Milliseconds since the Unix epoch. */
  readonly expires_at: number;
}

/**
 * Verifies a second factor, and allows the caller one action on one target, once within five minutes.
 *
 * @param origins public origins of the server.
 * @throws ServiceError `not_allowed` without the scope that the action needs; `invalid_request`;
 * `not_authenticated` for a wrong code or passkey; `rate_limited` as `tryLimit`.
 */
export async function grantStepUp(
  identity: IdentityStore,
  caller: Caller,
  { action, target, code: typed, passkey, network = '' }: StepUpRequest,
  origins: readonly string[] = [],
): Promise<StepUp> {
  checkSubject(caller, { action, target });
  if ((typed === undefined) === (passkey === undefined)) {
    const message = 'send either a code or the response of a passkey';
    throw new ServiceError('invalid_request', message, {
      problems: [{ code: 'invalid_value', pointer: '/code', message }],
      remedy: 'Send one of the two, and repeat the request.',
    });
  }
  if (passkey) return grantForPasskey(identity, caller, { action, target }, passkey, origins);
  const { storage, clock } = identity;
  const { administrator_id } = caller;
  const codes = codeSubject(administrator_id);
  // Errors are returned and thrown later, because throwing here would roll back the counted failure.
  const outcome = await storage.write(async (tx): Promise<StepUp | ServiceError> => {
    const now = clock();
    await checkCaller(tx, now, caller);
    const limit = await tryLimit(tx, now, codes, { administrator_id, network });
    if (limit) return limit;
    const administrator = await tx
      .selectFrom('administrators')
      .select(['administrator_id', 'totp_secret', 'totp_last_step'])
      .where('administrator_id', '=', administrator_id)
      .executeTakeFirstOrThrow();
    const code = await findCode(tx, now, administrator, typed!);
    await appendAudit(tx, now, {
      actor: `administrator:${administrator_id}`,
      action: `admin.identity.administrator.${code ? 'step_up' : 'step_up_failed'}`,
      target,
      details: { action, ...callerDetails(caller), ...(code && { second_factor: code.kind }) },
    });
    if (code === undefined) {
      await countFailures(tx, now, [codes], network);
      return wrongCode();
    }
    await useCode(tx, now, administrator_id, code);
    await forgetFailures(tx, [codes], network);
    return insertStepUp(tx, now, administrator_id, { action, target });
  });
  if (outcome instanceof ServiceError) throw outcome;
  return outcome;
}

/** @throws ServiceError `not_allowed`, `invalid_request` */
function checkSubject(caller: Caller, { action, target }: StepUpSubject): void {
  const { scope, target: form } = ACTIONS[action];
  if (scope !== undefined) requireScope(caller, scope);
  if (form.test(target)) return;
  const message = `invalid target for ${action}`;
  throw new ServiceError('invalid_request', message, {
    problems: [{ code: 'invalid_value', pointer: '/target', message }],
    remedy: 'See the field target of POST /identity/step-ups in the API reference.',
  });
}

/**
 * Returns the options for `navigator.credentials.get`, for one action on one target.
 * @param site host of the page.
 * @throws ServiceError `not_allowed`, `invalid_request`
 */
export async function stepUpOptions(
  identity: IdentityStore,
  caller: Caller,
  subject: StepUpSubject,
  site: string,
): Promise<PublicKeyCredentialRequestOptionsJSON> {
  checkSubject(caller, subject);
  const { administrator_id } = caller;
  return passkeyOptions(identity, site, { purpose: 'step_up', administrator_id, ...subject });
}

async function grantForPasskey(
  identity: IdentityStore,
  caller: Caller,
  subject: StepUpSubject,
  passkey: AuthenticationResponseJSON,
  origins: readonly string[],
): Promise<StepUp> {
  const { storage, clock } = identity;
  const { administrator_id } = caller;
  const use = { purpose: 'step_up', administrator_id, ...subject } as const;
  const proof = await checkPasskey(identity, passkey, use, origins);
  return storage.write(async (tx) => {
    const now = clock();
    await checkCaller(tx, now, caller);
    await appendAudit(tx, now, {
      actor: `administrator:${administrator_id}`,
      action: 'admin.identity.administrator.step_up',
      target: subject.target,
      details: {
        action: subject.action,
        ...callerDetails(caller),
        second_factor: 'passkey',
        passkey_id: proof.passkey_id,
      },
    });
    await usePasskey(tx, now, proof);
    return insertStepUp(tx, now, administrator_id, subject);
  });
}

async function insertStepUp(
  tx: Db,
  now: number,
  administrator_id: string,
  { action, target }: StepUpSubject,
): Promise<StepUp> {
  const step_up_token = `sls_${newSecret()}`;
  const expires_at = now + STEP_UP_SECONDS * 1000;
  await tx
    .insertInto('step_ups')
    .values({
      token_hash: hashSecret(step_up_token),
      administrator_id,
      action,
      target,
      expires_at,
      used_at: null,
    })
    .execute();
  return { step_up_token, expires_at };
}

/** Keeps used and expired step-ups for a day, so that their use is refused with the right reason. */
export async function purgeStepUps(tx: Db, now: number): Promise<void> {
  await tx
    .deleteFrom('step_ups')
    .where('expires_at', '<=', now - DAY)
    .execute();
}

function wrongCode(): ServiceError {
  return new ServiceError('not_authenticated', 'the code is wrong or was used before', {
    reason: 'wrong_code',
    remedy: 'Each code works once. Wait for the next code of your authenticator, and try again.',
  });
}

/**
 * Consumes a step-up, in the transaction of the action itself.
 *
 * @throws ServiceError `step_up_required` with the reason `missing`, `unknown`,
 * `other_administrator`, `other_action`, `other_target`, `used` or `expired`.
 */
export async function consumeStepUp(
  tx: Db,
  now: number,
  administratorId: string,
  token: string | undefined,
  action: StepUpAction,
  target: string,
): Promise<void> {
  if (token === undefined) throw stepUpRequired('missing', 'this action requires a step-up');
  const token_hash = hashSecret(token);
  const grant = await tx
    .selectFrom('step_ups')
    .selectAll()
    .where('token_hash', '=', token_hash)
    .executeTakeFirst();
  if (grant === undefined) throw stepUpRequired('unknown', 'the step-up is unknown');
  if (grant.administrator_id !== administratorId) {
    throw stepUpRequired('other_administrator', 'the step-up belongs to another administrator');
  }
  if (grant.action !== action)
    throw stepUpRequired('other_action', 'the step-up is for another action');
  if (grant.target !== target)
    throw stepUpRequired('other_target', 'the step-up is for another target');
  if (grant.used_at !== null) throw stepUpRequired('used', 'the step-up was used before');
  if (grant.expires_at <= now) throw stepUpRequired('expired', 'the step-up has expired');
  await tx
    .updateTable('step_ups')
    .set({ used_at: now })
    .where('token_hash', '=', token_hash)
    .execute();
}

function stepUpRequired(reason: string, message: string): ServiceError {
  return new ServiceError('step_up_required', message, {
    reason,
    remedy: 'Get a step-up for this action and target with POST /identity/step-ups.',
  });
}
