import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { announceAnchor } from '../../daemon/announcement.ts';
import { readState } from '../../daemon/daemon-state.ts';
import type { Machine } from '../../daemon/machine.ts';
import { storeKeyset } from '../../src/client/lease-store.ts';
import { holdLock } from '../../src/base/file-lock.ts';
import { anchorText } from '../../src/gate/anchor.ts';
import { backupOf, readLicense } from '../../src/gate/license.ts';
import { formatTime } from '../../src/lease/time.ts';
import { fingerprintOf } from '../gate/signed-keyset.ts';
import { keysetOf, rootOf, testKey } from '../lease/issuer.ts';
import { DAY, endorsed, HOUR, MINUTE, newRig, type Rig } from './rig.ts';
import { startStepped, type SteppedDaemon } from './stepped-daemon.ts';

let rig: Rig;
let files: Rig['machine']['files'];
let good: string;

beforeEach(async () => {
  rig = await newRig();
  ({ files } = rig.machine);
  await rig.enroll();
  good = leaseFile();
});
afterEach(() => rig.close());

const state = () => readState(files.state);
const leaseFile = (): string => readFileSync(files.lease, 'utf8');
const start = (machine = rig.machine): Promise<SteppedDaemon> => startStepped(rig, machine);

const quarantined = (): string[] =>
  readdirSync(dirname(files.lease)).filter((name) => name.includes('quarantined'));

test.each<[string, () => void, number]>([
  ['torn', () => truncateSync(files.lease, 100), 1],
  ['empty', () => truncateSync(files.lease, 0), 1],
  ['missing', () => rmSync(files.lease), 0],
  ['changed', () => writeFileSync(files.lease, good.replace('"payload":"e', '"payload":"f')), 1],
  [
    'older',
    () => writeFileSync(files.lease, rig.newLease({ issued_at: '2026-02-27T00:00:00Z' })),
    1,
  ],
])('a lease that is %s is put back', async (_what, spoil, kept) => {
  const daemon = await start();
  spoil();
  rmSync(backupOf(files.lease));
  expect(await daemon.notice()).toMatchObject({ status: { state: 'valid' } });
  expect(leaseFile()).toBe(good);
  expect(readFileSync(backupOf(files.lease), 'utf8')).toBe(good);
  expect(quarantined()).toHaveLength(kept);
  expect(rig.log).toEqual([expect.stringContaining(`put ${files.lease} back`)]);
  await daemon.stop();
  expect(rig.requests).toEqual([]);
});

test('a daemon that just started restores the lease from its backup', async () => {
  truncateSync(files.lease, 10);
  const daemon = await start();
  expect(leaseFile()).toBe(good);
  await daemon.stop();
});

test('removed keys are restored', async () => {
  const daemon = await start();
  for (const text of [undefined, '', JSON.stringify({ keys: [testKey(9).jwk] })]) {
    if (text === undefined) rmSync(files.keyset);
    else writeFileSync(files.keyset, text);
    rig.pass(MINUTE);
    await daemon.look();
    const { leases } = await readLicense(files, rig.now);
    expect(leases.map(({ path }) => path)).toContain(files.lease);
  }
  expect(quarantined()).toHaveLength(2);
  await daemon.stop();
  expect(rig.requests).toEqual([]);
});

test('a damaged trust anchor is repaired with its root when the daemon starts', async () => {
  const root = rootOf([testKey(4)]);
  const claims = { root: fingerprintOf(root), version: 2 };
  const document = JSON.stringify({
    keys: [testKey(1).jwk],
    roots: [root],
    keyset: keysetOf([testKey(1)], [testKey(4)], claims),
  });
  const anchor = anchorText({
    installationId: 'deployment-1',
    issuer: 'https://licenses.example',
    document,
  });
  writeFileSync(files.keyset, document);
  writeFileSync(files.root, '{');
  const daemon = await start();
  expect(readFileSync(files.root, 'utf8')).toBe(anchor);
  expect(readFileSync(files.keyset, 'utf8')).toBe(document);
  await daemon.stop();
  expect(rig.log).toEqual([expect.stringContaining(`put ${files.root} back`)]);
});

