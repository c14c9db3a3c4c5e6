import type {
  AuthenticationResponseJSON,
  PublicKeyCredentialCreationOptionsJSON,
  RegistrationResponseJSON,
} from '@simplewebauthn/server';
import { v7 as uuidv7 } from 'uuid';
import { ServiceError } from '../base/errors.ts';
import { readPage, type Page, type PageRequest } from '../storage/paging.ts';
import type { Db, PasskeysTable } from '../storage/tables.ts';
import { appendAudit } from './audit.ts';
import { refuseInvalid, textProblems } from './checks.ts';
import type { Identity } from './context.ts';
import { rememberNetwork } from './failed-tries.ts';
import {
  checkPasskey,
  credentialOf,
  newChallenge,
  useChallenge,
  usePasskey,
} from './passkey-proof.ts';
import { openSession, type Browser } from './sessions.ts';
import { consumeStepUp } from './step-up.ts';
import { checkCaller, type Caller } from './tokens.ts';

type Parts = Pick<Identity, 'storage' | 'clock'>;

/** A passkey without its key. Times are milliseconds since the Unix epoch. */
export type PasskeyState = Pick<
  PasskeysTable,
  'passkey_id' | 'administrator_id' | 'site' | 'name' | 'created_at' | 'last_used_at'
>;

/** COSE: Ed25519, P-256, RSA. To look for more, the library warns that Node is trying them out. */
const ALGORITHMS = [-8, -7, -257];

/** More than anybody has. */
const MOST_PASSKEYS = 20;

/**
 * What a browser needs to make a passkey for the caller. It uses up the step-up for
 * `identity.passkey.add`: whoever only holds a session may not make himself a way in that lasts.
 *
 * @param site the host of which the page is, and for which the passkey will be good.
 * @throws ServiceError `step_up_required`; `conflict` when there are too many.
 */
export async function addPasskeyOptions(
  identity: Parts,
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
    throw new ServiceError('conflict', `there are ${MOST_PASSKEYS} passkeys already`, {
      remedy: 'Delete one that you do not use.',
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
 * Adds the passkey that a browser made of `addPasskeyOptions`.
 *
 * @param origins under which the server is known.
 * @throws ServiceError `invalid_request`; `not_authenticated` with the reason `challenge_expired`;
 * `conflict` for a passkey that is known already.
 */
export async function addPasskey(
  identity: Parts,
  caller: Caller,
  { name, response }: { readonly name: string; readonly response: RegistrationResponseJSON },
  site: string,
  origins: readonly string[],
): Promise<PasskeyState> {
  refuseInvalid(textProblems('/name', name));
  const { verifyRegistrationResponse } = await import('@simplewebauthn/server');
  const { storage, clock } = identity;
  const { administrator_id } = caller;
  const challenge = await useChallenge(identity, response.response.clientDataJSON, {
    purpose: 'add',
    administrator_id,
  });
  let made: Awaited<ReturnType<typeof verifyRegistrationResponse>>['registrationInfo'];
  try {
    await refuseCertificates(response.response.attestationObject);
    const verified = await verifyRegistrationResponse({
      response,
      expectedChallenge: challenge,
      expectedOrigin: [...origins],
      expectedRPID: site,
      requireUserVerification: true,
      supportedAlgorithmIDs: ALGORITHMS,
    });
    made = verified.registrationInfo;
  } catch (error) {
    throw error instanceof ServiceError ? error : notAPasskey(error);
  }
  if (made === undefined) throw notAPasskey();
  const { credential } = made;
  return storage.write(async (tx) => {
    const now = clock();
    await checkCaller(tx, now, caller);
    const known = await tx
      .selectFrom('passkeys')
      .select('passkey_id')
      .where('credential_id', '=', credential.id)
      .executeTakeFirst();
    if (known) throw new ServiceError('conflict', 'this passkey is known already');
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

/**
 * None were asked for. To check some, the library asks for lists of what was revoked, at whatever
 * address the certificates themselves name.
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
  return new ServiceError('invalid_request', 'what the browser sent is no passkey for here', {
    cause,
  });
}

/**
 * Signs in with a passkey, which stands for password and code. It shares no limit with them: no
 * number of wrong passwords keeps its owner out.
 *
 * @param network of the client, for `rememberNetwork`.
 * @returns what the cookie is to have; it is kept nowhere.
 * @throws ServiceError as `checkPasskey`
 */
export async function signInWithPasskey(
  identity: Parts,
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
    if (disabled_at !== null) {
      throw new ServiceError('not_authenticated', 'its owner is disabled', {
        reason: 'administrator_disabled',
      });
    }
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

/** The caller's own, the oldest first. */
export async function listPasskeys(
  db: Db,
  { administrator_id }: Caller,
  request: PageRequest,
): Promise<Page<PasskeyState>> {
  return readPage(
    ['passkeys', administrator_id],
    request,
    ({ passkey_id }) => passkey_id,
    (after = '', limit) =>
      selectPasskeys(db, administrator_id)
        .where('passkey_id', '>', after)
        .orderBy('passkey_id')
        .limit(limit)
        .execute(),
  );
}

/** @throws ServiceError `not_found` for one that is not the caller's; `invalid_request` */
export async function renamePasskey(
  { storage, clock }: Parts,
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
 * Deletes a passkey of the caller's for good, and uses up the step-up for `identity.passkey.delete`.
 * @throws ServiceError `not_found`, `step_up_required`
 */
export async function deletePasskey(
  { storage, clock }: Parts,
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

/** @throws ServiceError `not_found` */
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
