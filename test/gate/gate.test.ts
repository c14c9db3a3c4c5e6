import { mkdirSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { GateStatus } from '../../src/gate/decide.ts';
import { openLicenseGate } from '../../src/gate/gate.ts';
import { readLicense, readLicenseTexts, verifyLicense } from '../../src/gate/license.ts';
import { licenseFiles } from '../../src/gate/license-files.ts';
import { nodeKey, testKey, type LeaseFile } from '../lease/issuer.ts';
import { isAtLength } from '../length.ts';
import {
  DAY,
  KEY,
  keysetOf,
  leaseOf,
  newLicensePlace,
  NOW,
  type LicensePlace,
} from './license-place.ts';

let place: LicensePlace;
beforeEach(() => {
  place = newLicensePlace();
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await place.remove();
});

const VALID = { allowed: true, status: 'valid' };
const GRACE = { allowed: true, status: 'grace' };
const refused = (reason: string) => ({ allowed: false, reason, detail: expect.any(String) });
const has = (lease_id: string) => (status: GateStatus) => status.lease?.lease_id === lease_id;

function changed(text: string, change: (lease: LeaseFile) => Partial<LeaseFile>): string {
  const lease = JSON.parse(text) as LeaseFile;
  return JSON.stringify({ ...lease, ...change(lease) });
}

const GOOD = leaseOf('good');
const OTHER = JSON.parse(leaseOf('other')) as LeaseFile;
const FALSE_CLAIMS = Buffer.from(GOOD).toString('base64');

const BAD: readonly (readonly [what: string, text: string, reason: string])[] = [
  ['nothing', '', 'not_json'],
  ['half of a lease', GOOD.slice(0, GOOD.length / 2), 'not_json'],
  ['other claims', changed(GOOD, () => ({ payload: FALSE_CLAIMS })), 'bad_signature'],
  [
    'the signature of another lease',
    changed(GOOD, () => ({ signatures: OTHER.signatures })),
    'bad_signature',
  ],
  ['a lease by another key', leaseOf('forged', 1, {}, testKey(2)), 'unknown_key'],
  ['far too much', ' '.repeat(70_000) + GOOD, 'too_large'],
];

describe('what is licensed', () => {
  it('no feature is licensed without a lease', async () => {
    const gate = await place.open();
    expect(gate.check('live_trading')).toEqual(refused('missing'));
    expect(gate.status()).toMatchObject({ state: 'none', reason: 'missing', lease: null });
  });

  it('exactly the features of the lease are licensed', async () => {
    place.put(place.files.keyset, keysetOf(KEY));
    place.put(place.files.lease, GOOD);
    const gate = await place.open();
    expect(gate.check('live_trading')).toEqual(VALID);
    expect(gate.check('byoc_deployments')).toEqual(refused('entitlement_missing'));
    expect(gate.check('__proto__')).toEqual(refused('entitlement_missing'));
  });

  it('the features stay licensed in the grace period, and none after it', async () => {
    place.put(place.files.keyset, keysetOf(KEY));
    place.put(place.files.lease, GOOD);
    const gate = await place.open();
    place.time.now = NOW + 7 * DAY - 1;
    expect(gate.check('live_trading')).toEqual(VALID);
    place.time.now += 1;
    expect(gate.check('live_trading')).toEqual(GRACE);
    expect(gate.check('byoc_deployments')).toEqual(refused('entitlement_missing'));
    place.time.now = NOW + 10 * DAY - 1;
    expect(gate.check('live_trading')).toEqual(GRACE);
    place.time.now += 1;
    expect(gate.check('live_trading')).toEqual(refused('expired'));
    expect(gate.told.map(({ state, reason }) => [state, reason])).toEqual([
      ['grace', 'in_grace'],
      ['expired', 'expired'],
    ]);
  });

  it('every feature is allowed without enforcement, and the status still shows the lease', async () => {
    place.put(place.files.keyset, keysetOf(KEY));
    place.put(place.files.lease, GOOD);
    place.time.now += 30 * DAY;
    const gate = await place.open({ enforced: false });
    const passes = { allowed: true, status: 'not_enforced' };
    expect([gate.check('live_trading'), gate.check('anything')]).toEqual([passes, passes]);
    expect(gate.status()).toMatchObject({ enforced: false, state: 'expired', entitlements: [] });
  });

  it.each(BAD)('no feature is licensed with %s', async (_, text, reason) => {
    place.put(place.files.keyset, keysetOf(KEY));
    place.put(place.files.lease, text);
    const gate = await place.open();
    expect(gate.check('live_trading')).toEqual(refused(reason));
  });

  it('the backup is used if the lease file is bad', async () => {
    place.put(place.files.keyset, keysetOf(KEY));
    place.put(place.files.lease, '');
    place.put(`${place.files.lease}.bak`, GOOD);
    const gate = await place.open();
    expect(gate.check('live_trading')).toEqual(VALID);
    expect(gate.status().refused).toMatchObject([{ path: place.files.lease, reason: 'not_json' }]);
  });

  it.each(['bak', '0123456789abcdef.tmp'])(
    'is not what a copy says that is for another installation: .%s',
    async (suffix) => {
      place.put(place.files.keyset, keysetOf(KEY));
      place.put(place.files.lease, leaseOf('good', 0, { entitlements: [] }));
      place.put(`${place.files.lease}.${suffix}`, leaseOf('foreign', 0.5, { deployment_id: 'b' }));
      place.time.now += DAY;
      const gate = await place.open();
      expect(gate.status().lease?.lease_id).toBe('good');
      expect(gate.check('live_trading')).toEqual(refused('entitlement_missing'));
    },
  );

  it('a temporary file with a complete lease is used', async () => {
    place.put(place.files.keyset, keysetOf(KEY));
    place.put(`${place.files.lease}.1.tmp`, leaseOf('named'));
    expect((await place.open()).check('live_trading')).toEqual(refused('missing'));
    for (let i = 0; i < 9; i += 1) {
      const path = `${place.files.lease}.${String(i).repeat(16)}.tmp`;
      place.put(path, leaseOf(`left-${i}`));
      utimesSync(path, i, i);
    }
    const found = (await readLicense(place.files, NOW)).leases.map(({ claims }) => claims.lease_id);
    expect(found.toSorted()).toEqual(['left-5', 'left-6', 'left-7', 'left-8']);
  });

  it('a lease is verified once for any number of reads', async () => {
    place.put(place.files.keyset, keysetOf(KEY));
    place.put(place.files.lease, GOOD);
    place.put(`${place.files.lease}.bak`, GOOD);
    const verdicts = new Map();
    const read = async () =>
      verifyLicense(await readLicenseTexts(place.files), NOW, { verdicts }).leases[0]!.claims;
    const first = await read();
    place.put(`${place.files.lease}.bak`, 'torn');
    expect(await read()).toBe(first);
    expect(verdicts.size).toBe(2);
    place.put(place.files.keyset, keysetOf(KEY, testKey(2)));
    expect(await read()).not.toBe(first);
    expect(verdicts.size).toBe(2);
  });

  it.each([
    ['a single JWK', JSON.stringify(KEY.jwk)],
    ['a JWK without its id', JSON.stringify({ ...KEY.jwk, kid: undefined })],
    ['a PEM', nodeKey(KEY.bytes).export({ type: 'spki', format: 'pem' })],
  ])('can be verified by %s', async (_, text) => {
    place.put(place.files.keyset, text);
    place.put(place.files.lease, GOOD);
    expect((await place.open()).check('live_trading')).toEqual(VALID);
  });

  it.each([
    ['a private key', '-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----', 'private_key'],
    ['a private JWK', JSON.stringify({ ...KEY.jwk, d: 'secret' }), 'private_key'],
    ['a JWK with the id of another', JSON.stringify({ ...KEY.jwk, kid: 'a' }), 'key_id_mismatch'],
    ['what is no key', '-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----', 'invalid_keyset'],
    ['half of a keyset', keysetOf(KEY).slice(0, 50), 'not_json'],
  ])('cannot be verified by %s', async (_, text, reason) => {
    place.put(place.files.keyset, text);
    place.put(place.files.lease, GOOD);
    expect((await place.open()).check('live_trading')).toEqual(refused(reason));
  });
});

describe('a change of the files', () => {
  beforeEach(() => {
    place.time.now += 3 * DAY;
  });

  it('a new lease takes effect if the keyset comes before or after it', async () => {
    const gate = await place.open();
    place.put(place.files.lease, GOOD);
    expect(await gate.until(({ reason }) => reason === 'unknown_key')).toBeDefined();
    place.put(place.files.keyset, keysetOf(KEY));
    await gate.until(has('good'));
    expect(gate.check('live_trading')).toEqual(VALID);
    place.put(place.files.lease, leaseOf('next', 1));
    await gate.until(has('next'));
    expect(gate.warnings).toEqual([]);
  });

  it('a gate without the option files uses the default paths', async () => {
    place.put(place.files.keyset, keysetOf(KEY));
    place.put(place.files.lease, GOOD);
    place.put(join(place.home, 'delivered'), leaseOf('delivered', 0));
    const idIn = async (env: Record<string, string>): Promise<string | undefined> => {
      for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
      const gate = await openLicenseGate({ enforced: true, clock: () => place.time.now });
      await gate.close();
      return gate.status().lease?.lease_id;
    };
    expect(await idIn({ SERVICE_LOCAL_HOME: place.home })).toBe('good');
    const delivered = { SERVICE_LICENSE_LEASE_PATH: join(place.home, 'delivered') };
    expect(await idIn(delivered)).toBe('delivered');
    vi.unstubAllEnvs();
    symlinkSync(place.home, join(dirname(place.home), '.service-local'));
    expect(await idIn({ HOME: dirname(place.home), SERVICE_LOCAL_HOME: '' })).toBe('good');
  });

  it('files in a directory that is created later are noticed', async () => {
    const files = licenseFiles(join(place.home, 'later'), {});
    const gate = await place.open({ files });
    mkdirSync(join(place.home, 'later'));
    place.put(files.keyset, keysetOf(KEY));
    place.put(files.lease, GOOD);
    await gate.until(has('good'));
    expect(gate.warnings).toEqual([]);
  });

  it('a swapped directory of a mounted secret is noticed', async () => {
    const swap = (version: string, lease: string): void => {
      mkdirSync(join(place.home, version));
      writeFileSync(join(place.home, version, 'license_lease.json'), lease);
      writeFileSync(join(place.home, version, 'license_public_key.json'), keysetOf(KEY));
      symlinkSync(version, join(place.home, '..data_tmp'));
      renameSync(join(place.home, '..data_tmp'), join(place.home, '..data'));
    };
    swap('..2026_01', GOOD);
    symlinkSync('..data/license_lease.json', place.files.lease);
    symlinkSync('..data/license_public_key.json', place.files.keyset);
    const gate = await place.open();
    expect(gate.check('live_trading')).toEqual(VALID);
    swap('..2026_02', leaseOf('next', 1));
    await gate.until(has('next'));
    swap('..2026_03', leaseOf('third', 2));
    await gate.until(has('third'));
  });

  it('changes behind links to other directories are found by polling', async () => {
    const target = join(place.home, '..', 'lease');
    writeFileSync(target, GOOD);
    symlinkSync(target, place.files.lease);
    place.put(place.files.keyset, keysetOf(KEY));
    const gate = await place.open({ pollMs: 20 });
    place.put(target, leaseOf('next', 1));
    await gate.until(has('next'));
    writeFileSync(target, leaseOf('third', 2));
    await gate.until(has('third'));
    expect(gate.check('live_trading')).toEqual(VALID);
  });

  it.each([...BAD, ['an older lease', leaseOf('old', -1), undefined] as const])(
    'to %s does not take away what is loaded',
    async (_, text, reason) => {
      place.put(place.files.keyset, keysetOf(KEY));
      place.put(place.files.lease, GOOD);
      const gate = await place.open();
      place.put(place.files.lease, text);
      // The next one tells that the bad one was read, too: they are looked at in order.
      place.put(`${place.files.lease}.bak`, 'no lease');
      const told = await gate.until((status) =>
        status.refused.some(({ path }) => path.endsWith('.bak')),
      );
      expect(told.lease?.lease_id).toBe('good');
      expect(gate.status().refused[0]?.reason).toBe(reason ?? 'not_json');
      expect(gate.check('live_trading')).toEqual(VALID);
      place.put(place.files.lease, leaseOf('next', 1));
      await gate.until(has('next'));
    },
  );

  it('removed lease and keyset files do not end the lease in force', async () => {
    place.put(place.files.keyset, keysetOf(KEY));
    place.put(place.files.lease, GOOD);
    const gate = await place.open();
    rmSync(place.files.keyset);
    rmSync(place.files.lease);
    await gate.until((status) => status.refused[0]?.reason === 'missing');
    expect(gate.check('live_trading')).toEqual(VALID);
    place.put(place.files.keyset, keysetOf(testKey(2)));
    place.put(place.files.lease, GOOD);
    await gate.until((status) => status.refused[0]?.reason === 'not_vouched_for');
    expect(gate.check('live_trading')).toEqual(VALID);
  });

  it('a later lease removes features that it does not include', async () => {
    place.put(place.files.keyset, keysetOf(KEY));
    place.put(place.files.lease, GOOD);
    const gate = await place.open();
    place.put(place.files.lease, leaseOf('less', 1, { entitlements: ['kb_federation'] }));
    await gate.until(has('less'));
    expect(gate.check('live_trading')).toEqual(refused('entitlement_missing'));
  });

  it('none of a thousand changes is lost or seen half-written', async () => {
    place.put(place.files.keyset, keysetOf(KEY));
    place.put(place.files.lease, leaseOf('0'));
    const gate = await place.open();
    const leases = Array.from({ length: 1000 }, (_, i) =>
      leaseOf(String(i + 1), 0, { issued_at: secondsLater(i + 1), entitlements: [`e${i + 1}`] }),
    );
    for (const [i, lease] of leases.entries()) {
      place.put(place.files.lease, lease);
      if (i % 10 === 9) await new Promise(setImmediate);
      const { state, lease: held, entitlements } = gate.status();
      const own = held!.lease_id === '0' ? 'live_trading' : `e${held!.lease_id}`;
      expect({ state, own: entitlements[0] }).toEqual({ state: 'valid', own });
      expect(gate.check(own)).toEqual(VALID);
    }
    await gate.until(has('1000'));
    const seen = gate.told.map(({ lease }) => Number(lease!.lease_id));
    expect(seen).toEqual(seen.toSorted((a, b) => a - b));
    expect(gate.told.every(({ state }) => state === 'valid')).toBe(true);
  });

  it('each of several changes takes effect within a second', async () => {
    place.put(place.files.keyset, keysetOf(KEY));
    const gate = await place.open();
    const took: number[] = [];
    const changes = isAtLength ? 25 : 5;
    for (let i = 1; i <= changes; i += 1) {
      const begin = performance.now();
      place.put(place.files.lease, leaseOf(String(i), 0, { issued_at: secondsLater(i) }));
      await gate.until(has(String(i)));
      took.push(performance.now() - begin);
    }
    // The middle one, because the machine may be busy with other tests; the poll is 30 s away.
    expect(took.toSorted((a, b) => a - b)[(changes - 1) / 2]).toBeLessThan(1000);
    expect(gate.warnings).toEqual([]);
  });

  it('a change takes effect even if onChange throws', async () => {
    const seen: GateStatus[] = [];
    const gate = await place.open({
      pollMs: 5,
      onChange(status) {
        seen.push(status);
        throw new Error('not now');
      },
      warn() {
        throw new Error('nor this');
      },
    });
    place.put(place.files.keyset, keysetOf(KEY));
    place.put(place.files.lease, GOOD);
    await expect.poll(() => gate.check('live_trading')).toEqual(VALID);
    place.put(place.files.lease, leaseOf('next', 1));
    await expect.poll(() => gate.status().lease?.lease_id).toBe('next');
    place.time.now += 20 * DAY;
    expect(gate.check('live_trading')).toEqual(refused('expired'));
    expect(seen.at(-1)).toMatchObject({ state: 'expired' });
  });

  it('a closed gate reports no changes', async () => {
    place.put(place.files.keyset, keysetOf(KEY));
    place.put(place.files.lease, GOOD);
    const gate = await place.open({ pollMs: 5 });
    place.put(place.files.lease, leaseOf('next', 1));
    await gate.close();
    const told = gate.told.length;
    const other = await place.open({ pollMs: 5 });
    place.put(place.files.lease, leaseOf('third', 2));
    await other.until(has('third'));
    expect(gate.told).toHaveLength(told);
    expect(gate.check('live_trading')).toEqual(VALID);
  });
});

function secondsLater(seconds: number): string {
  return `${new Date(NOW + seconds * 1000).toISOString().slice(0, 19)}Z`;
}

describe('time', () => {
  beforeEach(() => {
    place.put(place.files.keyset, keysetOf(KEY));
    place.put(place.files.lease, GOOD);
  });

  it('a clock set back by a day is noticed and does not extend the lease', async () => {
    const gate = await place.open({ pollMs: 5 });
    place.time.now -= DAY;
    expect(gate.check('live_trading')).toEqual(GRACE);
    expect(gate.status()).toMatchObject({ state: 'grace', reason: 'not_yet_valid' });
    place.time.up += DAY;
    place.time.now += DAY;
    await gate.until(({ reason }) => reason === 'clock_rollback');
    place.time.now += 6 * DAY;
    place.time.up += 6 * DAY;
    expect(gate.check('live_trading')).toEqual(GRACE);
    place.time.now += 3 * DAY;
    place.time.up += 3 * DAY;
    await gate.until(({ state }) => state === 'expired');
    expect(gate.check('live_trading')).toEqual(refused('expired'));
  });

  it('a lease ends even if the clock stands still', async () => {
    const gate = await place.open({ pollMs: 5 });
    place.time.up += 7 * DAY;
    await gate.until(({ state }) => state === 'grace');
    place.time.up += 3 * DAY;
    await gate.until(({ state }) => state === 'expired');
    place.time.now -= DAY;
    expect(gate.check('live_trading')).toEqual(refused('expired'));
  });

  const seenByDaemon = (days: number, boot_id: string, uptime_seconds: number): void => {
    const running_time = {
      lease_id: 'good',
      seconds: (days * DAY) / 1000,
      boot_id,
      uptime_seconds,
    };
    place.put(place.files.state, JSON.stringify({ schema: 1, running_time }));
  };

  it('after the clock is set back, the running time of the daemon counts', async () => {
    seenByDaemon(9, 'boot-before', 1000);
    const gate = await place.open();
    place.time.up += DAY;
    place.time.now -= DAY;
    expect(gate.check('live_trading')).toEqual(refused('expired'));
  });

  it('the uptime of another machine does not count', async () => {
    seenByDaemon(1, 'other-machine', 1000);
    place.time.now += DAY;
    place.time.up = 40 * DAY;
    const gate = await place.open();
    expect(gate.check('live_trading')).toEqual(VALID);
    expect(gate.status()).toMatchObject({ reason: null });
  });

  it('a repaired daemon state corrects the running time', async () => {
    seenByDaemon(9, 'boot', 0);
    place.time.now += 3 * DAY;
    const gate = await place.open({ pollMs: 5 });
    place.time.up += DAY;
    await gate.until(({ state }) => state === 'expired');
    seenByDaemon(1, 'boot', 0);
    await gate.until(({ state }) => state === 'valid');
    rmSync(place.files.state);
    place.time.up += 6 * DAY;
    await expect.poll(() => gate.status().state).toBe('grace');
  });

  it.each([-5, 1e15, 1e300])(
    'an impossible running time (%d s) does not count',
    async (seconds) => {
      seenByDaemon((seconds * 1000) / DAY, 'boot', 0);
      expect((await place.open()).check('live_trading')).toEqual(VALID);
    },
  );

  it('a clock set forward by a year and back has no lasting effect', async () => {
    const gate = await place.open();
    place.time.now += 365 * DAY;
    expect(gate.check('live_trading')).toEqual(refused('expired'));
    place.time.now -= 365 * DAY;
    expect(gate.check('live_trading')).toEqual(VALID);
  });

  it('time in a suspend counts at the first check after it', async () => {
    const gate = await place.open();
    place.time.now += 8 * DAY;
    place.time.up += 8 * DAY;
    expect(gate.check('live_trading')).toEqual(GRACE);
    place.time.now += 7 * DAY;
    place.time.up += 7 * DAY;
    expect(gate.check('live_trading')).toEqual(refused('expired'));
  });
});
