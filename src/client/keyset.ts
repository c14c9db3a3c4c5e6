import { encodeBase64Url } from '../lease/base64.ts';
import { importKeys } from '../gate/machine-trust.ts';
import { isJsonObject, parseStrictJson } from '../lease/json.ts';
import { importKeyset, type TrustedKeys } from '../lease/keys.ts';
import type { Refused } from '../lease/refusal.ts';
import { verifyKeyset } from '../lease/root.ts';
import { verifyTrust, type HeldTrust, type Trust, type TrustOptions } from '../lease/trust.ts';

/** Published keys that this machine may trust. */
export interface JudgedKeyset {
  readonly ok: true;
  /** Content for the keyset file: only known members, and the signed documents unchanged. */
  readonly text: string;
  readonly trust: Trust;
}

/**
 * Decides by `verifyTrust` whether published or imported keys may verify leases here. If the pin
 * names another root than the held one, only the pin counts, because a person has set it.
 *
 * @param document the published document, as parsed JSON.
 */
export function judgeKeyset(document: unknown, options: TrustOptions): JudgedKeyset | Refused {
  const read = readDocument(document);
  if (!read.ok) return read;
  const trust = judge(read.text, options);
  if (!trust.ok) return trust;
  const text = textOf(trust, read.signed);
  // Readers that hold these keys must accept the file too: signed documents may be too long for it.
  const again = judge(text, { ...options, held: trust });
  return again.ok ? { ok: true, text, trust } : again;
}

/** Like `judgeKeyset`, for a text that may also be one JWK or one key in PEM. */
export function judgeKeysetText(text: string, options: TrustOptions): JudgedKeyset | Refused {
  const imported = importKeys(text);
  if (!imported.ok) return imported;
  const value = text.includes('-----BEGIN ') ? undefined : parseStrictJson(text, 'the keyset');
  const isDocument = isJsonObject(value) && !Object.hasOwn(value, 'kty');
  return judgeKeyset(isDocument ? value : jwkSet(imported.keys), options);
}

function judge(text: string, options: TrustOptions): Trust | Refused {
  const trust = verifyTrust(text, options);
  const { pin, held, now } = options;
  if (trust.ok || pin === undefined || descendsFrom(held, pin)) return trust;
  return verifyTrust(text, { pin, now });
}

/** Whether the held trust descends from this root. */
function descendsFrom(held: HeldTrust | undefined, fingerprint: string): boolean {
  return held?.root?.lineage.includes(fingerprint) === true;
}

interface Signed {
  readonly roots?: unknown;
  readonly keyset?: unknown;
}

/** Leaves out unknown members, which may be of any size. */
function readDocument(
  document: unknown,
): { readonly ok: true; readonly text: string; readonly signed: Signed } | Refused {
  const bare = importKeyset(document);
  if (!bare.ok) return bare;
  const { roots, keyset } = isJsonObject(document) ? document : {};
  const signed = { ...(roots !== undefined && { roots }), ...(keyset !== undefined && { keyset }) };
  return { ok: true, text: JSON.stringify({ ...jwkSet(bare.keys), ...signed }), signed };
}

/** The member `keys` has the trusted keys, for programs that read no other member. */
function textOf({ keys, root }: Trust, { roots, keyset }: Signed): string {
  // Holders of these keys must be able to verify it again, so a keyset that only a former key signed
  // is left out.
  const isVerified = root !== undefined || verifyKeyset(keyset, { keys, threshold: 1 }).ok;
  return JSON.stringify({
    ...jwkSet(keys),
    ...(root !== undefined && { roots }),
    ...(keyset !== undefined && isVerified && { keyset }),
  });
}

export function keysetText(keys: Iterable<readonly [id: string, bytes: Uint8Array]>): string {
  return JSON.stringify(jwkSet(keys));
}

function jwkSet(keys: TrustedKeys | Iterable<readonly [id: string, bytes: Uint8Array]>) {
  const jwks = Array.from(keys, ([kid, bytes]) => ({
    kty: 'OKP',
    crv: 'Ed25519',
    x: encodeBase64Url(bytes),
    kid,
  }));
  return { keys: jwks };
}
