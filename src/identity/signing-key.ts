import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  sign,
  type KeyObject,
} from 'node:crypto';
import { readFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { isSystemError, ServiceError, writeRemedy } from '../base/errors.ts';
import { publicKeyId } from '../lease/keys.ts';

/** Makes the Ed25519 signatures of leases. The private key does not leave it. */
export interface Signer {
  /** RFC 7638 thumbprint of the public key. */
  readonly publicKeyId: string;
  /** The public key, base64url. */
  readonly x: string;
  /** 64 bytes, by RFC 8032. */
  readonly sign: (bytes: Uint8Array) => Uint8Array;
}

const PEM = 'SERVICE_AUTH_LICENSE_LEASE_PRIVATE_KEY_PEM';
const PATH = 'SERVICE_AUTH_LICENSE_LEASE_PRIVATE_KEY_PATH';

/** Never to make a new key where there should be one: that would begin a rotation. */
const REMEDIES: Readonly<Record<string, string>> = {
  no_key: `Name the file of the key in ${PATH}; make a first one with \`service-local identity keys generate\`.`,
  two_keys: 'Start the server with one of them.',
  retired_key: `Name the file of the key that signs in ${PATH}; see \`service-local identity keys list\`.`,
};
const CHECK = `Check that ${PATH} names the file of the key that signs, and that this user may read it.`;

/**
 * The signing key that the environment gives, as PKCS#8 PEM or as the path of a file with it; or why
 * it cannot be used, as `license_lease_unavailable`.
 */
export function loadSigner(env: NodeJS.ProcessEnv): Signer | ServiceError {
  try {
    const { text, origin } = readPem(env);
    return signerOf(privateKeyOf(text, origin));
  } catch (error) {
    if (error instanceof ServiceError) return error;
    throw error;
  }
}

function readPem(env: NodeJS.ProcessEnv): { readonly text: string; readonly origin: string } {
  const { [PEM]: pem, [PATH]: path } = env;
  if (pem && path) throw unavailable('two_keys', `${PEM} and ${PATH} are both set: keep one`);
  if (pem) return { text: pem, origin: PEM };
  if (!path) throw unavailable('no_key', `neither ${PATH} nor ${PEM} is set`);
  try {
    return { text: readFileSync(path, 'utf8'), origin: path };
  } catch (error) {
    // The message of the system names the path and the reason, and nothing of the content.
    throw unavailable('unreadable_key', `${PATH}: ${(error as Error).message}`);
  }
}

/**
 * A signer from a PEM file that the caller names.
 * @throws ServiceError `invalid_signing_key`, whose message has nothing of the key.
 */
export function readSigner(path: string): Signer {
  const fail = (message: string): ServiceError =>
    new ServiceError('invalid_signing_key', message, {
      remedy: 'Name a PEM file that `service-local identity root init` wrote.',
    });
  let pem: string;
  try {
    pem = readFileSync(path, 'utf8');
  } catch (error) {
    throw fail((error as Error).message);
  }
  try {
    return signerOf(privateKeyOf(pem, path));
  } catch (error) {
    throw error instanceof ServiceError ? fail(error.message) : error;
  }
}

/** @throws ServiceError whose message has nothing of the key. */
function privateKeyOf(pem: string, origin: string): KeyObject {
  let key: KeyObject;
  try {
    key = createPrivateKey({ key: pem, format: 'pem' });
  } catch {
    throw unavailable('not_a_key', `${origin} does not hold a private key in PKCS#8 PEM`);
  }
  if (key.asymmetricKeyType !== 'ed25519') {
    throw unavailable(
      'wrong_key_type',
      `${origin} holds a key of type ${key.asymmetricKeyType}, and leases are signed with Ed25519`,
    );
  }
  return key;
}

export function signerOf(key: KeyObject): Signer {
  const { x } = createPublicKey(key).export({ format: 'jwk' });
  return {
    publicKeyId: publicKeyId(x!),
    x: x!,
    sign: (bytes) => sign(null, bytes, key),
  };
}

/**
 * Writes a new key to a new file for its owner alone.
 *
 * @returns the id of its public key.
 * @throws ServiceError `conflict` for a file that is there; `output_not_writable`.
 */
export async function generateSigningKey(path: string): Promise<string> {
  const { privateKey } = generateKeyPairSync('ed25519');
  try {
    const file = await open(path, 'wx', 0o600);
    try {
      await file.writeFile(privateKey.export({ format: 'pem', type: 'pkcs8' }));
      await file.sync();
    } finally {
      await file.close();
    }
  } catch (error) {
    if (!isSystemError(error)) throw error;
    if (error.code === 'EEXIST') {
      throw new ServiceError('conflict', `${path} is there already`, {
        remedy: 'Name a file that is not: a key that is lost cannot be made again.',
      });
    }
    throw new ServiceError('output_not_writable', `cannot write ${path} (${error.code})`, {
      remedy: writeRemedy(
        error,
        'Name a file in a directory that exists and that you may write to.',
      ),
      cause: error,
    });
  }
  return signerOf(privateKey).publicKeyId;
}

/** Why nothing can be signed. */
export function unavailable(reason: string, message: string): ServiceError {
  return new ServiceError('license_lease_unavailable', message, {
    reason,
    remedy: REMEDIES[reason] ?? CHECK,
  });
}
