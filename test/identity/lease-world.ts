import { generateKeyPairSync, randomUUID, type KeyObject } from 'node:crypto';
import type { Identity, LeasePolicy } from '../../src/identity/context.ts';
import type { CheckedProof } from '../../src/identity/device-proof.ts';
import { publishedKeys, registerSigner } from '../../src/identity/signing-keys.ts';
import type { LeaseAnswer } from '../../src/identity/lease-record.ts';
import { renewLease, type Renewed } from '../../src/identity/renew-lease.ts';
import { revoke, REVOKE_ACTION, stepUpTarget, type Revoked } from '../../src/identity/revoke.ts';
import type { RevokeTarget } from '../../src/identity/revoke.ts';
import { hashSecret } from '../../src/identity/secrets.ts';
import { signerOf, type Signer } from '../../src/identity/signing-key.ts';
import { announceKey } from '../../src/identity/endorsement.ts';
import { SET_ROOT_ACTION } from '../../src/identity/published-trust.ts';
import type { Caller } from '../../src/identity/tokens.ts';
import type { LeaseClaims } from '../../src/lease/claims.ts';
import { importKeyset, publicKeyId } from '../../src/lease/keys.ts';
import { verifyLease } from '../../src/lease/verify.ts';
import type { Storage } from '../../src/storage/storage.ts';
import type { DevicesTable } from '../../src/storage/tables.ts';
import { newVendor } from './devices.ts';
import type { World } from './people.ts';

export const HOUR = 3_600_000;
export const DAY = 24 * HOUR;

export interface LeaseWorld extends World {
  readonly identity: Identity;
  readonly caller: Caller;
  /** The same service with other settings or another key. */
  readonly with: (change: {
    readonly policy?: Partial<LeasePolicy>;
    readonly signer?: Identity['signer'];
  }) => Identity;
  readonly enroll: (installation: string) => Promise<DevicesTable>;
  readonly succeed: (device: DevicesTable) => Promise<DevicesTable>;
}

export async function newLeaseWorld(kind: Storage['kind']): Promise<LeaseWorld> {
  const world = await newVendor(kind);
  const { storage } = world.identity;
  await storage.write(async (tx) => {
    const administrator = {
      administrator_id: 'root',
      name: 'root',
      password_hash: 'x',
      totp_secret: 'x',
      totp_last_step: 0,
      created_at: world.now,
      disabled_at: null,
    };
    await tx.insertInto('administrators').values(administrator).execute();
    const token = {
      token_id: 'token',
      administrator_id: 'root',
      label: 'test',
      secret_hash: 'x',
      scopes: '["license"]',
      created_at: world.now,
      expires_at: world.now * 2,
      revoked_at: null,
    };
    await tx.insertInto('api_tokens').values(token).execute();
    await tx.updateTable('plans').set({ entitlements: '["live_trading"]' }).execute();
    await tx.updateTable('contracts').set({ entitlements: '["kb_federation"]' }).execute();
  });
  const identity = { ...world.identity, signer: await newSigner(world.identity) };
  return Object.assign(world, {
    identity,
    caller: { administrator_id: 'root', token_id: 'token', scopes: new Set(['license'] as const) },
    with: ({ policy, signer = identity.signer }: Parameters<LeaseWorld['with']>[0]) => ({
      ...identity,
      policy: { ...identity.policy, ...policy },
      signer,
    }),
    enroll: (installation: string) => addDevice(identity, installation, null, world.now),
    succeed: ({ device_id, deployment_id }: DevicesTable) =>
      addDevice(identity, deployment_id, device_id, world.now),
  });
}

export async function newSigner(identity: Identity): Promise<Signer> {
  const { privateKey } = generateKeyPairSync('ed25519');
  const signer = signerOf(privateKey);
  await registerSigner(identity, signer);
  return signer;
}

async function addDevice(
  { storage }: Identity,
  deployment_id: string,
  replaces: string | null,
  now: number,
): Promise<DevicesTable> {
  const { publicKey } = generateKeyPairSync('ed25519');
  const x = publicKey.export({ format: 'jwk' }).x!;
  const device: DevicesTable = {
    device_id: publicKeyId(x),
    deployment_id,
    x,
    name: 'machine',
    enrolled_at: now,
    replaces,
    first_used_at: null,
    revoked_at: null,
    revoked_by: null,
    revoked_reason: null,
    machine_hash: null,
  };
  await storage.write((tx) => tx.insertInto('devices').values(device).execute());
  return device;
}

/** A verified, unused proof of the device. */
export function proofOf(device: DevicesTable): CheckedProof {
  return { device, jti: randomUUID() };
}

/** Renews as a device, and verifies the returned lease. */
export async function renew(
  identity: Identity,
  device: DevicesTable,
  lease?: unknown,
  renewal_id: string = randomUUID(),
): Promise<{
  readonly renewed: Renewed;
  readonly answer: LeaseAnswer;
  readonly claims: LeaseClaims;
}> {
  const request = { renewal_id, ...(lease !== undefined && { lease }) };
  const renewed = await renewLease(identity, proofOf(device), request);
  return { renewed, ...(await readAnswer(identity, renewed.body)) };
}

export async function readAnswer(
  { storage }: Identity,
  body: string,
): Promise<{ readonly answer: LeaseAnswer; readonly claims: LeaseClaims }> {
  const answer = JSON.parse(body) as LeaseAnswer;
  const keyset = importKeyset({ keys: await publishedKeys(storage.read) });
  if (!keyset.ok) throw new Error(keyset.detail);
  const verified = verifyLease(JSON.stringify(answer.lease), keyset.keys);
  if (!verified.ok) throw new Error(verified.detail);
  return { answer, claims: verified.claims };
}

/** Revokes with a new step-up. */
export async function revokeAs(
  { caller, now }: Pick<LeaseWorld, 'caller' | 'now'>,
  identity: Identity,
  target: RevokeTarget,
  confirm: string,
): Promise<Revoked> {
  const step_up_token = await stepUp(identity, now, stepUpTarget(target));
  return revoke(identity, caller, target, { reason: 'unpaid', confirm, step_up_token });
}

/** Announces the next signing key, and restarts the server with it. */
export async function announceNext(
  { caller, now }: Pick<LeaseWorld, 'caller' | 'now'>,
  identity: Identity,
): Promise<Signer> {
  const next = signerOf(generateKeyPairSync('ed25519').privateKey);
  const target = `key:${next.publicKeyId}`;
  const token = await stepUp(identity, now, target, SET_ROOT_ACTION);
  await announceKey(identity, caller, next.x, token);
  await registerSigner(identity, next);
  return next;
}

export async function stepUp(
  { storage }: Identity,
  now: number,
  target: string,
  action: string = REVOKE_ACTION,
): Promise<string> {
  const token = randomUUID();
  await storage.write((tx) =>
    tx
      .insertInto('step_ups')
      .values({
        token_hash: hashSecret(token),
        administrator_id: 'root',
        action,
        target,
        expires_at: now + 300_000,
        used_at: null,
      })
      .execute(),
  );
  return token;
}

export function rsaKey(): string {
  return pemOf(generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey);
}

export function ed25519Key(): string {
  return pemOf(generateKeyPairSync('ed25519').privateKey);
}

function pemOf(key: KeyObject): string {
  return key.export({ format: 'pem', type: 'pkcs8' });
}
