import { chmodSync, chownSync, existsSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { anchorText, newAnnouncement, readAnchor } from '../../src/gate/anchor.ts';
import type { GateStatus } from '../../src/gate/decide.ts';
import { readLicense } from '../../src/gate/license.ts';
import { licenseFiles } from '../../src/gate/license-files.ts';
import { keysetOf as signedKeyset, rootOf, testKey } from '../lease/issuer.ts';
import {
  DAY,
  KEY,
  keysetOf,
  leaseOf,
  newLicensePlace,
  NOW,
  type LicensePlace,
} from './license-place.ts';
import {
  fingerprintOf,
  FOREIGN_ROOT,
  FOREIGN_ROOT_KEY,
  PIN,
  published,
  ROOT,
  ROOT_KEY,
} from './signed-keyset.ts';

const ISSUER = 'https://licenses.example';
const INSTALLATION = 'deployment-1';
const NEXT_KEY = testKey(2);
const FOREIGN_KEY = testKey(3);
const NEXT_ROOT_KEY = testKey(6);
const NEXT_ROOT = rootOf([NEXT_ROOT_KEY], { by: [ROOT_KEY, NEXT_ROOT_KEY], version: 2 });

const SIGNED = published([KEY]);
const ROTATED = published([KEY, NEXT_KEY], { version: 2 });
const FOREIGN = published([FOREIGN_KEY], {}, [FOREIGN_ROOT], [FOREIGN_ROOT_KEY]);
const RELEASED = leaseOf('good');
const FORGED = leaseOf('forged', 0.5, {}, FOREIGN_KEY);
const AFTER_EXPIRY = NOW + 400 * DAY;
const OLD = { expires_at: '2026-01-06T09:30:00Z' };

let place: LicensePlace;
beforeEach(() => {
  place = newLicensePlace();
});
afterEach(async () => {
  await place.remove();
});

const VALID = { allowed: true, status: 'valid' };
const refused = (reason: string) => ({ allowed: false, reason, detail: expect.any(String) });

const put = (keyset: string, lease = RELEASED): void => {
  place.put(place.files.keyset, keyset);
  place.put(place.files.lease, lease);
};
const anchor = (document: string, change = {}): void => {
  const accepted = { installationId: INSTALLATION, issuer: ISSUER, document, ...change };
  place.put(place.files.root, anchorText(accepted));
};
const pinned = () => ({ ...place.files, pin: PIN });
const read = (files = place.files, now = NOW) => readLicense(files, now);
const ids = async (files = place.files, now = NOW): Promise<string[]> =>
  (await read(files, now)).leases.map(({ claims }) => claims.lease_id);

describe('a pinned root', () => {
  it.each([
    ['a bare keyset', keysetOf(KEY), 'not_vouched_for'],
    ['a bare JWK', JSON.stringify(KEY.jwk), 'not_vouched_for'],
    ['JSON that is no keyset', 'null', 'not_vouched_for'],
    ['a keyset of another root', FOREIGN, 'other_root'],
  ])('refuses %s', async (_, keyset, reason) => {
    put(keyset);
    const gate = await place.open({ root: PIN });
    expect(gate.check('live_trading')).toEqual(refused(reason));
    const license = await read(pinned());
    expect(license.keyset).toMatchObject({ ok: false, reason, path: place.files.keyset });
    expect(license.trusted).toBeUndefined();
  });

  it('the refusal of a bare key under a pin names file, root and remedy', async () => {
    put(keysetOf(KEY));
    const { refused: files } = await read(pinned());
    expect(files[0]?.detail).toContain(place.files.keyset);
    expect(files[0]?.detail).toContain(PIN);
    expect(files[0]?.detail).toContain('/.well-known/license-keys.json');
  });

  it('a pinned root accepts the signed keyset, also from a secret', async () => {
    const env = {
      SERVICE_LICENSE_LEASE_PATH: join(place.home, 'lease'),
      SERVICE_LICENSE_PUBLIC_KEY_PATH: join(place.home, 'public_key'),
      SERVICE_LICENSE_ROOT: PIN,
    };
    place.put(env.SERVICE_LICENSE_LEASE_PATH, RELEASED);
    place.put(env.SERVICE_LICENSE_PUBLIC_KEY_PATH, SIGNED);
    const gate = await place.open({ files: licenseFiles(place.home, env) });
    expect(gate.check('live_trading')).toEqual(VALID);
    expect(gate.status().trust).toEqual({ by: 'pin', root: PIN });
  });

  it('a pinned root accepts a root that descends from it', async () => {
    put(published([KEY], {}, [ROOT, NEXT_ROOT], [NEXT_ROOT_KEY]));
    const { trusted } = await read(pinned());
    expect(trusted).toMatchObject({ by: 'pin', pin: PIN, fingerprint: fingerprintOf(NEXT_ROOT) });
  });

  it('a pin must be a fingerprint', async () => {
    await expect(place.open({ root: 'sha256:abc' })).rejects.toMatchObject({
      code: 'invalid_setting',
      message: expect.stringMatching(/^the option root is not the fingerprint of a root/),
    });
    expect(() => licenseFiles(place.home, { SERVICE_LICENSE_ROOT: 'x' })).toThrow(
      /^SERVICE_LICENSE_ROOT is not the fingerprint/,
    );
    expect(licenseFiles(place.home, { SERVICE_LICENSE_ROOT: '' }).pin).toBeUndefined();
  });

  it('a foreign anchor does not stop a good lease under a pin', async () => {
    put(SIGNED);
    anchor(FOREIGN, { installationId: 'other' });
    const license = await read(pinned());
    expect(license.leases).toHaveLength(1);
    expect(license.refusedAnchor).toMatchObject({ path: place.files.root, reason: 'other_root' });
  });
});

describe('without a pin and an anchor', () => {
  it.each([
    ['a bare keyset', keysetOf(KEY), null],
    ['a JWK', JSON.stringify(KEY.jwk), null],
    ['a signed keyset', SIGNED, PIN],
    ['a signed keyset that has expired', published([KEY], OLD), PIN],
  ])('keys in %s are accepted and shown as unpinned', async (_, keyset, root) => {
    put(keyset);
    place.time.now += 3 * DAY;
    const gate = await place.open();
    expect(gate.check('live_trading')).toEqual(VALID);
    expect(gate.status().trust).toEqual({ by: 'unpinned', root });
  });
});

describe('the trust anchor', () => {
  it('the anchor returns what was written, and nothing without a file', async () => {
    expect(await readAnchor(place.files.root)).toEqual({ kind: 'none' });
    anchor(SIGNED);
    const held = await readAnchor(place.files.root);
    expect(held).toMatchObject({ kind: 'held', installationId: INSTALLATION, issuer: ISSUER });
    if (held.kind !== 'held') return;
    expect(JSON.parse(held.document)).toEqual(JSON.parse(SIGNED));
    expect(held.held).toMatchObject({ keyset: { version: 1 }, root: { lineage: [PIN] } });
  });

  it('the anchor is not written with content that could not be read again', () => {
    const accepted = { installationId: INSTALLATION, issuer: ISSUER, document: SIGNED };
    expect(() => anchorText({ ...accepted, document: '{"keys":[]}' })).toThrow(
      /no active or retiring Ed25519 key/,
    );
    expect(() => anchorText({ ...accepted, issuer: '' })).toThrow(/must have the members/);
  });

  it('the anchor without a root holds only keys of the signed part', async () => {
    const keyset = signedKeyset([NEXT_KEY], [KEY], { version: 3 });
    const keys = [KEY.jwk, FOREIGN_KEY.jwk];
    anchor(JSON.stringify({ keys, keyset }));
    const held = await readAnchor(place.files.root);
    if (held.kind !== 'held') throw new Error(held.kind);
    expect([...held.held.keys.keys()]).toEqual([NEXT_KEY.jwk.kid]);
    expect(held.held.keyset?.version).toBe(3);
  });

  it.each([
    ['other keys', keysetOf(FOREIGN_KEY), 'not_vouched_for'],
    ['another root', FOREIGN, 'other_root'],
    ['an older keyset', SIGNED, 'keyset_rollback'],
    ['nothing', '', 'not_json'],
  ])('keeps a good lease working when the keyset file holds %s', async (_, keyset, reason) => {
    anchor(ROTATED);
    put(keyset, leaseOf('renewed', 0, {}, NEXT_KEY));
    const license = await read();
    expect(license.keyset).toMatchObject({ ok: false, reason });
    expect(license.leases.map(({ claims }) => claims.lease_id)).toEqual(['renewed']);
    expect(license.trusted).toMatchObject({ by: 'held', fingerprint: PIN });
  });

  it('an anchor without a root refuses keys that no held key signs', async () => {
    anchor(keysetOf(KEY));
    put(keysetOf(KEY, FOREIGN_KEY), FORGED);
    place.put(`${place.files.lease}.bak`, RELEASED);
    expect(await read()).toMatchObject({
      keyset: { ok: false, reason: 'not_vouched_for' },
      refused: [{ path: place.files.lease, reason: 'unknown_key' }],
      leases: [{ claims: { lease_id: 'good' } }],
    });
  });

  it.each([
    ['of another installation', { deployment_id: 'other' }, 'other_installation'],
    ['of another issuer', { issuer: 'evil-issuer' }, 'other_issuer'],
  ])('refuses a lease %s', async (_, change, reason) => {
    anchor(SIGNED);
    put(SIGNED, leaseOf('foreign', 0, change));
    const gate = await place.open();
    expect(gate.check('live_trading')).toEqual(refused(reason));
  });

  it('keys stay trusted after the keyset expired, also under a pin and after a restart', async () => {
    const lease = leaseOf('late', 399);
    for (const files of [place.files, pinned()]) {
      anchor(SIGNED);
      put(SIGNED, lease);
      expect(await ids(files, AFTER_EXPIRY)).toEqual(['late']);
      put(ROTATED, lease);
      expect((await read(files, AFTER_EXPIRY)).keyset).toMatchObject({ reason: 'keyset_expired' });
      expect(await ids(files, AFTER_EXPIRY)).toEqual(['late']);
    }
  });

  it('an expired keyset under a pin counts on an enrolled machine without an anchor', async () => {
    const keyset = published([KEY], OLD);
    const now = NOW + 5 * DAY;
    put(keyset, leaseOf('enrolled', 0, { device_thumbprint: KEY.jwk.kid }));
    expect(await ids(pinned(), now)).toEqual(['enrolled']);
    put(keyset, RELEASED);
    expect((await read(pinned(), now)).keyset).toMatchObject({ reason: 'keyset_expired' });
    put(keyset, leaseOf('later', 2, { device_thumbprint: KEY.jwk.kid }));
    expect((await read(pinned(), now)).keyset).toMatchObject({ reason: 'keyset_expired' });
  });

  it.each(['', '{}', '{"deployment_id":"a","issuer":"b","trusted":{"keys":[]}}'])(
    'is damaged (%j) and stops no good lease',
    async (text) => {
      put(SIGNED);
      place.put(place.files.root, text);
      const gate = await place.open();
      expect(gate.check('live_trading')).toEqual(VALID);
      expect(gate.status().trust?.by).toBe('unpinned');
      expect(gate.status().refused).toMatchObject([{ path: place.files.root }]);
    },
  );
});

describe('a running gate', () => {
  const swapped = (status: GateStatus): boolean =>
    status.refused.some(({ path }) => path === place.files.keyset);

  it.each([
    ['pinned', { root: PIN }, SIGNED, FOREIGN, 'other_root'],
    ['with a root', {}, SIGNED, FOREIGN, 'other_root'],
    ['with bare keys', {}, keysetOf(KEY), keysetOf(FOREIGN_KEY), 'not_vouched_for'],
  ])('%s keeps its lease when all files are swapped', async (_, change, own, foreign, reason) => {
    const isAnchored = own !== keysetOf(KEY);
    if (isAnchored) anchor(own);
    put(own);
    place.time.now += DAY;
    const gate = await place.open(change);
    put(foreign, FORGED);
    place.put(`${place.files.lease}.bak`, FORGED);
    anchor(foreign);
    const status = await gate.until((one) => one.refused.length === 4);
    expect(gate.check('live_trading')).toEqual(VALID);
    expect(status.lease?.lease_id).toBe('good');
    expect(gate.status().refused).toEqual(
      expect.arrayContaining([
        { path: place.files.lease, reason: 'unknown_key', detail: expect.any(String) },
        { path: `${place.files.lease}.bak`, reason: 'unknown_key', detail: expect.any(String) },
        { path: place.files.keyset, reason, detail: expect.any(String) },
      ]),
    );
    const count = gate.told.length;
    put(own, leaseOf('next', 0.9));
    if (isAnchored) anchor(own);
    else rmSync(place.files.root);
    place.put(`${place.files.lease}.bak`, RELEASED);
    await gate.until(({ lease, refused: files }) => lease?.lease_id === 'next' && !files.length);
    expect(gate.told.length).toBeGreaterThan(count);
    expect(gate.check('live_trading')).toEqual(VALID);
  });

  it('a running gate accepts keys that the root adds, and none that it withdrew', async () => {
    put(SIGNED);
    const gate = await place.open({ root: PIN });
    put(ROTATED, leaseOf('by-next', 0.5, {}, NEXT_KEY));
    await gate.until(({ lease }) => lease?.lease_id === 'by-next');
    put(published([NEXT_KEY], { version: 3 }), leaseOf('by-next-2', 0.6, {}, NEXT_KEY));
    await gate.until(({ lease }) => lease?.lease_id === 'by-next-2');
    put(SIGNED, leaseOf('rolled-back', 0.7));
    await gate.until(({ refused: files }) =>
      files.some(({ reason }) => reason === 'keyset_rollback'),
    );
    expect(gate.status()).toMatchObject({
      lease: { lease_id: 'by-next-2' },
      refused: [{ reason: 'unknown_key' }, { reason: 'keyset_rollback' }],
    });
  });

  it('a running gate accepts announced files, and after that only those', async () => {
    anchor(SIGNED);
    put(SIGNED);
    const gate = await place.open();
    const enrolled = { installationId: 'other', issuer: ISSUER, document: FOREIGN };
    const announced_anchor = newAnnouncement(anchorText(enrolled));
    place.put(place.files.state, JSON.stringify({ announced_anchor }));
    anchor(FOREIGN, { installationId: 'other' });
    const other = { deployment_id: 'other' };
    put(FOREIGN, leaseOf('enrolled', -0.5, other, FOREIGN_KEY));
    await gate.until(({ lease, refused: [file] }) => lease?.lease_id === 'enrolled' && !file);
    anchor(SIGNED);
    put(SIGNED);
    await gate.until(({ refused: files }) => files.length === 3);
    expect(gate.status().lease?.lease_id).toBe('enrolled');
  });

  it('a running gate refuses a lease of another installation under the same keys', async () => {
    put(keysetOf(KEY));
    const gate = await place.open();
    put(keysetOf(KEY), leaseOf('foreign', 0.5, { deployment_id: 'other' }));
    await gate.until(({ refused: [file] }) => file?.reason === 'other_installation');
    expect(gate.status().lease?.lease_id).toBe('good');
  });

  it('a running gate accepts a keyset that seemed expired by a wrong clock at start', async () => {
    put(SIGNED);
    place.time.now = AFTER_EXPIRY;
    const gate = await place.open({ root: PIN, pollMs: 5 });
    expect(gate.check('live_trading')).toEqual(refused('keyset_expired'));
    place.time.now = NOW + DAY;
    await gate.until(({ state }) => state === 'valid');
    expect(gate.status().refused).toEqual([]);
  });

  it('a running gate with a pin accepts the lease of another installation once its own has ended', async () => {
    put(SIGNED);
    const gate = await place.open({ root: PIN, pollMs: 5 });
    put(SIGNED, leaseOf('moved', 7, { deployment_id: 'other' }));
    await gate.until(({ refused: [file] }) => file?.reason === 'other_installation');
    place.time.now += 11 * DAY;
    place.time.up += 11 * DAY;
    await gate.until(({ lease }) => lease?.lease_id === 'moved');
    expect(gate.check('live_trading')).toEqual(VALID);
  });

  it('a running gate without pin and anchor accepts delivered keys before a lease without grace expires', async () => {
    put(keysetOf(KEY), leaseOf('first', 0, { grace_period_seconds: 0 }));
    const gate = await place.open({ pollMs: 5 });
    put(keysetOf(NEXT_KEY), leaseOf('delivered', 6, {}, NEXT_KEY));
    await gate.until(swapped);
    expect(gate.status().lease?.lease_id).toBe('first');
    const almost = 7 * DAY - 30_000;
    place.time.now += almost;
    place.time.up += almost;
    await gate.until(({ lease }) => lease?.lease_id === 'delivered');
    expect(gate.told.map(({ state }) => state)).not.toContain('expired');
  });

  it('a running gate without pin and anchor accepts other files once its lease is in grace', async () => {
    put(keysetOf(KEY));
    const gate = await place.open({ pollMs: 5 });
    put(keysetOf(NEXT_KEY), leaseOf('delivered', 7, {}, NEXT_KEY));
    await gate.until(swapped);
    expect(gate.status().lease?.lease_id).toBe('good');
    place.time.now += 7 * DAY;
    place.time.up += 7 * DAY;
    await gate.until(({ lease }) => lease?.lease_id === 'delivered');
    expect(gate.told.map(({ state }) => state)).not.toContain('expired');
    put(keysetOf(KEY), leaseOf('back', 7.5));
    await gate.until(
      ({ lease, refused: files }) => lease?.lease_id === 'delivered' && files.length > 0,
    );
  });
});

describe('owner and mode of the files', () => {
  const isRoot = process.getuid?.() === 0;

  it.each(['lease', 'keyset', 'root'] as const)(
    'refuses a %s that other users can change',
    async (name) => {
      put(SIGNED);
      anchor(SIGNED);
      chmodSync(place.files[name], 0o666);
      const gate = await place.open();
      const file = { path: place.files[name], reason: 'not_private' };
      expect(gate.status().refused).toMatchObject([file]);
      // The anchor holds the keys, too; and without it the keyset counts.
      expect(gate.check('live_trading').allowed).toBe(name !== 'lease');
    },
  );

  it.runIf(isRoot)('a gate refuses a file of another user, and accepts one of root', async () => {
    put(SIGNED);
    chownSync(place.files.lease, 12_345, 12_345);
    const gate = await place.open();
    expect(gate.check('live_trading')).toEqual(refused('foreign_owner'));
    expect(gate.status().refused[0]?.detail).toContain('belongs to user 12345');
  });

  it('a gate accepts a link to a world-readable file, as secrets are mounted', async () => {
    place.put(join(place.home, 'mounted'), RELEASED);
    chmodSync(join(place.home, 'mounted'), 0o644);
    symlinkSync('mounted', place.files.lease);
    place.put(place.files.keyset, SIGNED);
    chmodSync(place.files.keyset, 0o440);
    expect(existsSync(place.files.root)).toBe(false);
    expect((await place.open({ root: PIN })).check('live_trading')).toEqual(VALID);
  });
});
