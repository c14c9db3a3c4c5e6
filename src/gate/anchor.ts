import { hash, randomUUID } from 'node:crypto';
import { isJsonObject, parseStrictJson } from '../lease/json.ts';
import { isId } from '../lease/claims.ts';
import type { LeaseReason } from '../lease/reasons.ts';
import { LeaseError, orRefused, type Refused } from '../lease/refusal.ts';
import { verifyKeyset } from '../lease/root.ts';
import { verifyTrust, type HeldTrust } from '../lease/trust.ts';
import { readTextFile, type TextFile } from './text-file.ts';

/** The trust anchor of a machine, in `license_root.json`. */
export type Anchor =
  | { readonly kind: 'none' }
  | { readonly kind: 'damaged'; readonly reason: LeaseReason; readonly detail: string }
  | HeldAnchor;

export interface HeldAnchor {
  readonly kind: 'held';
  /** The installation whose leases this machine accepts. */
  readonly installationId: string;
  readonly issuer: string;
  /** The trust that `document` gives, regardless of its expiry. */
  readonly held: HeldTrust;
  /** Content for `license_public_key.json`: the keyset document accepted last, as JSON text. */
  readonly document: string;
  readonly text: string;
}

export async function readAnchor(path: string): Promise<Anchor> {
  return anchorOf(await readTextFile(path));
}

export function anchorOf({ path, read }: TextFile): Anchor {
  if (!read.ok) {
    const { reason, detail } = read;
    return reason === 'missing' ? { kind: 'none' } : { kind: 'damaged', reason, detail };
  }
  const parsed = orRefused(() => parseAnchor(read.text));
  if (!('ok' in parsed)) return parsed;
  const { reason, detail } = parsed;
  return { kind: 'damaged', reason, detail: `${path}: ${detail}` };
}

/**
 * Returns the content of the anchor file.
 *
 * @param accepted `document` is the keyset document as JSON text, as `verifyTrust` accepted it.
 * @throws LeaseError for a document or ids that `readAnchor` would call damaged.
 */
export function anchorText({
  installationId,
  issuer,
  document,
}: Pick<HeldAnchor, 'installationId' | 'issuer' | 'document'>): string {
  const trusted = parseStrictJson(document, 'the keyset');
  const text = JSON.stringify({ deployment_id: installationId, issuer, trusted });
  parseAnchor(text);
  return text;
}

/**
 * Returns the text that announces, in the daemon's state, an anchor that a person changed. Each text is
 * different, so that running programs also notice a repeated announcement.
 */
export function newAnnouncement(anchor: string): string {
  return `${hash('sha256', anchor)} ${randomUUID()}`;
}

export function isAnnouncementOf(announcement: string, anchor: string): boolean {
  return announcement.startsWith(`${hash('sha256', anchor)} `);
}

/**
 * Returns the trust of an anchor; undefined without an anchor, and refused if the anchor does not
 * descend from the pinned root.
 */
export function anchoredTrust(
  anchor: Anchor,
  pin: string | undefined,
): ({ readonly ok: true } & HeldTrust) | Refused | undefined {
  if (anchor.kind !== 'held') return undefined;
  return pin === undefined
    ? { ...anchor.held, ok: true }
    : verifyTrust(anchor.document, { pin, now: BEFORE_ANY_EXPIRY });
}

/** Held trust does not end when the documents expire. */
export const BEFORE_ANY_EXPIRY = 0;

function parseAnchor(text: string): HeldAnchor {
  const value = parseStrictJson(text, 'the trust anchor');
  const { deployment_id: installationId, issuer, trusted } = isJsonObject(value) ? value : {};
  if (!isId(installationId) || !isId(issuer) || !isJsonObject(trusted)) {
    throw new LeaseError(
      'invalid_root',
      'the trust anchor must have the members deployment_id, issuer and trusted',
    );
  }
  const document = JSON.stringify(trusted);
  return {
    kind: 'held',
    installationId: installationId as string,
    issuer: issuer as string,
    held: heldTrust(document, trusted['keyset']),
    document,
    text,
  };
}

/** @throws LeaseError */
function heldTrust(document: string, keyset: unknown): HeldTrust {
  const trust = verifyTrust(document, { now: BEFORE_ANY_EXPIRY });
  if (!trust.ok) throw new LeaseError(trust.reason, trust.detail);
  if (trust.root !== undefined || keyset === undefined) return trust;
  // A key that this machine trusted signed the keyset when it was accepted. Only the keys of the
  // signed part were accepted, and the signer need not be one of them.
  const signed = verifyKeyset(keyset, { keys: trust.keys, threshold: 0 });
  if (!signed.ok) throw new LeaseError(signed.reason, signed.detail);
  return { keys: signed.keys, keyset: signed.claims };
}
