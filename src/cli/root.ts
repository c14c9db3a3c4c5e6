import { dirname, resolve } from 'node:path';
import type { getKeyset, StoredTrust, storeTrust } from '../api/keys.ts';
import type { Client } from '../client/client.ts';
import { ServiceError } from '../base/errors.ts';
import type { SignatureCount, TrustDocument } from '../identity/root-documents.ts';
import type { Signer } from '../identity/signing-key.ts';
import type { KeysetClaims } from '../lease/root.ts';
import { parseSeconds } from '../base/seconds.ts';
import { connect } from './connect.ts';
import { readDocumentFile } from './document-files.ts';
import { parseCountIn } from './parse-count.ts';
import type { Output } from './output.ts';
import { sendWithStepUp } from './step-up.ts';
import type { Context } from './verb.ts';

export const CHAIN_OPTION = {
  value: 'file',
  description: 'the file with the chain of roots; it is updated in place',
  required: true,
  complete: 'file',
} as const;

export const KEY_OPTION = {
  value: 'file',
  description: 'a private key to sign with, as PEM; repeat it for several',
  repeat: true,
  complete: 'file',
} as const;

export function parseLifetime(text: string): number {
  const seconds = parseSeconds(text);
  if (seconds > 0) return seconds;
  throw new ServiceError('usage', 'the lifetime must be longer than 0', {
    remedy: 'Write it as 365d.',
  });
}

/** A new root is signed by its own keys and by the keys of the previous root, 16 in all. */
export const MAX_ROOT_KEYS = 8;

export const parseKeyCount = parseCountIn(1, MAX_ROOT_KEYS);

/** @throws ServiceError `invalid_signing_key`; `usage` for a key that is given twice */
export async function readSigners(
  { cwd }: Context,
  files: readonly string[],
): Promise<readonly Signer[]> {
  const { readSigner } = await import('../identity/signing-key.ts');
  const signers = files.map((file) => readSigner(resolve(cwd, file)));
  const ids = signers.map(({ publicKeyId }) => publicKeyId);
  const twice = ids.findIndex((id, index) => ids.indexOf(id) < index);
  if (twice === -1) return signers;
  throw new ServiceError('usage', `${files[twice]} holds the same key as another --key`);
}

/**
 * Rejects keys whose signatures would not count.
 * @throws ServiceError `invalid_signing_key`
 */
export function requireKnownKeys(
  signers: readonly Signer[],
  keys: readonly { readonly kid: string }[],
  what: string,
): void {
  const stranger = signers.find(({ publicKeyId }) => !keys.some(({ kid }) => kid === publicKeyId));
  if (stranger === undefined) return;
  throw new ServiceError('invalid_signing_key', `${stranger.publicKeyId} is ${what}`, {
    remedy: 'Sign with the keys that `service-local identity root show FILE` names.',
  });
}

/** @throws ServiceError `file_not_found`, `invalid_data` */
export async function readChain({ cwd }: Context, file: string): Promise<TrustDocument> {
  const { readTrustDocument } = await import('../identity/root-documents.ts');
  return readTrustDocument(readDocumentFile(file, cwd).text, file);
}

export async function writeChain(
  { cwd }: Context,
  file: string,
  document: TrustDocument,
): Promise<void> {
  const { writeOutFile } = await import('./out-file.ts');
  await writeOutFile({ path: resolve(cwd, file) }, formatDocument(document));
}

/** With the bare keys, too, so that the file can serve as the keyset of a verifier. */
export function formatDocument(document: TrustDocument & { readonly keys?: unknown }): string {
  return `${JSON.stringify(document, null, 2)}\n`;
}

/**
 * Makes private keys in new files.
 * @throws ServiceError `conflict` where one of the files exists; no key is made then.
 */
export async function makeRootKeys(
  directory: string,
  names: readonly string[],
): Promise<readonly { readonly path: string; readonly signer: Signer }[]> {
  const { existsSync } = await import('node:fs');
  const { generateSigningKey, readSigner } = await import('../identity/signing-key.ts');
  const paths = names.map((name) => resolve(directory, name));
  const taken = paths.find((path) => existsSync(path));
  if (taken !== undefined) throw existsError(taken);
  const made = [];
  for (const path of paths) {
    await generateSigningKey(path);
    made.push({ path, signer: readSigner(path) });
  }
  return made;
}

export function existsError(path: string): ServiceError {
  return new ServiceError('conflict', `${path} already exists`, {
    remedy: 'Name another directory with --out: root keys are never overwritten.',
  });
}

export function directoryOf({ cwd }: Context, file: string): string {
  return dirname(resolve(cwd, file));
}

/** Trust document that the server publishes; undefined if it has no root. */
export async function publishedDocument(server: Client): Promise<TrustDocument | undefined> {
  const { readTrustDocument } = await import('../identity/root-documents.ts');
  const answer = await server.call<typeof getKeyset>('get', '/.well-known/license-keys.json', {});
  if (answer.roots === undefined) return undefined;
  return readTrustDocument(JSON.stringify(answer), '/.well-known/license-keys.json');
}

/** The signed keyset that machines may hold, signed by a root or by a signing key. */
export async function publishedKeyset(server: Client): Promise<KeysetClaims | undefined> {
  const { keysetClaims } = await import('../identity/root-documents.ts');
  const { keyset } = await server.call<typeof getKeyset>(
    'get',
    '/.well-known/license-keys.json',
    {},
  );
  return keysetClaims({ roots: [], keyset });
}

/**
 * Stores a document on the server. A first root and a replacement require a second factor.
 * @throws ServiceError of the server
 */
export async function uploadTrust(
  context: Context,
  { roots, keyset }: TrustDocument,
  { code, replace }: { readonly code: string | undefined; readonly replace: boolean },
): Promise<StoredTrust> {
  const { fingerprintOf } = await import('../identity/root-documents.ts');
  const server = await connect(context);
  const served = replace ? await publishedDocument(server) : undefined;
  const body = {
    roots: roots as never,
    keyset: keyset as never,
    ...(served && { replaces: fingerprintOf(served) }),
  };
  const put = (headers: Readonly<Record<string, string>>): Promise<StoredTrust> =>
    server.call<typeof storeTrust>('put', '/identity/root', { headers, body });
  const target = `root:${fingerprintOf({ roots, keyset })}`;
  return sendWithStepUp(context, server, { action: 'identity.root.set', target, code }, put);
}

/** One line for each signature that is missing. */
export function showMissing(out: Output, what: string, counts: readonly SignatureCount[]): void {
  for (const { by, count, threshold } of counts) {
    if (count >= threshold) continue;
    const whose = by === 'root' ? 'its root keys' : 'the keys of the previous root';
    out.line(`${what} has ${count} of ${threshold} signatures by ${whose}.`);
  }
}
