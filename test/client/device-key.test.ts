import { execFile } from 'node:child_process';
import { createPublicKey, generateKeyPairSync, sign, verify } from 'node:crypto';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { deviceKeyAt, newDeviceKey, readDeviceKey } from '../../src/client/device-key.ts';
import { writePrivateFile } from '../../src/base/private-file.ts';
import { ServiceError } from '../../src/base/errors.ts';
import { publicKeyId } from '../../src/lease/keys.ts';

let directory: string;
let home: string;
let path: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'service-local-key-'));
  home = join(directory, 'home');
  path = join(home, 'device.key');
});
afterEach(() => rmSync(directory, { recursive: true }));

const modeOf = (of: string): number => statSync(of).mode & 0o777;

describe('a device key', () => {
  test('a device key is a new pair whose id is the thumbprint of the public key', () => {
    const { device_id, x, privateKey } = newDeviceKey();
    expect(device_id).toBe(publicKeyId(x));
    const publicKey = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
    const message = Buffer.from('message');
    expect(verify(null, message, publicKey, sign(null, message, privateKey))).toBe(true);
    expect(newDeviceKey().device_id).not.toBe(device_id);
  });

  test('concurrent callers get the same device key', async () => {
    const keys = await Promise.all(Array.from({ length: 5 }, () => deviceKeyAt(path)));
    const { device_id } = (await readDeviceKey(path))!;
    for (const key of keys) expect(key.device_id).toBe(device_id);
    expect(readdirSync(home)).toEqual(['device.key']);
  });

  test('a device key is private and read as it was written', async () => {
    expect(await readDeviceKey(path)).toBeUndefined();
    const key = await deviceKeyAt(path);
    expect([modeOf(home), modeOf(path)]).toEqual([0o700, 0o600]);
    expect(readdirSync(home)).toEqual(['device.key']);
    expect(readFileSync(path, 'utf8')).toMatch(/^-----BEGIN PRIVATE KEY-----\n/);
    const { device_id, x, privateKey } = (await readDeviceKey(path))!;
    expect({ device_id, x }).toEqual({ device_id: key.device_id, x: key.x });
    expect(privateKey.equals(key.privateKey)).toBe(true);
  });

  test('a device key is private from the start with any umask', async () => {
    const before = process.umask(0);
    try {
      await deviceKeyAt(path);
    } finally {
      process.umask(before);
    }
    expect([modeOf(home), modeOf(path)]).toEqual([0o700, 0o600]);
  });
});

describe('refused is a key', () => {
  /** `reason: why`; the message begins with the path. */
  const refusal = async (): Promise<string> => {
    const error = await readDeviceKey(path).catch((thrown: unknown) => thrown as ServiceError);
    if (!(error instanceof ServiceError)) return 'accepted';
    expect(error).toMatchObject({
      code: 'invalid_data',
      remedy: expect.stringMatching(/\.$/) as string,
    });
    return `${error.reason}: ${error.message.replace(`${path} `, '')}`;
  };

  beforeEach(() => deviceKeyAt(path));

  test('a device key behind a link is refused', async () => {
    const elsewhere = join(home, 'elsewhere.key');
    await deviceKeyAt(elsewhere);
    rmSync(path);
    symlinkSync(elsewhere, path);
    expect(await refusal()).toBe('symlink: is a symbolic link');
  });

  test.each([0o640, 0o604, 0o620, 0o602, 0o660, 0o777])(
    'a device key with the permissions %o is refused',
    async (mode) => {
      chmodSync(path, mode);
      expect(await refusal()).toBe('not_private: can be read or changed by other users');
    },
  );

  test('a device key of another user is refused', async () => {
    const { uid } = statSync(path);
    const getuid = vi.spyOn(process, 'getuid').mockReturnValue(uid + 1);
    try {
      const why = `belongs to user ${uid}, but this process runs as user ${uid + 1}`;
      expect(await refusal()).toBe(`foreign_owner: ${why}`);
    } finally {
      getuid.mockRestore();
    }
  });

  test('a directory or pipe in place of the device key is refused', async () => {
    rmSync(path);
    mkdirSync(path, { mode: 0o700 });
    expect(await refusal()).toBe('not_a_file: is not a regular file of the expected size');
    rmSync(path, { recursive: true });
    await promisify(execFile)('mkfifo', ['-m', '600', path]);
    expect(await refusal()).toBe('not_a_file: is not a regular file of the expected size');
  });

  test('an invalid device key is refused without showing its content', async () => {
    const pem = readFileSync(path, 'utf8');
    const secrets = [
      '',
      'secret-secret',
      pem.slice(0, 60),
      pem.replaceAll(/[A-Za-z]{5}/g, 'xxxxx'),
    ];
    for (const text of secrets) {
      writeFileSync(path, text);
      expect(await refusal()).toBe('not_a_key: does not contain a private key in PKCS#8 PEM');
    }
    writeFileSync(path, pem.padEnd(256 * 1024 + 1, ' '));
    expect(await refusal()).toBe('not_a_file: is not a regular file of the expected size');
  });

  test('a device key of another type is refused', async () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    writeFileSync(path, privateKey.export({ type: 'pkcs8', format: 'pem' }));
    expect(await refusal()).toBe('wrong_key_type: contains a key of type ec, not Ed25519');
  });
});

describe('the directory of secrets', () => {
  test('the directory of secrets is created with its parents, or left unchanged', async () => {
    const deep = join(home, 'a', 'b');
    await writePrivateFile(join(deep, 'file'), '');
    expect([modeOf(home), modeOf(deep)]).toEqual([0o700, 0o700]);
    chmodSync(deep, 0o755);
    await writePrivateFile(join(deep, 'file'), '');
    expect(modeOf(deep)).toBe(0o755);
  });

  test('a link in place of a secret is not followed', async () => {
    mkdirSync(home, { mode: 0o700 });
    const elsewhere = join(directory, 'elsewhere');
    writeFileSync(elsewhere, 'as before');
    symlinkSync(elsewhere, path);
    await writePrivateFile(path, 'another');
    expect(readFileSync(elsewhere, 'utf8')).toBe('as before');
    expect(readFileSync(path, 'utf8')).toBe('another');
  });

  test('a directory that other users can write to is refused', async () => {
    mkdirSync(home);
    for (const mode of [0o770, 0o707, 0o777]) {
      chmodSync(home, mode);
      await expect(deviceKeyAt(path)).rejects.toMatchObject({
        code: 'invalid_data',
        reason: 'not_private',
        message: `${home} can be written to by other users`,
        remedy: `Run \`chmod 700 ${home}\`.`,
      });
    }
    expect(readdirSync(home)).toEqual([]);
  });

  test('a file in place of the directory is refused', async () => {
    writeFileSync(home, '');
    await expect(writePrivateFile(path, '')).rejects.toMatchObject({
      code: 'output_not_writable',
      message: expect.stringContaining(home) as string,
    });
  });
});
