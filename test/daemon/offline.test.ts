import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { isAnnouncementOf } from '../../src/gate/anchor.ts';
import { exportRequest, importLease, type Imported } from '../../daemon/offline.ts';
import { NO_STATE, readState, writeState } from '../../daemon/daemon-state.ts';
import { deviceKeyAt } from '../../src/client/device-key.ts';
import { holdLock } from '../../src/base/file-lock.ts';
import { readLicense } from '../../src/gate/license.ts';
import type { LeaseClaims } from '../../src/lease/claims.ts';
import { formatTime } from '../../src/lease/time.ts';
import { licenseFiles, type LicenseFiles } from '../../src/gate/license-files.ts';
import type { OfflineRequestClaims } from '../../src/base/proof-claims.ts';
import { claimsOf, issue, testKey, type LeaseFile, type SigningKey } from '../lease/issuer.ts';

const KEY = testKey(1);
const NEXT_KEY = testKey(2);
const NOW = Date.UTC(2026, 0, 6);
const DAY = 86_400_000;

let home: string;
let files: LicenseFiles;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'service-local-offline-'));
  files = licenseFiles(home, {});
});
afterEach(() => rmSync(home, { recursive: true }));

const keyset = (...keys: SigningKey[]): string =>
  JSON.stringify({ keys: keys.map(({ jwk }) => jwk) });
const lease = (change: Partial<LeaseClaims> = {}, key = KEY): string =>
  issue(claimsOf(key, { issued_at: formatTime(NOW), ...change }), key);
/** @param enclosed keys in the file of the lease. */
const bring = (text: string, enclosed?: string, now = NOW): Promise<Imported> =>
  importLease(files, { lease: text, enclosed }, now);
const bringWith = (text: string, named: string): Promise<Imported> =>
  importLease(files, { lease: text, named }, NOW);
const content = (): Record<string, string> =>
  Object.fromEntries(
    readdirSync(home)
      .filter((name) => !name.includes('.lock'))
      .map((name) => [name, readFileSync(join(home, name), 'utf8')]),
  );
const read = (jwt: string): OfflineRequestClaims =>
  JSON.parse(Buffer.from(jwt.split('.')[1]!, 'base64url').toString()) as OfflineRequestClaims;

describe('a request', () => {
  const MACHINE = 'm'.repeat(43);

  test('a request presents the held lease, and stays the same renewal until a lease is imported', async () => {
    const first = await exportRequest(files, 'vault', NOW, async () => MACHINE);
    const key = await deviceKeyAt(files.key);
    expect(read(first.jwt)).toEqual({
      iss: key.device_id,
      sub: key.device_id,
      iat: NOW / 1000,
      jwk: { kty: 'OKP', crv: 'Ed25519', x: key.x },
      name: 'vault',
      renewal_id: first.renewal_id,
      machine_hash: MACHINE,
    });
    const again = await exportRequest(files, 'vault', NOW + DAY);
    expect(again).toMatchObject({ renewal_id: first.renewal_id, lease_id: null });

    const change = { device_thumbprint: key.device_id, renewal_id: first.renewal_id };
    const text = lease(change);
    await bring(text, keyset(KEY));
    expect(await readState(files.state)).toMatchObject({ pending: null });
    const next = await exportRequest(files, 'vault', NOW);
    expect(next.renewal_id).not.toBe(first.renewal_id);
    expect(next.lease_id).toBe('lease-1');
    expect(read(next.jwt).lease).toEqual(JSON.parse(text));
  });

  test('a request continues a renewal that the daemon began', async () => {
    const pending = { renewal_id: 'begun', lease_id: null };
    await writeState(files.state, { ...NO_STATE, pending, failures_in_row: 3 });
    expect(await exportRequest(files, 'vault', NOW)).toMatchObject({ renewal_id: 'begun' });
    expect(await readState(files.state)).toMatchObject({ pending, failures_in_row: 3 });
  });

  test('a request does not present the lease of another machine', async () => {
    const text = lease({ device_thumbprint: testKey(9).jwk.kid });
    writeFileSync(files.keyset, keyset(KEY));
    writeFileSync(files.lease, text);
    const { jwt, lease_id } = await exportRequest(files, 'vault', NOW);
    expect([lease_id, read(jwt).lease]).toEqual([null, undefined]);
  });
});

