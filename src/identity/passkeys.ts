import type {
  AuthenticationResponseJSON,
  PublicKeyCredentialCreationOptionsJSON,
  RegistrationResponseJSON,
  WebAuthnCredential,
} from '@simplewebauthn/server';
import { v7 as uuidv7 } from 'uuid';
import { ServiceError } from '../base/errors.ts';
import { readRowsPage, type Page, type PageRequest } from '../storage/paging.ts';
import type { Db, PasskeysTable } from '../storage/tables.ts';
import { administratorDisabled } from './administrator-disabled.ts';
import { appendAudit } from './audit.ts';
import { refuseInvalid, textProblems } from './request-problems.ts';
import type { IdentityStore } from './context.ts';
import { rememberNetwork } from './failed-tries.ts';
import {
  checkPasskey,
  credentialOf,
  newChallenge,
  useChallenge,
  usePasskey,
} from './passkey-proof.ts';
import { openSession, type Browser } from './login-sessions.ts';
import { consumeStepUp } from './step-up.ts';
import { checkCaller, type Caller } from './tokens.ts';

/** A passkey without its key. Times are milliseconds since the Unix epoch. */
export type PasskeyState = Pick<
  PasskeysTable,
  'passkey_id' | 'administrator_id' | 'site' | 'name' | 'created_at' | 'last_used_at'
>;

/** COSE ids of Ed25519, P-256 and RSA. Node prints warnings for others, which are experimental. */
const ALGORITHMS = [-8, -7, -257];

const MOST_PASSKEYS = 20;

/**
 * Returns the options for `navigator.credentials.create`. Consumes the step-up for
 * `identity.passkey.add`, so that a stolen session is not enough to add a permanent credential.
 *
 * @param site host of the page, for which the passkey will be valid.
 * @throws ServiceError `step_up_required`; `conflict` if the caller has too many passkeys.
 */
export async function addPasskeyOptions(
  identity: IdentityStore,
  caller: Caller,
  site: string,
  stepUpToken: string | undefined,
): Promise<PublicKeyCredentialCreationOptionsJSON> {
  const { generateRegistrationOptions } = await import('@simplewebauthn/server');
  const { storage, clock } = identity;
  const { administrator_id } = caller;
  const { name, own } = await storage.write(async (tx) => {
    const now = clock();
    await checkCaller(tx, now, caller);
    const target = `administrator:${administrator_id}`;
    await consumeStepUp(tx, now, administrator_id, stepUpToken, 'identity.passkey.add', target);
    const passkeys = await tx
      .selectFrom('passkeys')
      .select(['credential_id', 'transports'])
      .where('administrator_id', '=', administrator_id)
      .execute();
    const administrator = await tx
      .selectFrom('administrators')
      .select('name')
      .where('administrator_id', '=', administrator_id)
      .executeTakeFirstOrThrow();
    return { name: administrator.name, own: passkeys };
  });
  if (own.length >= MOST_PASSKEYS) {
    throw new ServiceError('conflict', `you already have ${MOST_PASSKEYS} passkeys`, {
      remedy: 'Delete one with `service-local identity passkeys delete`.',
    });
  }
  return generateRegistrationOptions({
    rpName: 'service-local',
    rpID: site,
    userName: name,
    userID: new Uint8Array(Buffer.from(administrator_id)),
    challenge: Buffer.from(
      await newChallenge(identity, { purpose: 'add', administrator_id }),
      'base64url',
    ),
    attestationType: 'none',
    supportedAlgorithmIDs: ALGORITHMS,
    excludeCredentials: own.map(credentialOf),
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
  });
}

/**
 * Adds the passkey that a browser created with `addPasskeyOptions`.
 *
 * @param origins public origins of the server.
 * @throws ServiceError `invalid_request`; `not_authenticated` with the reason `challenge_expired`;
 * `conflict` for a passkey that is already registered.
 */
