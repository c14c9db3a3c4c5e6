import { canonicalJson, isJsonObject, parseStrictJson } from './json.ts';
import { importKeyset, type TrustedKeys } from './keys.ts';
import { LeaseError, orRefused, type Refused } from './refusal.ts';
import { type KeysetClaims, type TrustedRoot, verifyKeyset, verifyRoots } from './root.ts';
import { parseTime } from './time.ts';

/** Keys and documents that a verifier already trusts. */
export interface HeldTrust {
  readonly keys: TrustedKeys;
  /** Absent if the keys came without a root. */
  readonly root?: TrustedRoot | undefined;
  readonly keyset?: KeysetClaims | undefined;
}

/** Keys that may verify leases. */
export interface Trust extends HeldTrust {
  readonly ok: true;
  /**
   * Why the keys are trusted: a pinned root, previously trusted keys, or first contact, when no
   * other keys were known.
   */
  readonly by: 'pin' | 'held' | 'first_contact';
}

/** What `verifyTrust` checks keys against. */
export interface TrustOptions {
  /** Fingerprint of a root, from an operator or a program. */
  readonly pin?: string | undefined;
  readonly held?: HeldTrust | undefined;
  /** Milliseconds since the Unix epoch. */
  readonly now: number;
}

/**
 * Decides whether the keys in a keyset file, or from a server, may verify leases. The document is a JWK
 * set; if its issuer has a root, the members `roots` and `keyset` hold the signed documents (see
 * `root.ts`), and only they count. Never throws.
 *
 * - With a pin or a held root, keys without a root are refused, and so is a root that does not
 *   descend from it.
 * - A keyset of a lower version than the one held, or of another issuer, is refused.
 * - An expired keyset or root confirms keys that are already trusted, and adds none.
 * - Without a root, held keys vouch for new ones, and for a first root, by signing the keyset; other
 *   keys are refused.
 */
export function verifyTrust(text: string, { pin, held, now }: TrustOptions): Trust | Refused {
  return orRefused(() => {
    const document = parseStrictJson(text, 'the keyset');
    const { roots, keyset } = isJsonObject(document) ? document : {};
    if (roots !== undefined) return signedTrust(roots, keyset, { pin, held, now });
    if (pin !== undefined || held?.root !== undefined) {
      throw new LeaseError('not_vouched_for', 'the keyset is not signed by the trusted root');
    }
    return bareTrust(document, keyset, { held, now });
  });
}

function signedTrust(roots: unknown, keyset: unknown, options: TrustOptions): Trust {
  const { pin, held, now } = options;
  const { root } = orThrow(verifyRoots(roots, pin));
  const former = held?.root;
  if (former !== undefined && !descendsFrom(former, root, roots)) {
    const isOlder = former.lineage.includes(root.lineage.at(-1)!);
    throw isOlder
      ? new LeaseError(
          'root_rollback',
          `the root has version ${root.claims.version}, but must have ${former.claims.version} or later`,
        )
      : new LeaseError('other_root', 'the root does not descend from the trusted one');
  }
  const signers = { keys: root.keys, threshold: root.claims.threshold };
  const { claims, keys } = orThrow(verifyKeyset(keyset, signers));
  // A machine with keys but no root accepts a root that is signed by one of those keys.
  const isFirstRoot = pin === undefined && former === undefined && held !== undefined;
  if (isFirstRoot) checkFirstRoot(keyset, held, root);
  if (claims.issuer !== root.claims.issuer) {
    throw new LeaseError(
      'other_issuer',
      `the keyset belongs to ${claims.issuer}, the root to ${root.claims.issuer}`,
    );
  }
  checkSuccession(claims, held?.keyset);
  const end = Math.min(parseTime(claims.expires_at)!, parseTime(root.claims.expires_at)!);
  checkNewKeys(keys, held?.keys, end <= now);
  const by = pin !== undefined ? 'pin' : held !== undefined ? 'held' : 'first_contact';
  return { ok: true, keys, root, keyset: claims, by };
}

function descendsFrom(former: TrustedRoot, root: TrustedRoot, roots: unknown): boolean {
  const fingerprint = former.lineage.at(-1)!;
  // The lineage begins at the pin, which may name a root later than the one held.
  return root.lineage.includes(fingerprint) || verifyRoots(roots, fingerprint).ok;
}

/**
 * A held key vouches for a root by signing a keyset that names it. Without the name, its signature
 * could be copied to the same keyset under any other root.
 */
function checkFirstRoot(keyset: unknown, held: HeldTrust, root: TrustedRoot): void {
  const { claims } = orThrow(verifyKeyset(keyset, { keys: held.keys, threshold: 1 }));
  if (claims.root === undefined || !root.lineage.includes(claims.root)) {
    throw new LeaseError(
      'not_vouched_for',
      'the keyset that a trusted key signed does not name this root',
    );
  }
}

function bareTrust(document: unknown, keyset: unknown, { held, now }: TrustOptions): Trust {
  const bare = orThrow(importKeyset(document));
  if (held === undefined) {
    // These keys are trusted at first contact; later keysets must not have a lower version.
    const own = verifyKeyset(keyset, { keys: bare.keys, threshold: 1 });
    return {
      ok: true,
      keys: bare.keys,
      by: 'first_contact',
      ...(own.ok && { keyset: own.claims }),
    };
  }
  if (keyset === undefined) {
    const added = [...bare.keys.keys()].find((id) => !held.keys.has(id));
    if (added === undefined) return { ok: true, keys: bare.keys, keyset: held.keyset, by: 'held' };
    throw new LeaseError('not_vouched_for', `no trusted key signs the new key ${added}`);
  }
  const { claims, keys } = orThrow(verifyKeyset(keyset, { keys: held.keys, threshold: 1 }));
  checkSuccession(claims, held.keyset);
  checkNewKeys(keys, held.keys, parseTime(claims.expires_at)! <= now);
  return { ok: true, keys, keyset: claims, by: 'held' };
}

function checkSuccession(offered: KeysetClaims, held: KeysetClaims | undefined): void {
  if (held === undefined) return;
  if (offered.issuer !== held.issuer) {
    throw new LeaseError(
      'other_issuer',
      `the keyset belongs to ${offered.issuer}, not to ${held.issuer}`,
    );
  }
  const isOther = canonicalJson(offered) !== canonicalJson(held);
  if (offered.version < held.version || (offered.version === held.version && isOther)) {
    throw new LeaseError(
      'keyset_rollback',
      `the keyset has version ${offered.version}, but version ${held.version} is already trusted`,
    );
  }
}

function checkNewKeys(keys: TrustedKeys, held: TrustedKeys | undefined, isExpired: boolean): void {
  if (!isExpired) return;
  const added = [...keys.keys()].find((id) => held?.has(id) !== true);
  if (added !== undefined) {
    throw new LeaseError('keyset_expired', `the keyset has expired and adds the key ${added}`);
  }
}

function orThrow<T extends { readonly ok: true }>(result: T | Refused): T {
  if (!result.ok) throw new LeaseError(result.reason, result.detail);
  return result;
}
