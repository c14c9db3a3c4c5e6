import { ServiceError } from '../base/errors.ts';
import { formatCountOf } from '../base/format.ts';
import type { PublicKey } from '../lease/keys.ts';
import { CLOCK_TOLERANCE_SECONDS } from '../lease/status.ts';
import { formatTime } from '../lease/time.ts';
import { prepareSharedRead } from '../storage/share-query.ts';
import type { Db, PendingSigningKeysTable, SigningKeysTable } from '../storage/tables.ts';
import { appendAudit, type Actor } from './audit.ts';
import type { Identity, IdentityStore } from './context.ts';
import { unavailable, type Signer } from './signing-key.ts';
import { activateKey, isVouchedFor, SIGN_COMMAND, trustState } from './published-trust.ts';

/** Times are milliseconds since the Unix epoch. */
export interface KeyState {
  readonly public_key_id: string;
  readonly x: string;
  /**
   * `active`: signs leases. `retiring`: signs only on servers that have not been restarted yet; active
   * and retiring keys are published. `retired`: no longer trusted. `pending`: waits until the signed
   * keyset contains the key.
   */
  readonly status: SigningKeysTable['status'] | 'pending';
  /** For a pending key, the time at which a server was first started with it. */
  readonly activated_at: number;
  readonly retiring_at: number | null;
  readonly retired_at: number | null;
  /** Count of leases signed by the key that may still work. */
  readonly outstanding_leases: number;
  /** Earliest time at which the key can be retired; null unless it is retiring. */
  readonly retirable_at: number | null;
  /** Whether the signed keyset contains the key; null if the issuer has no trust root. */
  readonly in_keyset: boolean | null;
}

/**
 * Activates the signer's key; the previous key begins to retire. If the issuer has a trust root whose
 * keyset lacks the key, the key stays pending and `usableSigner` refuses it.
 *
 * @returns the signer, or an error for a retired key.
 */
export async function registerSigner(
  { storage, clock }: IdentityStore,
  signer: Signer,
): Promise<Signer | ServiceError> {
  const { publicKeyId, x } = signer;
  return storage.write(async (tx) => {
    const now = clock();
    const known = await findKey(tx, publicKeyId);
    if (known?.status === 'active') return signer;
    if (known?.status === 'retired') return retiredKey(publicKeyId);
    if (await isVouchedFor(tx, publicKeyId))
      await activateKey(tx, now, { public_key_id: publicKeyId, x });
    else await addPending(tx, now, { public_key_id: publicKeyId, x, seen_at: now });
    return signer;
  });
}

async function addPending(tx: Db, now: number, key: PendingSigningKeysTable): Promise<void> {
  if (await isPending(tx, key.public_key_id)) return;
  await appendAudit(tx, now, {
    actor: 'server',
    action: 'identity.key.pending',
    target: `key:${key.public_key_id}`,
  });
  await tx.insertInto('pending_signing_keys').values(key).execute();
}

async function isPending(db: Db, id: string): Promise<boolean> {
  const row = await db
    .selectFrom('pending_signing_keys')
    .select('public_key_id')
    .where('public_key_id', '=', id)
    .executeTakeFirst();
  return row !== undefined;
}

/**
 * Returns the signer if verifiers trust its signatures.
 * @throws ServiceError `license_lease_unavailable`
 */
export async function usableSigner(tx: Db, signer: Identity['signer']): Promise<Signer> {
  if (signer instanceof ServiceError) {
    // The detail is omitted because customers see this error, and it may name paths of the server.
    throw new ServiceError('license_lease_unavailable', 'this server has no usable signing key', {
      ...(signer.reason !== undefined && { reason: signer.reason }),
      remedy: 'See the error about the key that the server logged when it started.',
    });
  }
  const key = await findKey(tx, signer.publicKeyId);
  if (key?.status === 'active') return signer;
  if (await isPending(tx, signer.publicKeyId)) throw unsignedKey(signer.publicKeyId);
  // Another server may have retired the key while this one was running.
  if (key === undefined || key.status === 'retired') throw retiredKey(signer.publicKeyId);
  // A later keyset may have withdrawn the key while this server was running.
  if (!(await isVouchedFor(tx, signer.publicKeyId))) throw unsignedKey(signer.publicKeyId);
  return signer;
}

function unsignedKey(id: string): ServiceError {
  const message = `the signed keyset does not contain the key ${id}, so verifiers would refuse its leases`;
  return new ServiceError('license_lease_unavailable', message, {
    reason: 'unsigned_key',
    remedy: `Run \`${SIGN_COMMAND}\` on the machine with the root key.`,
  });
}

function retiredKey(id: string): ServiceError {
  return unavailable('retired_key', `the key ${id} was retired and is no longer trusted`);
}

