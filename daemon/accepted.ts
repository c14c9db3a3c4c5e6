import { judgeKeysetText, keysetText } from '../src/client/keyset.ts';
import {
  anchorOf,
  anchorText,
  BEFORE_ANY_EXPIRY,
  isAnnouncementOf,
  type HeldAnchor,
} from '../src/gate/anchor.ts';
import {
  readLicenseTexts,
  verifyLicense,
  type HeldLease,
  type License,
  type LicenseTexts,
} from '../src/gate/license.ts';
import { acceptedAnchor, type MachineTrust, type TrustMemory } from '../src/gate/machine-trust.ts';
import type { LeaseClaims } from '../src/lease/claims.ts';
import type { TrustedKeys } from '../src/lease/keys.ts';
import { verifyTrust, type HeldTrust } from '../src/lease/trust.ts';
import { verifyLease } from '../src/lease/verify.ts';
import type { LicenseFiles } from '../src/gate/license-files.ts';
import { readState } from './daemon-state.ts';

/** The accepted owner of leases, the keys that verify them, and the content of their files. */
export interface Accepted extends TrustMemory {
  readonly document: string;
  /** Content of the trust anchor; undefined if this machine has none yet. */
  readonly anchor: string | undefined;
}

/** Returns what a machine accepts when it stores a lease and the keyset document that verifies it. */
export function acceptedOf(
  { deployment_id: installationId, issuer }: LeaseClaims,
  held: HeldTrust,
  document: string,
): Accepted {
  const anchor = anchorText({ installationId, issuer, document });
  return { installationId, issuer, held: inMemory(held), document, anchor };
}

function acceptedBy(
  { installationId, issuer, document, text }: HeldAnchor,
  held: HeldTrust,
): Accepted {
  return { installationId, issuer, held: inMemory(held), document, anchor: text };
}

function inMemory({ keys, root, keyset }: HeldTrust): MachineTrust {
  const fingerprint = root?.lineage.at(-1);
  return { keys, root, keyset, by: 'held', pin: undefined, fingerprint };
}

/**
 * Returns what a machine has accepted according to its license files; undefined if it has no usable
 * anchor and no lease verifies.
 *
 * @param document content of the keyset file.
 */
export function acceptedIn(license: License, document?: string): Accepted | undefined {
  const held = acceptedAnchor(license);
  if (held !== undefined) return acceptedBy(held, held.held);
  const { anchor, trusted, leases } = license;
  const claims = leases[0]?.claims;
  if (trusted === undefined || claims === undefined) return undefined;
  const accepted = acceptedOf(claims, trusted, document ?? keysetText(trusted.keys));
  // A damaged anchor is repaired; a machine that never had one gets it at the next renewal.
  return anchor.kind === 'none' ? { ...accepted, anchor: undefined } : accepted;
}

/** Verifies license files by what this process has accepted, so that swapped files are refused. */
export class Acceptance {
  readonly #files: LicenseFiles;
  /** Undefined until something has been accepted. */
  accepted: Accepted | undefined;
  /** The last announcement of an anchor that this process followed. */
  #announced: string | null = null;

  constructor(files: LicenseFiles) {
    this.#files = files;
  }

  /**
   * Reads the license files, and accepts their content if nothing was accepted before, if what was
   * accepted vouches for it, or if a person announced it: see `announceAnchor`.
   *
   * @param kept the lease in force: newer keys are accepted only if they verify it or another lease
   * here.
   * @param isDevice false if leases and keys are delivered, whose sender may change the keys.
   * @param now milliseconds since the Unix epoch.
   */
  async read(
    kept: HeldLease | undefined,
    isDevice: boolean,
    now: number,
  ): Promise<{ readonly license: License; readonly isAnnounced: boolean }> {
    const texts = await readLicenseTexts(this.#files);
    const { announced_anchor } = await readState(this.#files.state);
    const isAnnounced = this.accepted !== undefined && this.#isAnnounced(texts, announced_anchor);
    const isKnown = isDevice || this.accepted?.anchor !== undefined;
    const memory = isKnown && !isAnnounced ? this.accepted : undefined;
    const license = verifyLicense(texts, now, { memory });
    if (memory === undefined) {
      const document = documentIn(texts, license, now);
      this.accepted = acceptedIn(license, document) ?? this.accepted;
      this.#announced = announced_anchor;
    } else {
      const accepted = newer(memory, license, texts, kept) ?? memory;
      // Writes the accepted anchor again if the file holds a foreign one, which a restart would
      // accept.
      const isForeign = accepted.anchor === undefined && license.refusedAnchor !== undefined;
      this.accepted = isForeign ? { ...accepted, anchor: anchorText(accepted) } : accepted;
    }
    return { license, isAnnounced };
  }

  #isAnnounced({ root }: LicenseTexts, announced: string | null): boolean {
    if (announced === null || announced === this.#announced || root === undefined) return false;
    const anchor = anchorOf(root);
    return anchor.kind === 'held' && isAnnouncementOf(announced, anchor.text);
  }
}

/** The document in the keyset file; undefined if its keys are not trusted. */
function documentIn(
  { keyset: { read }, pin }: LicenseTexts,
  { trusted: held }: License,
  now: number,
): string | undefined {
  const judged = read.ok ? judgeKeysetText(read.text, { pin, held, now }) : read;
  return judged.ok ? judged.text : undefined;
}

/** Returns the content of the files if `memory` vouches for it and it is newer; otherwise undefined. */
function newer(
  memory: Accepted,
  license: License,
  { keyset, pin }: LicenseTexts,
  kept: HeldLease | undefined,
): Accepted | undefined {
  const { trusted, leases } = license;
  const anchor = acceptedAnchor(license);
  const isEnough = ({ keys }: { readonly keys: TrustedKeys }): boolean =>
    [...(kept === undefined ? [] : [kept]), ...leases].some(
      ({ text }) => verifyLease(text, keys).ok,
    ) || kept === undefined;
  if (anchor !== undefined && anchor.text !== memory.anchor) {
    const { held } = memory;
    const trust = verifyTrust(anchor.document, { pin, held, now: BEFORE_ANY_EXPIRY });
    return trust.ok && isEnough(trust) ? acceptedBy(anchor, trust) : undefined;
  }
  const isNewer = (trusted?.keyset?.version ?? 0) > (memory.held.keyset?.version ?? 0);
  if (!license.keyset.ok || !keyset.read.ok || !isNewer || !isEnough(trusted!)) return undefined;
  const owner = { installationId: memory.installationId, issuer: memory.issuer };
  const document = keyset.read.text;
  const text = memory.anchor && anchorText({ ...owner, document });
  return { ...owner, held: trusted!, document, anchor: text };
}