export async function addPasskey(
  identity: IdentityStore,
  caller: Caller,
  { name, response }: { readonly name: string; readonly response: RegistrationResponseJSON },
  site: string,
  origins: readonly string[],
): Promise<PasskeyState> {
  refuseInvalid(textProblems('/name', name));
  const { storage, clock } = identity;
  const { administrator_id } = caller;
  const challenge = await useChallenge(identity, response.response.clientDataJSON, {
    purpose: 'add',
    administrator_id,
  });
  const credential = await verifyNewPasskey(response, challenge, site, origins);
  return storage.write(async (tx) => {
    const now = clock();
    await checkCaller(tx, now, caller);
    const known = await tx
      .selectFrom('passkeys')
      .select('passkey_id')
      .where('credential_id', '=', credential.id)
      .executeTakeFirst();
    if (known) {
      throw new ServiceError('conflict', 'this passkey is already registered', {
        remedy: 'Sign in with it, or use another authenticator.',
      });
    }
    const passkey_id = uuidv7({ msecs: now });
    await appendAudit(tx, now, {
      actor: `administrator:${administrator_id}`,
      action: 'admin.identity.passkey.add',
      target: `passkey:${passkey_id}`,
      details: { administrator_id, name, site },
    });
    const state: PasskeyState = {
      passkey_id,
      administrator_id,
      site,
      name,
      created_at: now,
      last_used_at: null,
    };
    await tx
      .insertInto('passkeys')
      .values({
        ...state,
        credential_id: credential.id,
        public_key: Buffer.from(credential.publicKey).toString('base64url'),
        counter: credential.counter,
        transports: JSON.stringify(credential.transports ?? []),
      })
      .execute();
    return state;
  });
}

/** @throws ServiceError `invalid_request` */
async function verifyNewPasskey(
  response: RegistrationResponseJSON,
  challenge: string,
  site: string,
  origins: readonly string[],
): Promise<WebAuthnCredential> {
  const { verifyRegistrationResponse } = await import('@simplewebauthn/server');
  try {
    await refuseCertificates(response.response.attestationObject);
    const { registrationInfo } = await verifyRegistrationResponse({
      response,
      expectedChallenge: challenge,
      expectedOrigin: [...origins],
      expectedRPID: site,
      requireUserVerification: true,
      supportedAlgorithmIDs: ALGORITHMS,
    });
    if (registrationInfo === undefined) throw notAPasskey();
    return registrationInfo.credential;
  } catch (error) {
    throw error instanceof ServiceError ? error : notAPasskey(error);
  }
}

/**
 * Rejects attestation certificates, which were not requested. To check them, the library would fetch
 * revocation lists from addresses that the certificates name.
 */
async function refuseCertificates(attestationObject: string): Promise<void> {
  const { decodeAttestationObject } = await import('@simplewebauthn/server/helpers');
  const decoded = decodeAttestationObject(
    new Uint8Array(Buffer.from(attestationObject, 'base64url')),
  );
  const isPlain = decoded.get('fmt') === 'none' || decoded.get('fmt') === 'packed';
  if (!isPlain || decoded.get('attStmt').get('x5c') !== undefined) throw notAPasskey();
}

function notAPasskey(cause?: unknown): ServiceError {
  return new ServiceError(
    'invalid_request',
    'the response of the browser is not a valid passkey for this site',
    { remedy: 'Try again, or use another browser or authenticator.', cause },
  );
}

/**
 * Signs in with a passkey instead of password and code. The limit on failed logins does not apply, so
 * wrong passwords cannot lock out the owner of a passkey.
 *
 * @param network of the client, for `rememberNetwork`.
 * @returns the secret for the cookie, which is stored only as a hash.
 * @throws ServiceError as `checkPasskey`
 */