test('an older keyset and its trust anchor are replaced by the accepted ones', async () => {
  const [key, next, root] = [testKey(1), testKey(2), rootOf([testKey(4)])];
  const put = (version: number, ...keys: (typeof key)[]): void => {
    const signed = keysetOf(keys, [testKey(4)], { root: fingerprintOf(root), version });
    const jwks = keys.map(({ jwk }) => jwk);
    const document = JSON.stringify({ keys: jwks, roots: [root], keyset: signed });
    const owner = { installationId: 'deployment-1', issuer: 'https://licenses.example' };
    writeFileSync(files.root, anchorText({ ...owner, document }));
    writeFileSync(files.keyset, document);
  };
  put(2, key);
  const newer = readFileSync(files.root, 'utf8');
  const daemon = await start();
  // The older keyset trusts a key that the newer one has withdrawn.
  put(1, key, next);
  const foreign = rig.newLease({ public_key_id: next.jwk.kid, ttl_seconds: 9e6 }, next);
  for (const path of [files.lease, backupOf(files.lease)]) writeFileSync(path, foreign);
  await daemon.notice();
  expect(readFileSync(files.root, 'utf8')).toBe(newer);
  expect(leaseFile()).toBe(good);
  expect(rig.log).toContainEqual(expect.stringContaining(`put ${files.root} back`));
  await daemon.stop();
});

test('license files that a person announces again after a kill during enrollment are accepted', async () => {
  const next = testKey(3);
  const deployment_id = 'elsewhere';
  const document = JSON.stringify({ keys: [next.jwk] });
  const issuer = 'https://licenses.example';
  const anchor = anchorText({ installationId: deployment_id, issuer, document });
  await announceAnchor(files.state, anchor);
  const daemon = await start();
  await announceAnchor(files.state, anchor);
  const enrolled = rig.newLease({ deployment_id, public_key_id: next.jwk.kid }, next);
  writeFileSync(files.keyset, document);
  writeFileSync(files.root, anchor);
  for (const path of [files.lease, backupOf(files.lease)]) writeFileSync(path, enrolled);
  expect(await daemon.notice()).toMatchObject({ lease: { text: enrolled } });
  expect(leaseFile()).toBe(enrolled);
  expect(rig.log).toEqual([expect.stringContaining('that a person put in place')]);
  await daemon.stop();
});

test('an announcement is not lost while the state cannot be written', async () => {
  mkdirSync(files.state);
  const daemon = await start();
  rmSync(files.state, { recursive: true });
  await announceAnchor(files.state, 'anchor');
  const { announced_anchor } = await state();
  rig.pass(7 * DAY - HOUR);
  await daemon.look();
  await daemon.stop();
  expect(rig.leases).toHaveLength(2);
  expect(await state()).toMatchObject({ announced_anchor, last_success_at: expect.any(String) });
});

test('a foreign trust anchor is removed from a machine without one', async () => {
  const daemon = await start();
  const foreign = testKey(9);
  const document = JSON.stringify({ keys: [foreign.jwk] });
  writeFileSync(
    files.root,
    anchorText({ installationId: 'deployment-1', issuer: 'evil', document }),
  );
  await daemon.notice();
  await daemon.stop();
  expect(rig.log).toContainEqual(expect.stringContaining(`put ${files.root} back`));
  const { leases, refused } = await readLicense(files, rig.now);
  expect(leases.map(({ text }) => text)).toEqual([good, good]);
  expect(refused).toEqual([]);
});

test('license files are not repaired while another process holds their lock', async () => {
  const daemon = await start();
  const lock = await holdLock(files.lock, 0);
  rmSync(files.lease);
  await daemon.look();
  expect(existsSync(files.lease)).toBe(false);
  lock.release();
  await daemon.look();
  expect(leaseFile()).toBe(good);
  expect(rig.log).toHaveLength(1);
  await daemon.stop();
});

test('license files that are damaged again and again are repaired at a limited rate', async () => {
  const daemon = await start();
  for (let i = 0; i < 30; i += 1) {
    writeFileSync(files.lease, `spoilt ${i}`);
    await daemon.notice();
    rig.pass(1000);
  }
  expect(rig.log.filter((line) => line.includes('back'))).toHaveLength(20);
  expect(daemon.waits()).toBe(31_000);
  rig.pass(MINUTE);
  await daemon.look();
  expect(leaseFile()).toBe(good);
  for (let i = 0; i < 5; i += 1) {
    rig.pass(MINUTE);
    writeFileSync(files.lease, `spoilt ${i}`);
    await daemon.look();
  }
  expect(quarantined()).toHaveLength(3);
  await daemon.stop();
});