/** Returns the keys that verifiers trust, the active one first, in the format of `importKeyset`. */
export async function publishedKeys(db: Db): Promise<PublicKey[]> {
  const rows = await db
    .selectFrom('signing_keys')
    .selectAll()
    .where('status', '!=', 'retired')
    .orderBy('status')
    .orderBy('activated_at', 'desc')
    .execute();
  return rows.map(({ public_key_id: kid, x, status }) => ({
    kty: 'OKP',
    crv: 'Ed25519',
    x,
    kid,
    ...(status !== 'retired' && { status }),
  }));
}

export async function listKeys(db: Db, now: number): Promise<KeyState[]> {
  const rows = await db
    .selectFrom('signing_keys')
    .selectAll()
    .orderBy('activated_at', 'desc')
    .execute();
  const pending = await db
    .selectFrom('pending_signing_keys')
    .selectAll()
    .orderBy('seen_at', 'desc')
    .execute();
  const known = await Promise.all(rows.map((row) => keyState(db, row, now)));
  const isKnown = (id: string): boolean => rows.some((row) => row.public_key_id === id);
  return [
    ...pending.filter(({ public_key_id }) => !isKnown(public_key_id)).map(pendingState),
    ...known,
  ];
}

function pendingState({ public_key_id, x, seen_at }: PendingSigningKeysTable): KeyState {
  return {
    public_key_id,
    x,
    status: 'pending',
    activated_at: seen_at,
    retiring_at: null,
    retired_at: null,
    outstanding_leases: 0,
    retirable_at: null,
    in_keyset: false,
  };
}

async function keyState(db: Db, row: SigningKeysTable, now: number): Promise<KeyState> {
  const trust = await trustState(db);
  const { outstanding, last } = await db
    .selectFrom('license_leases')
    .select(({ fn }) => [
      fn.countAll<number>().as('outstanding'),
      fn.max('grace_ends_at').as('last'),
    ])
    .where('public_key_id', '=', row.public_key_id)
    // A verifier whose clock is late, within the tolerance, accepts the lease longer.
    .where('grace_ends_at', '>', now - CLOCK_TOLERANCE_SECONDS * 1000)
    .executeTakeFirstOrThrow();
  return {
    ...row,
    in_keyset: trust === undefined ? null : trust.key_ids.includes(row.public_key_id),
    outstanding_leases: outstanding,
    retirable_at:
      row.status !== 'retiring'
        ? null
        : last === null
          ? row.retiring_at
          : last + CLOCK_TOLERANCE_SECONDS * 1000,
  };
}

/**
 * Removes a key from the published keys for good.
 *
 * @throws ServiceError `not_found`; `key_in_use` while the key signs or a lease that it signed may
 * still work, with the time from which on it can be retired.
 */
export async function retireKey(
  { storage, clock }: Identity,
  actor: Actor,
  id: string,
): Promise<KeyState> {
  return storage.write(async (tx) => {
    const now = clock();
    const row = await findKey(tx, id);
    if (row === undefined) {
      throw new ServiceError('not_found', `there is no signing key ${id}`, {
        remedy: 'See `service-local identity keys list`.',
      });
    }
    if (row.status === 'retired') return keyState(tx, row, now);
    if (row.status === 'active') {
      throw new ServiceError('key_in_use', `the key ${id} is the active signing key`, {
        reason: 'active',
        remedy: 'Start the server with a new key first; this key then begins to retire.',
      });
    }
    const state = await keyState(tx, row, now);
    if (state.outstanding_leases > 0) {
      const date = formatTime(Math.ceil(state.retirable_at! / 1000) * 1000);
      throw new ServiceError(
        'key_in_use',
        `${formatCountOf(state.outstanding_leases, 'lease')} signed by the key ${id} may be in use until ${date}`,
        { reason: 'outstanding_leases', remedy: `Retire it after ${date}.` },
      );
    }
    await appendAudit(tx, now, {
      actor,
      action: 'admin.identity.key.retire',
      target: `key:${id}`,
    });
    const change = { status: 'retired', retired_at: now } as const;
    await tx.updateTable('signing_keys').set(change).where('public_key_id', '=', id).execute();
    return { ...state, ...change, retirable_at: null };
  });
}

async function findKey(db: Db, id: string): Promise<SigningKeysTable | undefined> {
  return selectKey(db, id);
}

const selectKey = prepareSharedRead('signing_keys.public_key_id', (db) =>
  db.selectFrom('signing_keys').selectAll('signing_keys'),
);

export async function activeKey(db: Db): Promise<SigningKeysTable | undefined> {
  return db
    .selectFrom('signing_keys')
    .selectAll()
    .where('status', '=', 'active')
    .executeTakeFirst();
}
