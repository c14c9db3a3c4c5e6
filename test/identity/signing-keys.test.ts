import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ServiceError } from '../../src/base/errors.ts';
import { issueLease } from '../../src/identity/issue.ts';
import {
  listKeys,
  publishedKeys,
  registerSigner,
  retireKey,
} from '../../src/identity/signing-keys.ts';
import { loadSigner, type Signer } from '../../src/identity/signing-key.ts';
import { formatTime } from '../../src/lease/time.ts';
import { DATABASES } from '../storage/databases.ts';
import {
  DAY,
  ed25519Key,
  newLeaseWorld,
  newSigner,
  rsaKey,
  type LeaseWorld,
} from './lease-world.ts';

const PEM = 'SERVICE_AUTH_LICENSE_LEASE_PRIVATE_KEY_PEM';
const PATH = 'SERVICE_AUTH_LICENSE_LEASE_PRIVATE_KEY_PATH';

describe('the signing key', () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'keys-'));
  });
  afterEach(() => rm(directory, { recursive: true }));

  test('the signing key is the same from the environment and from a file', async () => {
    const pem = ed25519Key();
    const path = join(directory, 'key.pem');
    await writeFile(path, pem);
    const [one, other] = [loadSigner({ [PEM]: pem }), loadSigner({ [PATH]: path })];
    expect(one).toMatchObject({ publicKeyId: expect.stringMatching(/^[\w-]{43}$/) as string });
    expect((other as Signer).publicKeyId).toBe((one as Signer).publicKeyId);
  });

  test('a missing key or a key of another type is an error that reveals nothing of the key', async () => {
    const path = join(directory, 'key.pem');
    const rsa = rsaKey();
    await writeFile(path, rsa.slice(0, -60));
    const cases: readonly [NodeJS.ProcessEnv, string][] = [
      [{}, 'no_key'],
      [{ [PEM]: ed25519Key(), [PATH]: path }, 'two_keys'],
      [{ [PATH]: join(directory, 'none.pem') }, 'unreadable_key'],
      [{ [PATH]: directory }, 'unreadable_key'],
      [{ [PATH]: path }, 'not_a_key'],
      [{ [PEM]: 'SECRET' }, 'not_a_key'],
      [{ [PEM]: rsa }, 'wrong_key_type'],
    ];
    for (const [env, reason] of cases) {
      const fault = loadSigner(env);
      expect(fault).toBeInstanceOf(ServiceError);
      expect(fault).toMatchObject({ code: 'license_lease_unavailable', reason, status: 503 });
      expect((fault as ServiceError).message).not.toMatch(/SECRET|MII/);
    }
  });
});

describe.each(DATABASES)('the rotation of keys on %s', (kind) => {
  let world: LeaseWorld;
  beforeEach(async () => {
    world = await newLeaseWorld(kind);
  });
  afterEach(() => world.close());

  const ids = async (): Promise<string[]> => {
    const keys = await publishedKeys(world.identity.storage.read);
    return keys.map(({ kid, status }) => `${kid} ${status}`);
  };

  test('a server that starts with a new key activates it, and the former key begins to retire', async () => {
    const former = world.identity.signer as Signer;
    expect(await ids()).toEqual([`${former.publicKeyId} active`]);
    world.now += DAY;
    const next = await newSigner(world.identity);
    expect(await ids()).toEqual([`${next.publicKeyId} active`, `${former.publicKeyId} retiring`]);
    expect(await registerSigner(world.identity, next)).toBe(next);
    expect(await registerSigner(world.identity, former)).toBe(former);
    expect(await ids()).toEqual([`${former.publicKeyId} active`, `${next.publicKeyId} retiring`]);
  });

  test('a key can be retired once none of its leases can be in its grace period', async () => {
    const { identity, caller } = world;
    const former = identity.signer as Signer;
    await issueLease(identity, caller, { deployment_id: 'tokyo' });
    world.now += 1;
    const signer = await newSigner(identity);
    const retire = (id: string): Promise<unknown> => retireKey(identity, 'administrator:root', id);
    await expect(retire(signer.publicKeyId)).rejects.toMatchObject({
      code: 'key_in_use',
      reason: 'active',
    });
    const end = Math.floor(world.now / 1000) * 1000 + 10 * DAY + 300_000;
    await expect(retire(former.publicKeyId)).rejects.toMatchObject({
      code: 'key_in_use',
      reason: 'outstanding_leases',
      message: expect.stringContaining(formatTime(end)) as string,
    });
    const [, state] = await listKeys(identity.storage.read, world.now);
    expect(state).toMatchObject({ status: 'retiring', outstanding_leases: 1, retirable_at: end });

    world.now = end - 1;
    await expect(retire(former.publicKeyId)).rejects.toMatchObject({ code: 'key_in_use' });
    world.now = end;
    expect(await retire(former.publicKeyId)).toMatchObject({ status: 'retired' });
    expect(await ids()).toEqual([`${signer.publicKeyId} active`]);
    expect(await registerSigner(identity, former)).toMatchObject({
      code: 'license_lease_unavailable',
      reason: 'retired_key',
    });
    await expect(retire('nobody')).rejects.toMatchObject({ code: 'not_found' });
  });
});
