import { DAY } from '../base/durations.ts';
import { ServiceError } from '../base/errors.ts';
import { decodeBase64 } from '../lease/base64.ts';
import { preAuthEncoding } from '../lease/envelope.ts';
import type { Refused } from '../lease/refusal.ts';
import { KEYSET_TYPE, type KeysetClaims, type TrustedRoot } from '../lease/root.ts';
import { CLOCK_TOLERANCE_SECONDS } from '../lease/status.ts';
import { formatTime, parseTime } from '../lease/time.ts';
import { type HeldTrust, type Trust, verifyTrust } from '../lease/trust.ts';
import type { Db, LicenseTrustTable } from '../storage/tables.ts';
import { appendAudit, type Actor } from './audit.ts';
import type { Identity } from './context.ts';
import {
  isComplete,
  rootSignatures,
  type SignedDocument,
  type TrustDocument,
} from './root-documents.ts';
import { consumeStepUp } from './step-up.ts';
import { checkCaller, callerDetails, type Caller } from './tokens.ts';

export const SET_ROOT_ACTION = 'identity.root.set';

const EXPIRY_WARNING_MS = 60 * DAY;

/** To be run on the machine with the root key. */
export const SIGN_COMMAND =
  'service-local identity root sign-keyset --chain license-root.json --key root-key-1.pem --upload';

const ROTATE_COMMAND =
  'service-local identity root rotate --chain license-root.json --key root-key-1.pem';

const CONTINUE_ROOT_COMMAND =
  'service-local identity root rotate --chain license-root.json --key KEY --continue';

/** The stored trust root. Times are milliseconds since the Unix epoch. */
export interface TrustState {
  readonly root_fingerprint: string;
  readonly root_version: number;
  readonly root_expires_at: number;
  readonly keyset_version: number;
  readonly keyset_expires_at: number;
  readonly key_ids: readonly string[];
  readonly retired: readonly string[];
}

export interface Stored extends TrustState {
  /** Pending key that this keyset activated. */
  readonly activated: string | null;
}

export async function selectTrust(db: Db): Promise<LicenseTrustTable | undefined> {
  return db.selectFrom('license_trust').selectAll().executeTakeFirst();
}

/** Returns the members `roots` and `keyset` of the published keyset, if the issuer has a root. */
export async function publishedTrust(
  db: Db,
): Promise<{ readonly roots: unknown; readonly keyset: unknown } | undefined> {
  const row = await selectTrust(db);
  return row && { roots: JSON.parse(row.roots), keyset: JSON.parse(row.keyset) };
}

export async function trustState(db: Db): Promise<TrustState | undefined> {
  const row = await selectTrust(db);
  return row && stateOf(row);
}

/**
 * Stores a trust root and its signed keyset, and activates a pending key that the keyset contains.
 *
 * @param replaces fingerprint of the stored root, to replace it by a root that does not descend from
 * it. This and the first root need a step-up for `identity.root.set` and `root:FINGERPRINT`.
 * @throws ServiceError `invalid_request` for a document that verifiers would refuse; `conflict` for an
 * older document, a document of another root, and a keyset without a required key;
 * `step_up_required`.
 */
export async function storeTrust(
  identity: Identity,
  caller: Caller,
  { roots, keyset }: TrustDocument,
  {
    replaces,
    step_up_token,
  }: {
    readonly replaces?: string | undefined;
    readonly step_up_token?: string | undefined;
  } = {},
): Promise<Stored> {
  const { storage, clock, policy, signer } = identity;
  return storage.write(async (tx) => {
    const now = clock();
    await checkCaller(tx, now, caller);
    const before = await selectTrust(tx);
    const held = before === undefined ? undefined : verifyStoredTrust(before);
    const isNewRoot = before === undefined || replaces === before.root_fingerprint;
    const text = JSON.stringify({ roots, keyset });
    const trust = verifyTrust(text, { held: isNewRoot ? undefined : held, now });
    if (!trust.ok) throw rejectedDocument(trust, { roots, keyset });
    const { root, keyset: claims } = trust;
    if (root === undefined || claims === undefined) throw missingKeyset();
    refuseOtherIssuer(claims, policy.issuer);
    refuseOtherRoot(claims, root);
    const fingerprint = root.lineage.at(-1)!;
    if (isNewRoot) {
      const { administrator_id } = caller;
      const target = `root:${fingerprint}`;
      await consumeStepUp(tx, now, administrator_id, step_up_token, SET_ROOT_ACTION, target);
    }
    await refuseLackingKeys(tx, now, trust);
    if (before === undefined) await refuseEndorsedVersion(tx, claims);
    const document = { roots, keyset: await endorse(tx, keyset!, trust, signer) };
    const actor = `administrator:${caller.administrator_id}` as const;
    const row = await replaceTrust(tx, now, actor, document, trust, callerDetails(caller));
    return { ...stateOf(row), activated: await activatePending(tx, now, claims) };
  });
}

