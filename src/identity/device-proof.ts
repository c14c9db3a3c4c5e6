import { createHmac, timingSafeEqual } from 'node:crypto';
import * as z from 'zod';
import { ServiceError } from '../base/errors.ts';
import { quote } from '../lease/json.ts';
import { publicKeyId } from '../lease/keys.ts';
import { bodyHash, PROOF_SECONDS, PROOF_TYPE } from '../base/proof-claims.ts';
import { prepareQuery } from '../storage/prepare-query.ts';
import { prepareSharedRead } from '../storage/share-query.ts';
import type { Storage } from '../storage/storage.ts';
import type { Db, DevicesTable } from '../storage/tables.ts';
import type { IdentityStore } from './context.ts';
import { isSignedBy, readDeviceJwt, THUMBPRINT, type JwtForm } from './device-jwt.ts';
import { newSecret } from './secrets.ts';

/** In characters. */
const MAX_LENGTH = 4096;

/** Maximum difference between the clocks of device and server. */
const CLOCK_TOLERANCE_MS = 60_000;

/** Lifetime of a nonce, which can be used in any number of proofs. */
const NONCE_MS = 5 * 60_000;

/**
 * Time for which a used `jti` is stored. A proof expires with its nonce, or after two minutes without
 * a nonce; the remaining time covers differing clocks of servers that share a database.
 */
const USED_PROOF_MS = 2 * NONCE_MS;

const NEW_PROOF = 'Sign a new proof for each request.';
const ENROLL = 'Enroll it with a new code: `service-local license enroll`.';
const NEW_KEY = `Move its device.key away. ${ENROLL}`;
const ADDRESS = 'Use the public URL of the server; see its setting server_public_url.';

const REFUSALS = {
  malformed: ['the proof is not a valid JWT', NEW_PROOF],
  unknown_device: ['no device with this key is enrolled', ENROLL],
  revoked_device: ['the device was revoked, or its key was replaced', NEW_KEY],
  bad_signature: [
    'the proof was changed, or another key signed it',
    'Sign the proof with the key that it names.',
  ],
  wrong_audience: ['the proof is for another server', ADDRESS],
  wrong_method: ['the proof is for another method', NEW_PROOF],
  wrong_url: ['the proof is for another URL', ADDRESS],
  body_changed: ['the proof is for another body', NEW_PROOF],
  lifetime: [`the proof is valid for more than ${PROOF_SECONDS} seconds`, NEW_PROOF],
  use_nonce: [
    'the clock of the device and that of the server differ by more than a minute',
    'Repeat the request with the nonce of this response in the proof, and set the clock.',
  ],
  unknown_nonce: [
    'the nonce is not for this device, or has expired',
    'Repeat the request with the nonce of this response in the proof.',
  ],
  replayed: ['the proof was used before', NEW_PROOF],
} as const satisfies Readonly<Record<string, readonly [message: string, remedy: string]>>;

export type ProofReason = keyof typeof REFUSALS;

/** A refused proof: ServiceError `invalid_device_proof` with one of `ProofReason`. */
export class ProofRefusal extends ServiceError {
  /** Nonce for the next proof, if the reason is `use_nonce` or `unknown_nonce`. */
  readonly nonce: string | undefined;

  constructor(reason: ProofReason, detail?: string, nonce?: string) {
    const [message, remedy] = REFUSALS[reason];
    super('invalid_device_proof', detail === undefined ? message : `${message}: ${detail}`, {
      reason,
      remedy,
    });
    this.name = 'ProofRefusal';
    this.nonce = nonce;
  }
}

export interface ProvenRequest {
  readonly method: string;
  /** Only the path is compared: the origin is chosen by the caller. */
  readonly url: string;
  readonly body: Uint8Array;
}

/** A verified proof. Only `useDeviceProof` finds out whether the proof was used before. */
export interface CheckedProof {
  readonly device: DevicesTable;
  readonly jti: string;
}

/**
 * Verifies the proof of an enrolled device. The caller then passes the result to `useDeviceProof` in
 * the transaction of the requested change.
 *
 * @param audiences public origins of this server.
 * @throws ProofRefusal
 */
export async function checkDeviceProof(
  { storage, clock }: IdentityStore,
  proof: string,
  request: ProvenRequest,
  audiences: readonly string[],
): Promise<CheckedProof> {
  const claims = readDeviceJwt(proof, PROOF);
  const device = await findDevice(storage.read, claims.sub);
  if (device === undefined) throw new ProofRefusal('unknown_device');
  await checkSignature(proof, device.x);
  if (device.revoked_at !== null) throw new ProofRefusal('revoked_device');
  checkRequest(claims, request, audiences);
  const now = clock();
  const { jti, nonce } = claims;
  if (nonce === undefined && isTimely(claims, now) && !(await areDeferred(storage.read, now))) {
    return { device, jti };
  }
  const secret = await nonceSecret(storage);
  if (nonce !== undefined && isGoodNonce(nonce, secret, claims.sub, now)) return { device, jti };
  const reason = nonce === undefined ? 'use_nonce' : 'unknown_nonce';
  throw new ProofRefusal(reason, undefined, nonceUntil(now + NONCE_MS, secret, claims.sub));
}

/**
 * Marks a verified proof as used, in the caller's transaction.
 *
 * @returns the current state of the device.
 * @throws ProofRefusal if the proof was used or the device revoked in the meantime.
 */
export async function useDeviceProof(
  tx: Db,
  now: number,
  { device: { device_id }, jti }: CheckedProof,
): Promise<DevicesTable> {
  const device = await findDevice(tx, device_id);
  if (device === undefined || device.revoked_at !== null) throw new ProofRefusal('revoked_device');
  const used = await tx
    .insertInto('used_proofs')
    .values({ device_id, jti, expires_at: now + USED_PROOF_MS })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst();
  if (used.numInsertedOrUpdatedRows === 0n) throw new ProofRefusal('replayed');
  return device;
}

