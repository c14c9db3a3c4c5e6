/**
 * Without a trust root, the current signing key endorses the next one: while the server still has
 * the current key, it signs a keyset with both. Machines that trust the current key then accept the
 * next one.
 */
import { ServiceError } from '../base/errors.ts';
import { decodeBase64 } from '../lease/base64.ts';
import { importKeyset, publicKeyId } from '../lease/keys.ts';
import type { KeysetClaims } from '../lease/root.ts';
import type { Db, LicenseEndorsementTable } from '../storage/tables.ts';
import { appendAudit } from './audit.ts';
import type { Identity } from './context.ts';
import { publishedKeys, usableSigner } from './signing-keys.ts';
import { addSignatures, lifetime, signKeyset, type SignedDocument } from './root-documents.ts';
import type { Signer } from './signing-key.ts';
import { consumeStepUp } from './step-up.ts';
import { checkCaller, callerDetails, type Caller } from './tokens.ts';
import { selectTrust, SET_ROOT_ACTION } from './published-trust.ts';

const KEYSET_SECONDS = 365 * 86_400;

export interface Announced {
  readonly public_key_id: string;
  readonly keyset_version: number;
  /** Id of the key that signed it. */
  readonly endorsed_by: string;
}

/**
 * Makes the current signing key endorse the key with which the server will be started next.
 *
 * @param x the public key, base64url.
 * @throws ServiceError `step_up_required` without one for `identity.root.set` and `key:ID`;
 *   `conflict` if a trust root exists or the key was retired; `invalid_request`;
 *   `license_lease_unavailable`.
 */
export async function announceKey(
  { storage, clock, policy, signer }: Identity,
  caller: Caller,
  x: string,
  step_up_token: string | undefined,
): Promise<Announced> {
  const id = publicKeyId(x);
  const imported = importKeyset({ keys: [{ kty: 'OKP', crv: 'Ed25519', x, kid: id }] });
  if (!imported.ok) {
    throw new ServiceError('invalid_request', imported.detail, {
      problems: [{ code: imported.reason, pointer: '/x', message: imported.detail }],
      remedy: 'Send the public key that `service-local identity keys generate` printed.',
    });
  }
  return storage.write(async (tx) => {
    const now = clock();
    await checkCaller(tx, now, caller);
    const { administrator_id } = caller;
    await consumeStepUp(tx, now, administrator_id, step_up_token, SET_ROOT_ACTION, `key:${id}`);
    if ((await selectTrust(tx)) !== undefined) throw rootExists(x);
    const usable = await usableSigner(tx, signer);
    await refuseRetired(tx, id);
    const former = await selectEndorsement(tx);
    const known = await publishedKeys(tx);
    const keys = known.map(({ kty, crv, x: own, kid }) => ({ kty, crv, x: own, kid }));
    const claims: KeysetClaims = {
      version: (former?.version ?? 0) + 1,
      issuer: policy.issuer,
      ...lifetime(now, KEYSET_SECONDS),
      keys: keys.some(({ kid }) => kid === id)
        ? keys
        : [...keys, { kty: 'OKP', crv: 'Ed25519', x, kid: id }],
      retired: [],
    };
    await appendAudit(tx, now, {
      actor: `administrator:${administrator_id}`,
      action: 'admin.identity.key.announce',
      target: `key:${id}`,
      details: {
        endorsed_by: usable.publicKeyId,
        version: claims.version,
        ...callerDetails(caller),
      },
    });
    await replace(tx, { version: claims.version, keyset: signKeyset(claims, [usable]) });
    const endorsed_by = usable.publicKeyId;
    return { public_key_id: id, keyset_version: claims.version, endorsed_by };
  });
}

/** Adds the signature of a key that was announced, once the server signs with it. */
export async function countersign(tx: Db, signer: Signer): Promise<void> {
  const row = await selectEndorsement(tx);
  if (row === undefined) return;
  const { version } = row;
  const keyset = JSON.parse(row.keyset) as SignedDocument;
  if (!keysOf(keyset).includes(signer.publicKeyId)) return;
  await replace(tx, { version, keyset: addSignatures(keyset, [signer]) });
}

/**
 * Keyset signed by a signing key; undefined if machines must no longer use it because it lacks a
 * published key or contains a retired one.
 */
export async function publishedEndorsement(db: Db): Promise<SignedDocument | undefined> {
  const row = await selectEndorsement(db);
  if (row === undefined) return undefined;
  const keyset = JSON.parse(row.keyset) as SignedDocument;
  const ids = keysOf(keyset);
  const keys = await db.selectFrom('signing_keys').select(['public_key_id', 'status']).execute();
  const isCurrent = keys.every(
    ({ public_key_id: id, status }) => ids.includes(id) === (status !== 'retired'),
  );
  return isCurrent ? keyset : undefined;
}

async function selectEndorsement(db: Db): Promise<LicenseEndorsementTable | undefined> {
  return db.selectFrom('license_endorsement').selectAll().executeTakeFirst();
}

async function replace(
  tx: Db,
  { version, keyset }: { readonly version: number; readonly keyset: SignedDocument },
): Promise<void> {
  await tx.deleteFrom('license_endorsement').execute();
  const row = { id: 1, version, keyset: JSON.stringify(keyset) };
  await tx.insertInto('license_endorsement').values(row).execute();
}

function keysOf({ payload }: SignedDocument): string[] {
  const text = new TextDecoder().decode(decodeBase64(payload));
  return (JSON.parse(text) as KeysetClaims).keys.map(({ kid }) => kid);
}

async function refuseRetired(db: Db, id: string): Promise<void> {
  const key = await db
    .selectFrom('signing_keys')
    .select('status')
    .where('public_key_id', '=', id)
    .executeTakeFirst();
  if (key?.status !== 'retired') return;
  throw new ServiceError('conflict', `the key ${id} was retired and cannot be used again`, {
    reason: 'retired_key',
    remedy: 'Generate another with `service-local identity keys generate`.',
  });
}

function rootExists(x: string): ServiceError {
  return new ServiceError('conflict', 'this issuer has a trust root, which signs its keyset', {
    reason: 'has_root',
    remedy: `Run \`service-local identity root sign-keyset --chain license-root.json --key root-key-1.pem --add=${x} --upload\` on the machine with the root key.`,
  });
}