/** Stores verified documents and records them in the audit log. */
export async function replaceTrust(
  tx: Db,
  now: number,
  actor: Actor,
  { roots, keyset }: TrustDocument,
  { root, keyset: claims }: HeldTrust,
  means: Readonly<Record<string, unknown>> = {},
): Promise<LicenseTrustTable> {
  const former = await selectTrust(tx);
  const row: LicenseTrustTable = {
    id: 1,
    roots: JSON.stringify(roots),
    keyset: JSON.stringify(keyset),
    root_fingerprint: root!.lineage.at(-1)!,
    root_version: root!.claims.version,
    root_expires_at: parseTime(root!.claims.expires_at)!,
    keyset_version: claims!.version,
    keyset_expires_at: parseTime(claims!.expires_at)!,
    stored_at: now,
    stored_by: actor,
  };
  await appendAudit(tx, now, {
    actor,
    action: 'admin.identity.root.store',
    target: `root:${row.root_fingerprint}`,
    details: {
      former: former?.root_fingerprint ?? null,
      root_version: row.root_version,
      keyset_version: row.keyset_version,
      keys: claims!.keys.map(({ kid }) => kid),
      retired: claims!.retired,
      expires_at: claims!.expires_at,
      ...means,
    },
  });
  await tx.deleteFrom('license_trust').execute();
  await tx.insertInto('license_trust').values(row).execute();
  return row;
}

export interface ExpiryWarning {
  readonly reason: 'keyset_expires' | 'keyset_expired' | 'root_expires' | 'root_expired';
  readonly detail: string;
}

/** Returns warnings for documents that expire within 60 days or have expired. */
export async function expiryWarnings(db: Db, now: number): Promise<readonly ExpiryWarning[]> {
  const row = await selectTrust(db);
  if (row === undefined) return [];
  const ends = [
    { what: 'root', end: row.root_expires_at, command: ROTATE_COMMAND },
    { what: 'keyset', end: row.keyset_expires_at, command: SIGN_COMMAND },
  ] as const;
  return ends
    .filter(({ end }) => end - now < EXPIRY_WARNING_MS)
    .map(({ what, end, command }) => ({
      reason: end <= now ? (`${what}_expired` as const) : (`${what}_expires` as const),
      detail:
        end <= now
          ? `the license ${what} expired at ${formatTime(end)}: machines keep the keys that they have and accept no new ones; run \`${command}\` on the machine with the root key`
          : `the license ${what} expires at ${formatTime(end)}: run \`${command}\` on the machine with the root key`,
    }));
}

/**
 * Returns an error if the stored keyset belongs to another issuer than `issuer`, because machines would
 * refuse its leases.
 */
export async function issuerFault(db: Db, issuer: string): Promise<ServiceError | undefined> {
  const row = await selectTrust(db);
  const own = row && verifyStoredTrust(row).keyset!.issuer;
  if (own === undefined || own === issuer) return undefined;
  return new ServiceError(
    'license_lease_unavailable',
    `the trust root belongs to the issuer ${own}, but license_issuer is ${issuer}: machines would refuse its leases`,
    {
      reason: 'other_issuer',
      remedy: `Set license_issuer to ${own}, or replace the root with one of ${issuer}, and start the server again.`,
    },
  );
}