/**
 * Checks that the client has the private part of a key that is not enrolled. Does not check the time
 * of the proof: the body must show that the request is not a repetition.
 *
 * @param x the public key, base64url.
 * @throws ProofRefusal
 */
export async function checkPossession(
  x: string,
  proof: string,
  request: ProvenRequest,
  audiences: readonly string[],
): Promise<void> {
  const claims = readDeviceJwt(proof, PROOF);
  if (claims.sub !== publicKeyId(x)) throw new ProofRefusal('bad_signature');
  await checkSignature(proof, x);
  checkRequest(claims, request, audiences);
}

export async function findDevice(db: Db, deviceId: string): Promise<DevicesTable | undefined> {
  return selectDevice(db, deviceId);
}

const selectDevice = prepareSharedRead('devices.device_id', (db) =>
  db.selectFrom('devices').selectAll('devices'),
);

const CLAIMS = z.object({
  iss: THUMBPRINT,
  sub: THUMBPRINT,
  aud: z.string(),
  iat: z.int(),
  exp: z.int().optional(),
  jti: z.uuid(),
  htm: z.string(),
  htu: z.string(),
  bh: z.string(),
  nonce: z.string().optional(),
});

type UncheckedClaims = z.infer<typeof CLAIMS>;

const PROOF: JwtForm<UncheckedClaims> = {
  typ: PROOF_TYPE,
  claims: CLAIMS,
  maxLength: MAX_LENGTH,
  malformed: (detail) => new ProofRefusal('malformed', detail),
};

async function checkSignature(proof: string, x: string): Promise<void> {
  if (!(await isSignedBy(proof, x))) throw new ProofRefusal('bad_signature');
}

function checkRequest(
  { aud, htm, htu, bh, iat, exp }: UncheckedClaims,
  { method, url, body }: ProvenRequest,
  audiences: readonly string[],
): void {
  const differ = (signed: string, actual: string): string => `${quote(signed)} is not ${actual}`;
  if (!audiences.includes(aud)) {
    throw new ProofRefusal('wrong_audience', differ(aud, audiences.join(' or ')));
  }
  if (htm !== method) throw new ProofRefusal('wrong_method', differ(htm, method));
  const target = aud + new URL(url, aud).pathname;
  if (htu !== target) throw new ProofRefusal('wrong_url', differ(htu, target));
  if (bh !== bodyHash(body)) throw new ProofRefusal('body_changed');
  if (exp === undefined || exp <= iat || exp > iat + PROOF_SECONDS) {
    throw new ProofRefusal('lifetime');
  }
}

/** Checks the times of a proof that passed `checkRequest`. */
function isTimely({ iat, exp }: UncheckedClaims, now: number): boolean {
  return Math.abs(now - iat * 1000) <= CLOCK_TOLERANCE_MS && now < exp! * 1000;
}

/**
 * A nonce shows that a proof is recent, whatever the clock of the device (RFC 9449 §8). It contains
 * its expiry and is valid for one device. Nonces are not stored, so a client that requests many of
 * them takes none from the device.
 */
function nonceUntil(end: number, secret: string, deviceId: string): string {
  const code = createHmac('sha256', secret).update(`${deviceId} ${end}`).digest('base64url');
  return `${end}.${code}`;
}

function isGoodNonce(nonce: string, secret: string, deviceId: string, now: number): boolean {
  const end = Number.parseInt(nonce, 10);
  const given = Buffer.from(nonce);
  const good = Buffer.from(nonceUntil(end, secret, deviceId));
  if (given.length !== good.length || !timingSafeEqual(given, good)) return false;
  // If the clock of the server was set back, the nonce must not outlive the stored `jti`.
  return now < end && end <= now + NONCE_MS + CLOCK_TOLERANCE_MS;
}

const NONCE_SECRET = 'nonce';
const NONCE_REQUIRED_UNTIL = 'nonce_required_until';

/**
 * Rejects proofs from before a restore, which the backup may not know as used: former nonces become
 * invalid, and proofs need a nonce until all earlier ones are too old.
 */
export async function deferProofs(tx: Db, now: number): Promise<void> {
  const names = [NONCE_SECRET, NONCE_REQUIRED_UNTIL];
  await tx.deleteFrom('server_secrets').where('name', 'in', names).execute();
  const value = String(now + CLOCK_TOLERANCE_MS + PROOF_SECONDS * 1000);
  await tx.insertInto('server_secrets').values({ name: NONCE_REQUIRED_UNTIL, value }).execute();
}

async function areDeferred(db: Db, now: number): Promise<boolean> {
  const [row] = await selectSecret(db, { name: NONCE_REQUIRED_UNTIL });
  return row !== undefined && now < Number(row.value);
}

const selectSecret = prepareQuery((db, { name }: { readonly name: string }) =>
  db.selectFrom('server_secrets').select('value').where('name', '=', name),
);

/** Shared by all servers on one database; created by the first server that needs it. */
async function nonceSecret(storage: Storage): Promise<string> {
  const find = (db: Db) =>
    db
      .selectFrom('server_secrets')
      .select('value')
      .where('name', '=', NONCE_SECRET)
      .executeTakeFirst();
  const made = await find(storage.read);
  if (made !== undefined) return made.value;
  return storage.write(async (tx) => {
    const value = newSecret();
    await tx
      .insertInto('server_secrets')
      .values({ name: NONCE_SECRET, value })
      .onConflict((conflict) => conflict.doNothing())
      .execute();
    return (await find(tx))!.value;
  });
}
