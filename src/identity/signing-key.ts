import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  sign,
  type KeyObject,
} from 'node:crypto';
import { readFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { ServiceError } from '../base/errors.ts';
import { isSystemError, writeRemedy } from '../base/system-errors.ts';
import { publicKeyId } from '../lease/keys.ts';

/** Signs leases with Ed25519, without exposing the private key. */
export interface Signer {
  /** RFC 7638 thumbprint of the public key. */
  readonly publicKeyId: string;
  /** The public key, base64url. */
  readonly x: string;
  /** Returns the 64 bytes of a signature (RFC 8032). */
  readonly sign: (bytes: Uint8Array) => Uint8Array;
}

const PEM = 'SERVICE_AUTH_LICENSE_LEASE_PRIVATE_KEY_PEM';
const PATH = 'SERVICE_AUTH_LICENSE_LEASE_PRIVATE_KEY_PATH';

/** Only `no_key` suggests a new key: replacing an existing key would begin a rotation. */
const REMEDIES: Readonly<Record<string, string>> = {
  no_key: `Name the file of the key in ${PATH}; create the first key with \`service-local identity keys generate\`.`,
  two_keys: 'Set only one of the two variables, and start the server again.',
  retired_key: `Name the file of the key that signs in ${PATH}; see \`service-local identity keys list\`.`,
};
const CHECK = `Check that ${PATH} names the file of the signing key, and that this user may read it.`;

/**
 * Loads the signing key from the environment, which contains it as PKCS#8 PEM or names its file.
 * @returns `license_lease_unavailable` if the key cannot be used.
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
  if (pem && path) throw unavailable('two_keys', `${PEM} and ${PATH} are both set`);
  if (pem) return { text: pem, origin: PEM };
  if (!path) throw unavailable('no_key', `neither ${PATH} nor ${PEM} is set`);
  try {
    return { text: readFileSync(path, 'utf8'), origin: path };
  } catch (error) {
    // The message of the system contains the path and the reason, but no content.
    throw unavailable('unreadable_key', `${PATH}: ${(error as Error).message}`);
  }
}

/** @throws ServiceError `invalid_signing_key`, whose message contains nothing of the key. */
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

/** @throws ServiceError whose message contains nothing of the key. */
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
      `${origin} holds a key of type ${key.asymmetricKeyType}, but leases are signed with Ed25519`,
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
 * Writes a new key to a new file with mode 0600.
 *
 * @returns the id of the public key.
 * @throws ServiceError `conflict` if the file exists; `output_not_writable`.
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
      throw new ServiceError('conflict', `${path} already exists`, {
        remedy:
          'Name a new file. Existing files are not overwritten, because a lost key cannot be restored.',
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

export function unavailable(reason: string, message: string): ServiceError {
  return new ServiceError('license_lease_unavailable', message, {
    reason,
    remedy: REMEDIES[reason] ?? CHECK,
  });
}