test('license files are repaired as quickly the second and third time', async () => {
  const daemon = await start();
  for (const text of ['spoilt', 'spoilt again', 'spoilt a third time']) {
    writeFileSync(files.lease, text);
    await daemon.notice();
    expect(leaseFile()).toBe(good);
  }
  expect(daemon.waits()).toBe(MINUTE);
  await daemon.stop();
});

test('license files that another process keeps restoring cause no flood of requests', async () => {
  const keyset = readFileSync(files.keyset, 'utf8');
  // The server signs with a key that is new, and that its former key vouches for.
  const next = testKey(3);
  const published = endorsed([testKey(1), next], testKey(1));
  rig.fault = ({ outgoing, renewal_id }) => {
    outgoing.writeHead(200, { 'service-name': 'service-local', connection: 'close' });
    const lease = renewal_id && rig.newLease({ renewal_id }, next);
    outgoing.end(lease ? `{"lease":${lease}}` : published);
  };
  rig.pass(6.5 * DAY);
  rig.log.push = (line) => {
    if (line.includes('renewed')) {
      writeFileSync(files.keyset, keyset);
      for (const path of [files.lease, backupOf(files.lease)]) writeFileSync(path, good);
    }
    return Array.prototype.push.call(rig.log, line);
  };
  const daemon = await start();
  for (let minute = 0; minute < 180; minute += 1) {
    await daemon.look();
    rig.pass(MINUTE);
  }
  await daemon.stop();
  expect(rig.asked).toHaveLength(1);
  expect(await state()).toMatchObject({ last_error: null });
  const { leases } = await readLicense(files, rig.now);
  expect(leases.map(({ claims }) => claims.lease_id)).toEqual(['lease-2', 'lease-2']);
});

test('the keyset file contains only known members of the published keyset', async () => {
  const daemon = await start();
  rig.pass(7 * DAY - HOUR);
  const { keys } = JSON.parse(readFileSync(files.keyset, 'utf8')) as { keys: object[] };
  let deep: object = {};
  for (let i = 0; i < 20; i += 1) deep = { deep };
  for (const more of [{ note: 'n'.repeat(70_000) }, { deep }]) {
    rig.fault = ({ outgoing, renewal_id }) => {
      outgoing.writeHead(200, { 'service-name': 'service-local', connection: 'close' });
      const lease = renewal_id && rig.newLease({ renewal_id });
      outgoing.end(lease ? `{"lease":${lease}}` : JSON.stringify({ keys, ...more }));
    };
    await daemon.look();
    rig.pass(7 * DAY - HOUR);
  }
  expect(rig.asked).toHaveLength(2);
  const { leases } = await readLicense(files, rig.now);
  expect(leases[0]?.claims.lease_id).toBe('lease-3');
  expect(readFileSync(files.keyset, 'utf8').length).toBeLessThan(1000);
  expect(rig.log.filter((line) => line.includes('back'))).toEqual([]);
  await daemon.stop();
});

test('the daemon continues with files that cannot be written, logs that once, and stores the lease later', async () => {
  const daemon = await start();
  const backup = backupOf(files.lease);
  rmSync(backup);
  mkdirSync(backup);
  rig.pass(7 * DAY - HOUR);
  for (let i = 0; i < 5; i += 1) {
    expect(await daemon.look()).toMatchObject({ status: { state: 'valid' } });
    rig.pass(MINUTE);
  }
  expect(leaseFile()).toBe(good);
  const got = rig.leases.at(-1)!.lease_id;
  expect((await daemon.look()).lease?.claims.lease_id).toBe(got);
  expect(rig.log.length).toBeLessThan(4);
  // A kill would lose it: it must be asked for again by the same id.
  expect((await state()).pending).toEqual({
    renewal_id: rig.asked[0]!.renewal_id,
    lease_id: 'lease-1',
  });
  rmSync(backup, { recursive: true });
  rig.pass(MINUTE);
  await daemon.look();
  const { leases } = await readLicense(files, rig.now);
  expect(leases.map(({ claims }) => claims.lease_id)).toEqual([got, got]);
  expect((await state()).failures_in_row).toBe(0);
  await daemon.stop();
});