/** True if no root is stored or the signed keyset contains the key. */
export async function isVouchedFor(db: Db, publicKeyId: string): Promise<boolean> {
  const state = await trustState(db);
  return state === undefined || state.key_ids.includes(publicKeyId);
}

function stateOf(row: LicenseTrustTable): TrustState {
  const { keys, retired } = verifyStoredTrust(row).keyset!;
  const { root_fingerprint, root_version, root_expires_at } = row;
  const { keyset_version, keyset_expires_at } = row;
  return {
    root_fingerprint,
    root_version,
    root_expires_at,
    keyset_version,
    keyset_expires_at,
    key_ids: keys.map(({ kid }) => kid),
    retired,
  };
}

/** Trust as verified when it was stored, ignoring expiry since. */
export function verifyStoredTrust({
  roots,
  keyset,
}: Pick<LicenseTrustTable, 'roots' | 'keyset'>): HeldTrust {
  const trust = verifyTrust(`{"roots":${roots},"keyset":${keyset}}`, { now: 0 });
  if (!trust.ok) throw new Error(`the stored trust root does not verify: ${trust.detail}`);
  return trust;
}

/** @throws ServiceError `conflict` */
async function refuseLackingKeys(db: Db, now: number, { keyset }: Trust): Promise<void> {
  const held = new Set(keyset!.keys.map(({ kid }) => kid));
  const rows = await db.selectFrom('signing_keys').selectAll().execute();
  for (const { public_key_id: id, status } of rows) {
    const isHeld = held.has(id);
    if (status === 'retired' && isHeld) {
      throw incompleteKeyset('retired_key', `the keyset contains the retired key ${id}`);
    }
    if (status === 'active' && !isHeld) {
      throw incompleteKeyset('active_key_missing', `the keyset lacks the active signing key ${id}`);
    }
    if (status === 'retiring' && !isHeld && (await hasOutstanding(db, now, id))) {
      const message = `the keyset lacks the key ${id}, which signed leases that are still in use`;
      throw incompleteKeyset('retiring_key_missing', message);
    }
  }
}

/** Machines with a keyset that a signing key endorsed accept only a higher version. */
async function refuseEndorsedVersion(db: Db, { version }: KeysetClaims): Promise<void> {
  const row = await db.selectFrom('license_endorsement').select('version').executeTakeFirst();
  if (row === undefined || version > row.version) return;
  const message = `machines may hold version ${row.version} of the keyset; this is version ${version}`;
  throw new ServiceError('conflict', message, {
    reason: 'keyset_rollback',
    remedy: `Sign the keyset again, which raises its version: \`${SIGN_COMMAND}\`.`,
  });
}

async function hasOutstanding(db: Db, now: number, publicKeyId: string): Promise<boolean> {
  const lease = await db
    .selectFrom('license_leases')
    .select('lease_id')
    .where('public_key_id', '=', publicKeyId)
    .where('grace_ends_at', '>', now - CLOCK_TOLERANCE_SECONDS * 1000)
    .limit(1)
    .executeTakeFirst();
  return lease !== undefined;
}

/**
 * Adds a signature by the key that signs leases, so that machines that were enrolled before the issuer
 * had a root accept the root.
 */
async function endorse(
  db: Db,
  keyset: SignedDocument,
  { keys }: Trust,
  signer: Identity['signer'],
): Promise<SignedDocument> {
  if (signer instanceof ServiceError || !keys.has(signer.publicKeyId)) return keyset;
  const known = await db
    .selectFrom('signing_keys')
    .select('status')
    .where('public_key_id', '=', signer.publicKeyId)
    .executeTakeFirst();
  const hasSigned = keyset.signatures.some(({ keyid }) => keyid === signer.publicKeyId);
  if (known === undefined || hasSigned) return keyset;
  const toSign = preAuthEncoding(KEYSET_TYPE, decodeBase64(keyset.payload)!);
  const sig = Buffer.from(signer.sign(toSign)).toString('base64');
  return { ...keyset, signatures: [...keyset.signatures, { keyid: signer.publicKeyId, sig }] };
}

