import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
} from 'node:crypto';
import { ServiceError } from '../base/errors.ts';
import { publicKeyId } from '../lease/keys.ts';
import { createPrivateFile, readPrivateFile } from './private-file.ts';

/** The key pair by which a server knows this device. */
export interface DeviceKey {
  /** RFC 7638 thumbprint of the public key. */
  readonly device_id: string;
  /** The public key, base64url. */
  readonly x: string;
  /** Ed25519. */
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
 * The key in a file, which is made, as PKCS#8 PEM, when it is not there. All who ask at once for one
 * that is not there get the same.
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
 * The key in a file; undefined when there is no file.
 *
 * @throws ServiceError as `readPrivateFile`, and `invalid_data` for what is no such key, with nothing
 * of what is in the file.
 */
export async function readDeviceKey(path: string): Promise<DeviceKey | undefined> {
  const pem = await readPrivateFile(path);
  if (pem === undefined) return undefined;
  let key: KeyObject;
  try {
    key = createPrivateKey({ key: pem, format: 'pem' });
  } catch {
    throw notAKey('not_a_key', `${path} holds no private key in PKCS#8 PEM`);
  }
  const { asymmetricKeyType: type } = key;
  if (type !== 'ed25519') {
    throw notAKey('wrong_key_type', `${path} holds a key of type ${type}, not Ed25519`);
  }
  return deviceKeyOf(key);
}

function notAKey(reason: string, message: string): ServiceError {
  return new ServiceError('invalid_data', message, {
    reason,
    remedy: 'Move it away, and enroll this machine again, which creates a new key.',
  });
}
