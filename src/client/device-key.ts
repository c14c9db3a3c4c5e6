import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
} from 'node:crypto';
import { constants, type Stats } from 'node:fs';
import { mkdir, open, stat, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { writeAtomically } from '../atomic-file.ts';
import { isSystemError, ServiceError } from '../errors.ts';
import { publicKeyId } from '../lease/keys.ts';

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
 * Puts the key into a file, as PKCS#8 PEM, that only this user can read. Its directory is made when
 * it is not there. Once this has returned, the key outlasts a power cut.
 *
 * @throws ServiceError `output_not_writable`; `invalid_data` for a directory that others may write
 * to.
 */
export async function writeDeviceKey(path: string, { privateKey }: DeviceKey): Promise<void> {
  await makePrivateDirectory(dirname(path));
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' });
  try {
    await writeAtomically(path, [pem], { mode: 0o600 });
  } catch (error) {
    throw notWritable(path, error);
  }
}

/**
 * Makes the directory of a user's secrets, if it is not there.
 *
 * @throws ServiceError `output_not_writable`; `invalid_data` where others could put files of theirs
 * into it.
 */
export async function makePrivateDirectory(path: string): Promise<void> {
  try {
    await mkdir(path, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw notWritable(path, error);
  }
  checkOwner(path, await stat(path), 0o022, 'written to', '700');
}

function notWritable(path: string, error: unknown): unknown {
  if (!isSystemError(error)) return error;
  return new ServiceError('output_not_writable', `${path}: ${error.message}`, { cause: error });
}

/** Far more than a key takes. */
const MAX_BYTES = 4096;

/**
 * The key in a file; undefined when there is no file.
 *
 * @throws ServiceError `invalid_data`, with a reason, for what is no such key or could be in the
 * hands of others: a link, a file of another user, one that others can read. The message has nothing
 * of what is in it.
 */
export async function readDeviceKey(path: string): Promise<DeviceKey | undefined> {
  let file: FileHandle;
  try {
    // Without O_NONBLOCK a pipe at this place would make the opening wait for ever.
    file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return undefined;
    if (isSystemError(error, 'ELOOP')) {
      throw refused(path, 'symlink', 'is a link', 'Put the key itself there.');
    }
    if (!isSystemError(error)) throw error;
    throw refused(path, 'unreadable', `cannot be read: ${error.message}`, 'See its permissions.');
  }
  try {
    const stats = await file.stat();
    if (!stats.isFile() || stats.size > MAX_BYTES) {
      throw refused(path, 'not_a_key', 'is no file with a key', NEW_KEY);
    }
    checkOwner(path, stats, 0o077, 'read or changed', '600');
    return parseKey(path, await file.readFile('utf8'));
  } finally {
    await file.close();
  }
}

const NEW_KEY = 'Move it away, and enrol this device anew: that makes a new key.';

function parseKey(path: string, pem: string): DeviceKey {
  let key: KeyObject;
  try {
    key = createPrivateKey({ key: pem, format: 'pem' });
  } catch {
    throw refused(path, 'not_a_key', 'holds no private key in PKCS#8 PEM', NEW_KEY);
  }
  const { asymmetricKeyType: type } = key;
  if (type !== 'ed25519') {
    throw refused(path, 'wrong_key_type', `holds a key of type ${type}, not Ed25519`, NEW_KEY);
  }
  return deviceKeyOf(key);
}

/** @param forbidden permissions that nobody but the owner may have; on Windows there are none. */
function checkOwner(
  path: string,
  { uid, mode }: Stats,
  forbidden: number,
  done: string,
  chmod: string,
): void {
  const user = process.getuid?.();
  if (user === undefined) return;
  if (uid !== user) {
    const why = `belongs to the user ${uid}, and this runs as ${user}`;
    throw refused(path, 'foreign_owner', why, 'Run it as the owner.');
  }
  if ((mode & forbidden) !== 0) {
    const why = `can be ${done} by others`;
    throw refused(path, 'not_private', why, `Run \`chmod ${chmod} ${path}\`.`);
  }
}

function refused(path: string, reason: string, why: string, remedy: string): ServiceError {
  return new ServiceError('invalid_data', `${path} ${why}`, { reason, remedy });
}
