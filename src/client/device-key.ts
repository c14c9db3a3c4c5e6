import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
} from 'node:crypto';
import { ServiceError } from '../base/errors.ts';
import { publicKeyId } from '../lease/keys.ts';
import { createPrivateFile, readPrivateFile } from '../base/private-file.ts';

/** The key pair that identifies this device to a server. */
export interface DeviceKey {
  /** RFC 7638 thumbprint of the public key. */
  readonly device_id: string;
  /** The public key, base64url. */
  readonly x: string;
  readonly privateKey: KeyObject;
}

export function newDeviceKey(): DeviceKey {
  return deviceKeyOf(generateKeyPairSync('ed25519').privateKey);
}

function deviceKeyOf(privateKey: KeyObject): DeviceKey {
  const { x } = createPublicKey(privateKey).export({ format: 'jwk' });
  return { device_id: publicKeyId(x!), x: x!, privateKey };
}

/**
 * Reads the key in a file, or creates the file (PKCS#8 PEM) if it does not exist. Concurrent callers
 * get the same key.
 *
 * @throws ServiceError as `readDeviceKey` and `createPrivateFile`
 */
export async function deviceKeyAt(path: string): Promise<DeviceKey> {
  const existing = await readDeviceKey(path);
  if (existing !== undefined) return existing;
  const { privateKey } = newDeviceKey();
  await createPrivateFile(path, privateKey.export({ type: 'pkcs8', format: 'pem' }));
  return deviceKeyAt(path);
}

/**
 * Reads the key in a file; returns undefined if there is no file.
 *
 * @throws ServiceError as `readPrivateFile`, and `invalid_data` for a file without an Ed25519 key;
 * the error contains nothing of the file.
 */
export async function readDeviceKey(path: string): Promise<DeviceKey | undefined> {
  const pem = await readPrivateFile(path);
  if (pem === undefined) return undefined;
  let key: KeyObject;
  try {
    key = createPrivateKey({ key: pem, format: 'pem' });
  } catch {
    throw notAKey('not_a_key', `${path} does not contain a private key in PKCS#8 PEM`);
  }
  const { asymmetricKeyType: type } = key;
  if (type !== 'ed25519') {
    throw notAKey('wrong_key_type', `${path} contains a key of type ${type}, not Ed25519`);
  }
  return deviceKeyOf(key);
}

function notAKey(reason: string, message: string): ServiceError {
  return new ServiceError('invalid_data', message, {
    reason,
    remedy: 'Move the file away and enroll this machine again; enrollment creates a new key.',
  });
}
