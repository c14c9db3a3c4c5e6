import { createPublicKey } from 'node:crypto';
import { isJsonObject, parseStrictJson } from '../lease/json.ts';
import { importKeyset, publicKeyId, type TrustedKeys } from '../lease/keys.ts';
import type { LeaseReason } from '../lease/reasons.ts';
import { LeaseError, orRefused, type Refused } from '../lease/refusal.ts';
import { parseTime } from '../lease/time.ts';
import { verifyTrust, type HeldTrust, type Trust } from '../lease/trust.ts';
import { verifyLease } from '../lease/verify.ts';
import {
  anchoredTrust,
  anchorOf,
  BEFORE_ANY_EXPIRY,
  type Anchor,
  type HeldAnchor,
} from './anchor.ts';
import type { TextFile } from './text-file.ts';

/** The keys that verify leases on this machine, and why they are trusted. */
export interface MachineTrust extends HeldTrust {
  /**
   * `pin`: they descend from the pinned root; `held`: from what this machine accepted before;
   * `unpinned`: only the keyset file vouches for them.
   */
  readonly by: 'pin' | 'held' | 'unpinned';
  readonly pin: string | undefined;
  /** Fingerprint of the newest root; undefined for keys without a root. */
  readonly fingerprint: string | undefined;
}

/** Owner of the leases that a machine accepts. */
export type LeaseOwner = Pick<HeldAnchor, 'installationId' | 'issuer'>;

/** Trust and owner of leases that a running program has accepted. */
export interface TrustMemory extends LeaseOwner {
  readonly held: MachineTrust;
}

/** The verdict on the keyset file and the trust anchor. */
export interface JudgedTrust {
  readonly keyset:
    | { readonly ok: true; readonly keys: TrustedKeys }
    | ({ readonly ok: false; readonly path: string } & Omit<Refused, 'ok'>);
  /** From the keyset file or, if the file is refused, the trust that this machine holds. */
  readonly trusted: MachineTrust | undefined;
  /** Leases of other owners are refused; undefined if no anchor or memory names an owner. */
  readonly owner: LeaseOwner | undefined;
  readonly anchor: Anchor;
  /** Why the anchor file does not count; undefined if it does, or is missing. */
  readonly refusedAnchor:
    | { readonly path: string; readonly reason: LeaseReason; readonly detail: string }
    | undefined;
}

/** The trust anchor; undefined where it is missing, damaged or refused. */
export function acceptedAnchor({
  anchor,
  refusedAnchor,
}: Pick<JudgedTrust, 'anchor' | 'refusedAnchor'>): HeldAnchor | undefined {
  return anchor.kind === 'held' && refusedAnchor === undefined ? anchor : undefined;
}

export interface TrustFiles {
  readonly keyset: TextFile;
  readonly root: TextFile | undefined;
  readonly pin: string | undefined;
  readonly leases: readonly TextFile[];
}

/** @param now milliseconds since the Unix epoch. */
export function judgeTrust(
  files: TrustFiles,
  now: number,
  memory: TrustMemory | undefined,
): JudgedTrust {
  const { pin } = files;
  const anchor: Anchor = files.root === undefined ? { kind: 'none' } : anchorOf(files.root);
  const anchored = anchoredTrust(anchor, pin);
  const refusedAnchor = refusalOf(files, anchor, anchored, memory);
  const ofAnchor = refusedAnchor === undefined && anchored?.ok === true ? anchored : undefined;
  const held = memory?.held ?? ofAnchor;
  const found = trustOf(files, held, now);
  const trusted = found.ok ? found : held;
  const heldBy = ofAnchor === undefined ? (memory?.held.by ?? 'unpinned') : 'held';
  return {
    keyset: found.ok ? { ok: true, keys: found.keys } : { ...found, path: files.keyset.path },
    trusted: trusted && {
      keys: trusted.keys,
      root: trusted.root,
      keyset: trusted.keyset,
      by: pin === undefined ? heldBy : 'pin',
      pin,
      fingerprint: trusted.root?.lineage.at(-1),
    },
    // A refused anchor must not cause the refusal of a good lease.
    owner: memory ?? (ofAnchor && (anchor as HeldAnchor)),
    anchor,
    refusedAnchor,
  };
}