describe('an imported lease', () => {
  test('an imported lease is stored with its keys and clears earlier failures', async () => {
    const last_error = { at: 'then', code: 'license_revoked', reason: null, message: 'revoked' };
    await writeState(files.state, { ...NO_STATE, last_error, failures_in_row: 3 });
    const text = lease();
    const key_ids = [KEY.jwk.kid];
    const taken = { isNew: true, by: 'enclosed', key_ids };
    expect(await bring(text, keyset(KEY))).toMatchObject(taken);
    expect(content()).toMatchObject({
      'license_lease.json': text,
      'license_lease.json.bak': text,
      'license_public_key.json': keyset(KEY),
    });
    expect(await readState(files.state)).toMatchObject({ last_error: null, failures_in_row: 0 });
    expect(await bring(text)).toMatchObject({ isNew: false, by: 'machine', key_ids });
  });

  test('an imported lease is accepted under a named new key, which may be the only trusted one afterwards', async () => {
    await bring(lease(), keyset(KEY));
    const next = lease({ lease_id: 'lease-2', issued_at: formatTime(NOW + 1000) }, NEXT_KEY);
    const before = content();
    await expect(bring(next, keyset(NEXT_KEY))).rejects.toMatchObject({
      code: 'invalid_data',
      reason: 'unknown_key',
      remedy: expect.stringMatching(/current keys of the issuer with --keyset FILE/) as string,
    });
    expect(content()).toEqual(before);
    expect(await bringWith(next, keyset(NEXT_KEY))).toMatchObject({ isNew: true, by: 'named' });
    expect(content()['license_public_key.json']).toBe(keyset(NEXT_KEY));
  });

  test('enclosed keys do not replace truncated ones', async () => {
    writeFileSync(files.keyset, keyset(KEY).slice(0, 50));
    await expect(bring(lease(), keyset(KEY))).rejects.toMatchObject({
      reason: 'not_json',
      message: expect.stringContaining('the keyset of this machine') as string,
      remedy: expect.stringContaining('--keyset FILE') as string,
    });
    expect(await bringWith(lease(), keyset(KEY))).toMatchObject({ isNew: true });
  });

  test('enclosed keys do not count on a machine that lost the keys of its lease', async () => {
    await bring(lease(), keyset(KEY));
    rmSync(files.keyset);
    const before = content();
    const forged = lease({ lease_id: 'lease-2', issued_at: formatTime(NOW + 1000) }, NEXT_KEY);
    await expect(bring(forged, keyset(NEXT_KEY))).rejects.toMatchObject({
      reason: 'unknown_key',
      remedy: expect.stringContaining('--keyset FILE') as string,
    });
    expect(content()).toEqual(before);
    expect(await bringWith(lease(), keyset(KEY))).toMatchObject({ by: 'named' });
  });

  test('an expired lease leaves the renewal pending', async () => {
    const { renewal_id, device_id } = await exportRequest(files, 'vault', NOW);
    const mine = { renewal_id, device_thumbprint: device_id };
    const late = lease({ ...mine, ttl_seconds: 600, grace_period_seconds: 0 });
    await expect(bring(late, keyset(KEY), NOW + DAY)).rejects.toMatchObject({ reason: 'expired' });
    expect(await exportRequest(files, 'vault', NOW + DAY)).toMatchObject({ renewal_id });
    const another = lease({ ...mine, issued_at: formatTime(NOW + DAY) });
    expect(await bring(another, keyset(KEY), NOW + DAY)).toMatchObject({ isNew: true });
    expect(await readState(files.state)).toMatchObject({ pending: null });
  });

  test.each([
    ['installation', { deployment_id: 'old' }, 'other_installation'],
    ['issuer', { issuer: 'old' }, 'other_issuer'],
  ])(
    'a lease of another %s replaces the held one only if a person requests it',
    async (_what, claims, reason) => {
      await bring(lease(claims), keyset(KEY));
      const text = lease({ lease_id: 'lease-2', issued_at: formatTime(NOW + 11 * DAY) });
      await expect(bring(text, undefined, NOW + 11 * DAY)).rejects.toMatchObject({
        code: 'conflict',
        reason,
        remedy: expect.stringContaining('license import FILE --replace') as string,
      });
      const replaced = await importLease(files, { lease: text }, NOW + 11 * DAY, { replace: true });
      expect(replaced).toMatchObject({ isNew: true });
      expect((await readLicense(files, NOW + 11 * DAY)).leases[0]?.claims.lease_id).toBe('lease-2');
      const { announced_anchor } = await readState(files.state);
      expect(isAnnouncementOf(announced_anchor!, readFileSync(files.root, 'utf8'))).toBe(true);
    },
  );

  const ELSEWHERE = { binding: 'machine', machine_hash: 'm'.repeat(43) } as const;
  const WHERE = expect.stringMatching(/^(other_machine|no_machine_id)$/) as string;
  const OTHER = { device_thumbprint: testKey(9).jwk.kid };
  const sealed = (): LeaseFile => JSON.parse(lease()) as LeaseFile;
  const forged = (): string =>
    JSON.stringify({
      ...sealed(),
      payload: (JSON.parse(lease({ entitlements: [] })) as LeaseFile).payload,
    });

  test.each<[what: string, text: string, error: object]>([
    ['a file without a lease', '{}', { code: 'invalid_data', reason: 'not_an_envelope' }],
    ['half a lease', lease().slice(0, 99), { code: 'invalid_data', reason: 'not_json' }],
    ['a forged lease', forged(), { code: 'invalid_data', reason: 'bad_signature' }],
    [
      'a lease by an unknown key',
      lease({}, NEXT_KEY),
      { code: 'invalid_data', reason: 'unknown_key' },
    ],
    ['a lease of another device', lease(OTHER), { reason: 'other_device' }],
    ['a lease bound to another machine', lease(ELSEWHERE), { code: 'invalid_data', reason: WHERE }],
    [
      'a lease of another installation',
      lease({ deployment_id: 'other', issued_at: formatTime(NOW + 1000) }),
      { code: 'conflict', reason: 'other_installation' },
    ],
    [
      'an older lease',
      lease({ lease_id: 'lease-0', issued_at: formatTime(NOW - 1000) }),
      {
        code: 'conflict',
        reason: 'older_lease',
        remedy: expect.stringContaining('issued later is used') as string,
      },
    ],
    [
      'a lease that has ended',
      lease({ issued_at: formatTime(NOW - 10 * DAY) }),
      { code: 'license_invalid', reason: 'expired' },
    ],
  ])('the import of %s fails and changes nothing', async (_what, text, error) => {
    await bring(lease(), keyset(KEY));
    await deviceKeyAt(files.key);
    const before = content();
    await expect(bring(text)).rejects.toMatchObject(error);
    expect(content()).toEqual(before);
  });

  test('an import fails without keys, and while another process holds the lock', async () => {
    await expect(bring(lease(), 'x')).rejects.toMatchObject({ reason: 'not_json' });
    await expect(bring(lease())).rejects.toMatchObject({
      reason: 'unknown_key',
      remedy: expect.stringContaining('--keyset') as string,
    });
    writeFileSync(files.lease, lease());
    rmSync(files.lock);
    const lock = await holdLock(files.lock, 0);
    const waiting = bringWith(lease(), keyset(KEY));
    lock.release();
    expect(await waiting).toMatchObject({ isNew: true });
  });
});