test('a keyset that cannot be written is reported, and restored once it can be', async () => {
  const directory = join(dirname(files.lease), 'keys');
  const keyset = join(directory, 'keyset.json');
  await storeKeyset(keyset, readFileSync(files.keyset, 'utf8'));
  const daemon = await start({ ...rig.machine, files: { ...files, keyset } });
  rmSync(keyset);
  // Private files are not written to a directory that other users can write to.
  chmodSync(directory, 0o777);
  await daemon.notice();
  expect(rig.log).toEqual([expect.stringContaining('the license files cannot be repaired')]);
  expect((await state()).unrepaired?.message).toContain(directory);
  chmodSync(directory, 0o700);
  await daemon.look();
  expect(rig.log.slice(1)).toEqual([
    expect.stringContaining(`put ${keyset} back`),
    expect.stringContaining('the license files are correct again'),
  ]);
  expect(existsSync(keyset)).toBe(true);
  expect((await state()).unrepaired).toBeNull();
  await daemon.stop();
});

/** Machine on which `act` runs once it is set, after the next reading of the license files. */
function machineWithInterruption(): { machine: Machine; act: (() => void) | undefined } {
  const interrupted: ReturnType<typeof machineWithInterruption> = {
    machine: {
      ...rig.machine,
      boot() {
        const { act } = interrupted;
        interrupted.act = undefined;
        act?.();
        return rig.machine.boot();
      },
    },
    act: undefined,
  };
  return interrupted;
}

test('a lease that another process stores just before a repair is not overwritten', async () => {
  const other = machineWithInterruption();
  const daemon = await start(other.machine);
  rig.pass(HOUR);
  const newer = rig.newLease();
  other.act = () => {
    for (const path of [files.lease, backupOf(files.lease)]) writeFileSync(path, newer);
  };
  rmSync(files.lease);
  expect(await daemon.notice()).toMatchObject({ lease: { text: newer } });
  expect(leaseFile()).toBe(newer);
  expect(rig.log).toEqual([]);
  await daemon.stop();
});

test('a state that another process writes during a check is not overwritten', async () => {
  const other = machineWithInterruption();
  const daemon = await start(other.machine);
  rig.pass(2 * HOUR);
  other.act = () => {
    const before = JSON.parse(readFileSync(files.state, 'utf8')) as object;
    writeFileSync(files.state, JSON.stringify({ ...before, imported_lease_id: 'lease-9' }));
  };
  await daemon.look();
  expect(await state()).toMatchObject({
    imported_lease_id: 'lease-9',
    running_time: { seconds: 7200 },
  });
  await daemon.stop();
});

test('a lease of the former installation is not restored after an enrollment with the same keys', async () => {
  const former = rig.newLease({ ttl_seconds: (30 * DAY) / 1000 });
  for (const path of [files.lease, backupOf(files.lease)]) writeFileSync(path, former);
  const daemon = await start();
  const document = readFileSync(files.keyset, 'utf8');
  const issuer = 'https://licenses.example';
  const anchor = anchorText({ installationId: 'elsewhere', issuer, document });
  await announceAnchor(files.state, anchor);
  const enrolled = rig.newLease({ deployment_id: 'elsewhere' });
  writeFileSync(files.root, anchor);
  for (const path of [files.lease, backupOf(files.lease)]) writeFileSync(path, enrolled);
  expect(await daemon.notice()).toMatchObject({ lease: { text: enrolled } });
  rmSync(files.lease);
  expect(await daemon.notice()).toMatchObject({ lease: { text: enrolled } });
  expect(leaseFile()).toBe(enrolled);
  await daemon.stop();
});

test('a renewed lease that is not in force counts as a failure, and is not requested again at once', async () => {
  rig.pass(7 * DAY - HOUR);
  const better = rig.newLease({
    ttl_seconds: (30 * DAY) / 1000,
    issued_at: formatTime(rig.now + 1000),
  });
  rig.log.push = (line) => {
    if (line.includes('renewed the lease')) {
      for (const path of [files.lease, backupOf(files.lease)]) writeFileSync(path, better);
    }
    return Array.prototype.push.call(rig.log, line);
  };
  const daemon = await start();
  expect(await state()).toMatchObject({
    last_error: { code: 'failure', reason: 'not_kept' },
    failures_in_row: 1,
  });
  expect(rig.log).toContainEqual(
    expect.stringContaining('the new lease was stored, but another one'),
  );
  await daemon.look();
  expect(rig.asked).toHaveLength(1);
  await daemon.stop();
});
