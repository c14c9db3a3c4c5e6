import { isIP } from 'node:net';
import type {
  AuthenticationResponseJSON,
  PublicKeyCredentialRequestOptionsJSON,
  WebAuthnCredential,
} from '@simplewebauthn/server';
import { ServiceError } from '../base/errors.ts';
import type { ChallengesTable, Db, PasskeysTable } from '../storage/tables.ts';
import type { IdentityStore } from './context.ts';
import { hashSecret, newSecret } from './secrets.ts';

export type PasskeyUse =
  | { readonly purpose: 'sign_in' }
  | { readonly purpose: 'add'; readonly administrator_id: string }
  | {
      readonly purpose: 'step_up';
      readonly administrator_id: string;
      readonly action: string;
      readonly target: string;
    };

/** A verified signature, to be passed to `usePasskey`. */
export interface PasskeyProof {
  readonly passkey_id: string;
  readonly administrator_id: string;
  /** Signature counter of the passkey before this signature. */
  readonly former: number;
  readonly counter: number;
}

const CHALLENGE_MS = 5 * 60_000;

/** Returns the relying party id of an origin; undefined for IP addresses, which cannot have passkeys. */
export function siteOf(origin: string): string | undefined {
  const { hostname } = new URL(origin);
  return isIP(hostname.replaceAll(/[[\]]/g, '')) === 0 ? hostname : undefined;
}

/** Returns the options for `navigator.credentials.get`. @param site host of the page. */
export async function passkeyOptions(
  identity: IdentityStore,
  site: string,
  use: PasskeyUse,
): Promise<PublicKeyCredentialRequestOptionsJSON> {
  const { generateAuthenticationOptions } = await import('@simplewebauthn/server');
  const own =
    'administrator_id' in use
      ? await identity.storage.read
          .selectFrom('passkeys')
          .select(['credential_id', 'transports'])
          .where('administrator_id', '=', use.administrator_id)
          .execute()
      : [];
  return generateAuthenticationOptions({
    rpID: site,
    challenge: Buffer.from(await newChallenge(identity, use), 'base64url'),
    allowCredentials: own.map(credentialOf),
    // The passkey replaces both factors, so it must verify the user.
    userVerification: 'required',
    timeout: CHALLENGE_MS,
  });
}

export function credentialOf(row: Pick<PasskeysTable, 'credential_id' | 'transports'>): {
  readonly id: string;
  readonly transports: string[];
} {
  return { id: row.credential_id, transports: JSON.parse(row.transports) as string[] };
}

/** Returns a challenge in base64url, valid once within five minutes. */
export async function newChallenge(
  { storage, clock }: IdentityStore,
  use: PasskeyUse,
): Promise<string> {
  const challenge = newSecret();
  const row: ChallengesTable = {
    administrator_id: null,
    action: null,
    target: null,
    ...use,
    challenge_hash: hashSecret(challenge),
    expires_at: clock() + CHALLENGE_MS,
  };
  await storage.write((tx) => tx.insertInto('challenges').values(row).execute());
  return challenge;
}

/**
 * Deletes and returns the signed challenge, even if the rest of the response is invalid.
 * @throws ServiceError `not_authenticated`, reason `challenge_expired`, also for a challenge that was
 * used or has another purpose.
 */
export async function useChallenge(
  { storage, clock }: IdentityStore,
  clientDataJSON: string,
  use: PasskeyUse,
): Promise<string> {
  const challenge = challengeIn(clientDataJSON);
  const challenge_hash = hashSecret(challenge);
  const row = await storage.write(async (tx) => {
    const found = await tx
      .selectFrom('challenges')
      .selectAll()
      .where('challenge_hash', '=', challenge_hash)
      .executeTakeFirst();
    await tx.deleteFrom('challenges').where('challenge_hash', '=', challenge_hash).execute();
    return found;
  });
  const { purpose, administrator_id, action, target } = {
    administrator_id: null,
    action: null,
    target: null,
    ...use,
  };
  if (
    row === undefined ||
    row.expires_at <= clock() ||
    row.purpose !== purpose ||
    row.administrator_id !== administrator_id ||
    row.action !== action ||
    row.target !== target
  ) {
    throw new ServiceError(
      'not_authenticated',
      'the challenge that the passkey signed has expired',
      {
        reason: 'challenge_expired',
        remedy: 'Try again; each challenge is valid once, for five minutes and one action.',
      },
    );
  }
  return challenge;
}

function challengeIn(clientDataJSON: string): string {
  try {
    const data = JSON.parse(Buffer.from(clientDataJSON, 'base64url').toString()) as {
      readonly challenge?: unknown;
    };
    return typeof data.challenge === 'string' ? data.challenge : '';
  } catch {
    return '';
  }
}

/**
 * Verifies the response of a passkey to a challenge.
 *
 * @param origins public origins of the server.
 * @throws ServiceError `not_authenticated` with the reason `wrong_passkey` or `challenge_expired`.
 */
export async function checkPasskey(
  identity: IdentityStore,
  response: AuthenticationResponseJSON,
  use: PasskeyUse,
  origins: readonly string[],
): Promise<PasskeyProof> {
  const { verifyAuthenticationResponse } = await import('@simplewebauthn/server');
  const challenge = await useChallenge(identity, response.response.clientDataJSON, use);
  const row = await identity.storage.read
    .selectFrom('passkeys')
    .selectAll()
    .where('credential_id', '=', response.id)
    .executeTakeFirst();
  const isOwn = !('administrator_id' in use) || row?.administrator_id === use.administrator_id;
  if (row === undefined || !isOwn) throw wrongPasskey();
  const { passkey_id, administrator_id, counter: former } = row;
  const credential: WebAuthnCredential = {
    id: row.credential_id,
    publicKey: new Uint8Array(Buffer.from(row.public_key, 'base64url')),
    counter: former,
  };
  try {
    const { verified, authenticationInfo } = await verifyAuthenticationResponse({
      response,
      expectedChallenge: challenge,
      expectedOrigin: [...origins],
      expectedRPID: row.site,
      credential,
      requireUserVerification: true,
    });
    if (!verified) throw wrongPasskey();
    return { passkey_id, administrator_id, former, counter: authenticationInfo.newCounter };
  } catch (error) {
    throw error instanceof ServiceError ? error : wrongPasskey(error);
  }
}

/**
 * Records the use of a passkey, in the transaction of the action that it confirms.
 * @throws ServiceError `not_authenticated` if the passkey was used or deleted in the meantime.
 */
export async function usePasskey(
  tx: Db,
  now: number,
  { passkey_id, former, counter }: PasskeyProof,
): Promise<void> {
  const { numUpdatedRows } = await tx
    .updateTable('passkeys')
    .set({ counter, last_used_at: now })
    .where('passkey_id', '=', passkey_id)
    .where('counter', '=', former)
    .executeTakeFirstOrThrow();
  if (numUpdatedRows !== 1n) throw wrongPasskey();
}

function wrongPasskey(cause?: unknown): ServiceError {
  return new ServiceError(
    'not_authenticated',
    'this passkey does not belong to your account on this site',
    {
      reason: 'wrong_passkey',
      remedy: 'Use another passkey, or a code of the authenticator app.',
      cause,
    },
  );
}

export async function purgeChallenges(tx: Db, now: number): Promise<void> {
  await tx.deleteFrom('challenges').where('expires_at', '<=', now).execute();
}
