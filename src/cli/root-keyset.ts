import { ServiceError } from '../base/errors.ts';
import { isJsonObject, parseStrictJson } from '../lease/json.ts';
import { type PublicKey, publicKeyId } from '../lease/keys.ts';
import { LeaseError } from '../lease/refusal.ts';
import type { KeysetClaims } from '../lease/root.ts';
import { readDocumentFile } from './document-files.ts';
import type { Context } from './verb.ts';

export interface ListedKey {
  readonly public_key_id: string;
  readonly x: string;
  readonly status?: string | undefined;
}

/**
 * The keys in a file: the output of `identity keys list --json`, or a JWK set.
 * @throws ServiceError `file_not_found`, `invalid_data`
 */
export function readKeyList({ cwd }: Context, file: string): readonly ListedKey[] {
  const { text } = readDocumentFile(file, cwd);
  const fail = (what: string): ServiceError =>
    new ServiceError('invalid_data', `${file}: ${what}`, {
      remedy: 'Name a file with the output of `service-local identity keys list --json`.',
    });
  let value: unknown;
  try {
    value = parseStrictJson(text, file);
  } catch (error) {
    if (error instanceof LeaseError) throw fail(error.message);
    throw error;
  }
  const keys = isJsonObject(value) ? value['keys'] : undefined;
  if (!Array.isArray(keys)) throw fail('the list "keys" is missing');
  return keys.map((key: unknown, index) => {
    const { x, status, public_key_id, kid = public_key_id } = isJsonObject(key) ? key : {};
    if (typeof x !== 'string' || kid !== publicKeyId(x)) {
      throw fail(`keys[${index}] is not an Ed25519 key with a matching id`);
    }
    return {
      public_key_id: publicKeyId(x),
      x,
      ...(typeof status === 'string' && { status }),
    };
  });
}

/**
 * Returns the keys of the next keyset: all listed keys that are not retired, the added keys, and
 * keys of the previous keyset that the server does not know yet.
 *
 * @throws ServiceError `usage` for an added key that is not a public key or was withdrawn.
 */
export function buildKeyset(
  former: KeysetClaims | undefined,
  listed: readonly ListedKey[],
  { add, retire }: { readonly add: readonly string[]; readonly retire: readonly string[] },
): Pick<KeysetClaims, 'keys' | 'retired'> {
  const gone = listed.filter(({ status }) => status === 'retired');
  const retired = new Set([
    ...(former?.retired ?? []),
    ...gone.map(({ public_key_id: id }) => id),
    ...retire,
  ]);
  const all = new Map<string, string>();
  for (const { kid, x } of former?.keys ?? []) all.set(kid, x);
  for (const { public_key_id: id, x } of listed) all.set(id, x);
  for (const x of add) {
    if (!/^[\w-]{43}$/.test(x)) throw invalidKeyError(x, 'is not a public key of 43 characters');
    if (retired.has(publicKeyId(x)))
      throw invalidKeyError(x, 'was withdrawn and cannot be trusted again');
    all.set(publicKeyId(x), x);
  }
  const keys = Array.from(all)
    .filter(([id]) => !retired.has(id))
    .map(([kid, x]): PublicKey => ({ kty: 'OKP', crv: 'Ed25519', x, kid }));
  return { keys, retired: [...retired] };
}

function invalidKeyError(x: string, what: string): ServiceError {
  return new ServiceError('usage', `--add ${x} ${what}`, {
    remedy: 'Copy the public key that `service-local identity keys generate` prints.',
  });
}

export function diffKeysets(
  former: KeysetClaims | undefined,
  next: KeysetClaims,
): { readonly added: readonly string[]; readonly removed: readonly string[] } {
  const ids = (claims: KeysetClaims | undefined): string[] =>
    (claims?.keys ?? []).map(({ kid }) => kid);
  const [before, after] = [ids(former), ids(next)];
  return {
    added: after.filter((id) => !before.includes(id)),
    removed: before.filter((id) => !after.includes(id)),
  };
}