/** Returns the trust that the keyset file gives, or why it gives none. */
function trustOf(
  { keyset: { path, read }, pin, leases }: TrustFiles,
  held: HeldTrust | undefined,
  now: number,
): Trust | Refused {
  if (!read.ok) {
    if (read.reason !== 'missing') return read;
    return { ok: false, reason: 'unknown_key', detail: `there are no keys in ${path}` };
  }
  const document = orRefused(() => ({ ok: true, text: documentOf(read.text) }) as const);
  if (!document.ok) return document;
  const { text } = document;
  const trust = verifyTrust(text, { pin, held, now });
  if (trust.ok) return trust;
  if (trust.reason === 'keyset_expired' && held === undefined) {
    const former = verifyTrust(text, { pin, now: BEFORE_ANY_EXPIRY });
    if (former.ok && (pin === undefined || isEnrolled(leases, former))) return former;
  }
  const root = pin ?? held?.root?.lineage.at(-1);
  if (trust.reason !== 'not_vouched_for' || root === undefined || hasRoots(text)) return trust;
  const detail = `${path} holds keys without a signed keyset, but keys must be signed by the root ${root}: put the signed keyset of the issuer there, which its server publishes at /.well-known/license-keys.json`;
  return { ...trust, detail };
}

/**
 * Whether this machine was enrolled before the keyset expired. It then held the keys at that time,
 * even if it has no trust anchor yet.
 */
function isEnrolled(leases: readonly TextFile[], { keys, keyset }: Trust): boolean {
  const end = parseTime(keyset!.expires_at)!;
  return leases.some(({ read }) => {
    const lease = read.ok ? verifyLease(read.text, keys) : read;
    if (!lease.ok || !('claims' in lease)) return false;
    const { device_thumbprint, issued_at } = lease.claims;
    return device_thumbprint !== undefined && parseTime(issued_at)! < end;
  });
}

function refusalOf(
  { root, pin }: TrustFiles,
  anchor: Anchor,
  anchored: ReturnType<typeof anchoredTrust>,
  memory: TrustMemory | undefined,
): JudgedTrust['refusedAnchor'] {
  if (root === undefined || anchor.kind === 'none') return undefined;
  const { path } = root;
  if (anchor.kind === 'damaged') {
    return { path, reason: anchor.reason, detail: anchor.detail };
  }
  if (anchored?.ok === false) return { path, reason: anchored.reason, detail: anchored.detail };
  if (memory === undefined) return undefined;
  if (anchor.issuer !== memory.issuer) {
    const detail = `it names the issuer ${anchor.issuer}, not ${memory.issuer}`;
    return { path, reason: 'other_issuer', detail };
  }
  if (anchor.installationId !== memory.installationId) {
    const detail = `it names the installation ${anchor.installationId}, not ${memory.installationId}`;
    return { path, reason: 'other_installation', detail };
  }
  const { held } = memory;
  const trust = verifyTrust(anchor.document, { pin, held, now: BEFORE_ANY_EXPIRY });
  // The keyset is written before the anchor, which may therefore be older for a moment.
  if (trust.ok || trust.reason === 'keyset_rollback' || trust.reason === 'root_rollback') {
    return undefined;
  }
  return { path, reason: trust.reason, detail: trust.detail };
}

/**
 * Reads the keys that verify leases from any of the forms in which they are delivered: a
 * `PublicKeyset`, one JWK of it, or one key as SubjectPublicKeyInfo in PEM.
 */
export function importKeys(
  text: string,
): { readonly ok: true; readonly keys: TrustedKeys } | Refused {
  return orRefused(() => importKeyset(documentOf(text)));
}

/** The keyset document of a text that may also be one JWK, or one key in PEM. @throws LeaseError */
function documentOf(text: string): string {
  const value = text.includes('-----BEGIN ') ? jwkOfPem(text) : parseStrictJson(text, 'the keyset');
  if (!isJsonObject(value) || !Object.hasOwn(value, 'kty')) return text;
  // The id of a single key is not always beside it.
  return JSON.stringify({ keys: [{ kid: publicKeyId(String(value['x'])), ...value }] });
}

function hasRoots(document: string): boolean {
  const value: unknown = JSON.parse(document);
  return isJsonObject(value) && Object.hasOwn(value, 'roots');
}

function jwkOfPem(pem: string): object {
  if (/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(pem)) {
    throw new LeaseError('private_key', 'the PEM contains a private key');
  }
  try {
    return createPublicKey(pem).export({ format: 'jwk' });
  } catch {
    throw new LeaseError('invalid_keyset', 'the PEM is not a public key');
  }
}