export async function signInWithPasskey(
  identity: IdentityStore,
  response: AuthenticationResponseJSON,
  browser: Browser,
  origins: readonly string[],
  network = '',
): Promise<string> {
  const { storage, clock } = identity;
  const proof = await checkPasskey(identity, response, { purpose: 'sign_in' }, origins);
  const { administrator_id, passkey_id } = proof;
  return storage.write(async (tx) => {
    const now = clock();
    const { disabled_at } = await tx
      .selectFrom('administrators')
      .select('disabled_at')
      .where('administrator_id', '=', administrator_id)
      .executeTakeFirstOrThrow();
    if (disabled_at !== null) throw administratorDisabled();
    await appendAudit(tx, now, {
      actor: `administrator:${administrator_id}`,
      action: 'admin.identity.administrator.login',
      target: `administrator:${administrator_id}`,
      details: { second_factor: 'passkey', passkey_id },
    });
    await usePasskey(tx, now, proof);
    await rememberNetwork(tx, now, administrator_id, network);
    return openSession(tx, now, administrator_id, 'passkey', browser);
  });
}

/** Lists the caller's own passkeys, oldest first. */
export async function listPasskeys(
  db: Db,
  { administrator_id }: Caller,
  request: PageRequest,
): Promise<Page<PasskeyState>> {
  const query = selectPasskeys(db, administrator_id);
  return readRowsPage(['passkeys', administrator_id], request, query, 'passkey_id');
}

/** @throws ServiceError `not_found` for a passkey of another administrator; `invalid_request` */
export async function renamePasskey(
  { storage, clock }: IdentityStore,
  caller: Caller,
  passkeyId: string,
  name: string,
): Promise<PasskeyState> {
  refuseInvalid(textProblems('/name', name));
  return storage.write(async (tx) => {
    const now = clock();
    await checkCaller(tx, now, caller);
    const passkey = await getPasskey(tx, caller, passkeyId);
    await appendAudit(tx, now, {
      actor: `administrator:${caller.administrator_id}`,
      action: 'admin.identity.passkey.rename',
      target: `passkey:${passkeyId}`,
      details: { before: passkey.name, name },
    });
    await tx.updateTable('passkeys').set({ name }).where('passkey_id', '=', passkeyId).execute();
    return { ...passkey, name };
  });
}

/**
 * Deletes a passkey of the caller. Consumes the step-up for `identity.passkey.delete`.
 * @throws ServiceError `not_found`, `step_up_required`
 */
export async function deletePasskey(
  { storage, clock }: IdentityStore,
  caller: Caller,
  passkeyId: string,
  stepUpToken: string | undefined,
): Promise<PasskeyState> {
  return storage.write(async (tx) => {
    const now = clock();
    await checkCaller(tx, now, caller);
    const { administrator_id } = caller;
    const passkey = await getPasskey(tx, caller, passkeyId);
    const target = `passkey:${passkeyId}`;
    await consumeStepUp(tx, now, administrator_id, stepUpToken, 'identity.passkey.delete', target);
    await appendAudit(tx, now, {
      actor: `administrator:${administrator_id}`,
      action: 'admin.identity.passkey.delete',
      target,
      details: { name: passkey.name, site: passkey.site },
    });
    await tx.deleteFrom('passkeys').where('passkey_id', '=', passkeyId).execute();
    return passkey;
  });
}

async function getPasskey(
  db: Db,
  { administrator_id }: Caller,
  passkeyId: string,
): Promise<PasskeyState> {
  const row = await selectPasskeys(db, administrator_id)
    .where('passkey_id', '=', passkeyId)
    .executeTakeFirst();
  if (row !== undefined) return row;
  throw new ServiceError('not_found', `you have no passkey ${passkeyId}`, {
    remedy: 'See `service-local identity passkeys list`.',
  });
}

function selectPasskeys(db: Db, administratorId: string) {
  return db
    .selectFrom('passkeys')
    .select(['passkey_id', 'administrator_id', 'site', 'name', 'created_at', 'last_used_at'])
    .where('administrator_id', '=', administratorId);
}