/** @returns the id of the activated key. */
async function activatePending(
  tx: Db,
  now: number,
  { keys }: KeysetClaims,
): Promise<string | null> {
  const pending = await tx
    .selectFrom('pending_signing_keys')
    .selectAll()
    .orderBy('seen_at', 'desc')
    .execute();
  const key = pending.find(({ public_key_id: id }) => keys.some(({ kid }) => kid === id));
  if (key === undefined) return null;
  await activateKey(tx, now, key);
  return key.public_key_id;
}

/** Activates a key; the previous key begins to retire. */
export async function activateKey(
  tx: Db,
  now: number,
  { public_key_id, x }: { readonly public_key_id: string; readonly x: string },
): Promise<void> {
  const former = await tx
    .selectFrom('signing_keys')
    .select('public_key_id')
    .where('status', '=', 'active')
    .executeTakeFirst();
  await appendAudit(tx, now, {
    actor: 'server',
    action: 'identity.key.activate',
    target: `key:${public_key_id}`,
    details: { former: former?.public_key_id ?? null },
  });
  await tx
    .updateTable('signing_keys')
    .set({ status: 'retiring', retiring_at: now })
    .where('status', '=', 'active')
    .execute();
  const active = { status: 'active', activated_at: now, retiring_at: null } as const;
  await tx
    .insertInto('signing_keys')
    .values({ public_key_id, x, ...active, retired_at: null })
    .onConflict((conflict) => conflict.column('public_key_id').doUpdateSet(active))
    .execute();
  await tx.deleteFrom('pending_signing_keys').where('public_key_id', '=', public_key_id).execute();
}

function rejectedDocument({ reason, detail }: Refused, document: TrustDocument): ServiceError {
  const remedy =
    reason === 'not_vouched_for' && !isComplete(rootSignatures(document))
      ? `Have more key holders sign the root: \`${CONTINUE_ROOT_COMMAND}\`. Then sign the keyset.`
      : REMEDIES[reason];
  if (remedy !== undefined) return new ServiceError('conflict', detail, { reason, remedy });
  return new ServiceError('invalid_request', detail, {
    reason,
    problems: [{ code: reason, pointer: '', message: detail }],
    remedy: 'Send a document that `service-local identity root sign-keyset` wrote.',
  });
}

const REMEDIES: Readonly<Record<string, string>> = {
  other_root: 'See docs/how-to/trust-root.md for what to do when a root key is lost.',
  root_rollback: 'Use the newest chain of roots: pass its file with --chain.',
  keyset_rollback:
    'Sign a keyset with a higher version: `service-local identity root sign-keyset`.',
  not_vouched_for:
    'Have more key holders sign: `service-local identity root sign-keyset --continue`.',
};

function refuseOtherIssuer({ issuer }: KeysetClaims, own: string): void {
  if (issuer === own) return;
  const message = `the keyset belongs to the issuer ${issuer}, but license_issuer is ${own}`;
  throw new ServiceError('conflict', message, {
    reason: 'other_issuer',
    remedy: `Set license_issuer to ${issuer}, or create the root with --license-issuer ${own}.`,
  });
}

/**
 * The signing key endorses the stored keyset, which must therefore name its root: see
 * `checkFirstRoot` in `src/lease/trust.ts`.
 */
function refuseOtherRoot({ root }: KeysetClaims, { lineage }: TrustedRoot): void {
  if (root !== undefined && lineage.includes(root)) return;
  throw new ServiceError('invalid_request', 'the keyset does not name its root', {
    reason: 'other_root',
    remedy: `Sign it again: \`${SIGN_COMMAND}\`.`,
  });
}

function incompleteKeyset(reason: string, message: string): ServiceError {
  return new ServiceError('conflict', message, { reason, remedy: `Run \`${SIGN_COMMAND}\`.` });
}

function missingKeyset(): ServiceError {
  return new ServiceError('invalid_request', 'the document has no signed keyset', {
    remedy: 'Send a document that `service-local identity root sign-keyset` wrote.',
  });
}
