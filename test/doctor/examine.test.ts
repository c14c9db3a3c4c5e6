import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { daemonFiles } from '../../daemon/daemon-files.ts';
import { writeNote, type DaemonNote } from '../../daemon/note.ts';
import { writeState, type DaemonState } from '../../daemon/daemon-state.ts';
import { serviceManager } from '../../daemon/service-unit.ts';
import { holdLock, type Lock } from '../../src/base/file-lock.ts';
import type { CheckCode, CheckResult } from '../../src/doctor/run-checks.ts';
import { SERVER_CHECKS } from '../../src/doctor/checks/server.ts';
import { examine } from '../../src/doctor/examine.ts';
import { factsOf, type Machine } from '../../src/doctor/machine-facts.ts';
import { ServiceError } from '../../src/base/errors.ts';
import { backupOf } from '../../src/gate/license.ts';
import { renewalMoment } from '../../src/lease/renewal-moment.ts';
import { formatTime } from '../../src/lease/time.ts';
import { licenseFiles } from '../../src/gate/license-files.ts';
import { announceNext, DAY, HOUR, renew, revokeAs } from '../identity/lease-world.ts';
import { testKey } from '../lease/issuer.ts';
import { newLicensed, startIssuer, type Issuer, type Licensed } from './licensed.ts';
import { isAtLength, some } from '../length.ts';

let issuer: Issuer;
let directory: string;
let licensed: Licensed;
let machine: Machine;
let daemon: Lock;

beforeAll(async () => {
  issuer = await startIssuer();
});
afterAll(() => issuer.close());

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'service-local-doctor-'));
  licensed = await newLicensed(issuer, directory, 'tokyo');
  ({ machine } = licensed);
  daemon = await holdLock(daemonFiles(machine.home).lock, 0);
});
afterEach(() => {
  daemon.release();
  rmSync(directory, { recursive: true });
});

/** Checks that are not ok, as `code status` and the cause of a skipped one. */
const faults = async (change: Partial<Machine> = {}): Promise<string[]> => {
  const { checks } = await examine({ ...machine, ...change });
  return checks
    .filter(({ status, code }) => status !== 'ok' && code !== 'service_unit')
    .map(({ code, status, because }) => `${code} ${because ?? status}`);
};
const found = async (code: CheckCode, change: Partial<Machine> = {}): Promise<CheckResult> => {
  const { checks } = await examine({ ...machine, ...change });
  return checks.find((check) => check.code === code)!;
};
const later = (ms: number): Partial<Machine> => {
  const now = issuer.now + ms;
  return { clock: () => now };
};
const setState = (change: Partial<DaemonState>): Promise<void> =>
  writeState(machine.files.state, { ...licensed.state, ...change });
const setNote = (change: Partial<DaemonNote>): Promise<void> =>
  writeNote(daemonFiles(machine.home).note, { ...licensed.note, ...change });
const spoil = (text: string): void => {
  const { lease } = machine.files;
  for (const path of [lease, backupOf(lease)]) writeFileSync(path, text);
};
/** Names, contents and times of all files. */
const contents = (): unknown =>
  (readdirSync(directory, { recursive: true }) as string[]).map((name) => {
    const stats = statSync(join(directory, name));
    const text = stats.isFile() ? readFileSync(join(directory, name), 'utf8') : '';
    return [name, stats.mode, stats.isFile() ? stats.mtimeMs : 0, text];
  });

test('a healthy machine passes all checks, and is not changed', async () => {
  const before = contents();
  const { status, checks } = await examine(machine);
  expect(checks.filter((check) => check.status !== 'ok')).toMatchObject([
    { code: 'service_unit', status: 'skip', because: null },
  ]);
  expect(status).toBe('ok');
  expect(contents()).toEqual(before);
  const { claims, device_id } = licensed;
  const { expires_at, grace_ends_at } = claims;
  expect(Object.fromEntries(checks.map(({ code, summary }) => [code, summary]))).toMatchObject({
    lease_file: `${machine.files.lease}, the best of 2 copies`,
    lease_signature: `service-local signed the lease ${claims.lease_id} of tokyo`,
    lease_use: 'for the product service-local on every machine',
    clock: 'the clock agrees with that of the server',
    lease_state: `valid until ${expires_at} (7 days left), then in grace until ${grace_ends_at}`,
    entitlements: 'kb_federation, live_trading',
    device_key: `this is the device ${device_id}`,
    renewal: `a renewal now would give a lease until ${expires_at}`,
    schedule: expect.stringContaining('next attempt at 20') as string,
  });
});

test('a machine without a license is healthy, and no files are created', async () => {
  const home = join(directory, 'other');
  const fresh = { home, files: licenseFiles(home, {}), catalogueDir: join(home, 'catalogue') };
  const { status, checks } = await examine({ ...machine, ...fresh });
  expect(status).toBe('ok');
  expect(checks.filter((check) => check.status !== 'skip').map(({ code }) => code)).toEqual([
    'runtime',
    'home',
    'disk',
    'catalogue',
    'versions',
  ]);
  expect(checks.filter(({ remedy }) => remedy !== null).map(({ code }) => code)).toEqual([
    'lease_file',
    'device_key',
  ]);
  expect(readdirSync(directory)).toEqual(['home']);
});

test('without a network all other checks run', async () => {
  expect(await faults({ offline: true })).toEqual(['server skip', 'renewal server']);
});

describe('the lease', () => {
  test('a truncated lease is a warning if its copy is valid', async () => {
    writeFileSync(machine.files.lease, readFileSync(machine.files.lease).subarray(0, 100));
    expect(await faults()).toEqual(['lease_file warn']);
    const { summary, evidence } = await found('lease_file');
    const copy = backupOf(machine.files.lease);
    expect(summary).toBe(
      `${machine.files.lease} is not usable: the lease is empty, cut short or otherwise not JSON; ${copy} is used instead`,
    );
    expect(evidence).toMatchObject({
      winner: copy,
      candidates: [{ path: copy }, { path: machine.files.lease, reason: 'not_json' }],
    });
  });

  test.each(
    some(1, [
      ['', 'not_json'],
      ['{}', 'not_an_envelope'],
    ]),
  )('a lease file with the content %j fails once', async (text) => {
    spoil(text);
    expect(await faults()).toEqual([
      'lease_file fail',
      'keyset lease_file',
      'trust lease_file',
      'lease_signature lease_file',
      'lease_use lease_file',
      'lease_state lease_file',
      'entitlements lease_file',
    ]);
  });

  test('a missing lease of an enrolled device fails once', async () => {
    rmSync(machine.files.lease);
    rmSync(backupOf(machine.files.lease));
    expect(await found('lease_file')).toMatchObject({
      status: 'fail',
      summary: `${machine.files.lease} does not exist`,
      remedy: expect.stringContaining('`service-local license renew --now`') as string,
    });
  });

  test('a lease that was changed or belongs to another machine fails by its signature', async () => {
    const envelope = JSON.parse(readFileSync(machine.files.lease, 'utf8')) as { payload: string };
    const text = Buffer.from(envelope.payload, 'base64').toString();
    const payload = Buffer.from(text.replace('"tokyo"', '"osaka"')).toString('base64');
    spoil(JSON.stringify({ ...envelope, payload }));
    expect(await faults()).toEqual([
      'lease_signature fail',
      'lease_use lease_signature',
      'lease_state lease_signature',
      'entitlements lease_signature',
    ]);
    expect((await found('lease_signature')).evidence).toMatchObject({ reason: 'bad_signature' });
  });

  test.each(
    some(1, [
      ['is not there', undefined, 'keyset', 'unknown_key'],
      ['is torn', '{"keys":', 'keyset', 'not_json'],
      ['has a private key', '{"keys":[{"d":"x"}]}', 'keyset', 'private_key'],
      [
        'has other keys',
        JSON.stringify({ keys: [testKey(1).jwk] }),
        'lease_signature',
        'unknown_key',
      ],
    ] as const),
  )('whose keyset %s fails once', async (_what, text, root, reason) => {
    if (text === undefined) rmSync(machine.files.keyset);
    else writeFileSync(machine.files.keyset, text);
    // The trust anchor contains the keys, too.
    expect(await faults()).toEqual(['keyset fail']);
    rmSync(machine.files.root);
    const all = 'keyset trust lease_signature lease_use lease_state entitlements';
    const checks = all.split(' ');
    const following = checks.slice(checks.indexOf(root) + 1);
    // The keys of another issuer do not verify those of the server.
    const others = (await faults()).filter((fault) => fault !== 'renewal fail');
    expect(others).toEqual([`${root} fail`, ...following.map((code) => `${code} ${root}`)]);
    expect((await found(root)).evidence['reason']).toBe(reason);
  });

  test('a lease in grace is a warning with its last date, and an expired one a failure', async () => {
    const { expires_at, grace_ends_at } = licensed.claims;
    const offline = { offline: true };
    expect(await found('lease_state', { ...later(7 * DAY), ...offline })).toMatchObject({
      status: 'warn',
      summary: `in grace, because the lease was not renewed in time; everything works until ${grace_ends_at} (3 days left)`,
      evidence: { state: 'grace', reason: 'in_grace', expires_at },
    });
    expect(await found('lease_state', { ...later(10 * DAY), ...offline })).toMatchObject({
      status: 'fail',
      summary: `expired; the grace period ended at ${grace_ends_at}`,
    });
    expect(await found('entitlements', { ...later(10 * DAY), ...offline })).toMatchObject({
      status: 'skip',
      because: 'lease_state',
    });
  });

  test('a delivered lease needs no device key, and may be a link', async () => {
    rmSync(machine.files.key);
    const delivered = join(directory, 'delivered.json');
    renameSync(machine.files.lease, delivered);
    rmSync(backupOf(machine.files.lease));
    symlinkSync(delivered, machine.files.lease);
    chmodSync(delivered, 0o444);
    expect(await faults()).toEqual([
      'device_key skip',
      'server device_key',
      'renewal device_key',
      'daemon device_key',
      'schedule device_key',
    ]);
  });
});

describe('the clock', () => {
  test.each(
    some(1, [
      ['behind', -DAY],
      ['ahead', 366.5 * DAY],
    ] as const),
  )('a clock that is %s fails once, and skips the state of the lease', async (where, ms) => {
    await setState({ next_attempt_at: null, next_attempt_because: 'no_lease' });
    expect(await faults(later(ms))).toEqual([
      'clock fail',
      'lease_state clock',
      'entitlements clock',
    ]);
    expect((await found('clock', later(ms))).summary).toMatch(
      new RegExp(`^the clock of this machine is (366 days|24 hours) ${where}$`),
    );
  });

  test.runIf(isAtLength)('a clock within the tolerance is ok', async () => {
    expect(await faults(later(4 * 60_000))).toEqual([]);
  });

  test.runIf(isAtLength)(
    'a wrong clock that does not change the state of the lease does not affect its check',
    async () => {
      expect(await faults(later(HOUR))).toEqual(['clock fail']);
    },
  );

  test('a clock that was set back is detected by the uptime of the machine', async () => {
    const { lease_id } = licensed.claims;
    await setState({
      running_time: { lease_id, seconds: 2 * 86_400, boot_id: 'boot', uptime_seconds: 1000 },
    });
    expect(await faults({ offline: true })).toEqual([
      'clock fail',
      'lease_state clock',
      'entitlements clock',
      'server skip',
      'renewal server',
    ]);
  });
});

describe('the server', () => {
  test('an unreachable server fails once, even after failed attempts of the daemon', async () => {
    const at = formatTime(issuer.now);
    const last_error = { at, code: 'server_unreachable', reason: null, message: 'down' };
    await setState({ failures_in_row: 3, last_error, next_attempt_because: 'retry' });
    const url = 'http://127.0.0.1:1';
    expect(await faults({ url })).toEqual([
      'server fail',
      'renewal server',
      'daemon warn',
      'schedule server',
    ]);
    expect(await found('server', { url })).toMatchObject({
      summary: 'http://127.0.0.1:1: connection refused',
      evidence: { code: 'server_unreachable' },
    });
  });

  test('a revoked license is reported with the date until which the lease works', async () => {
    const osaka = join(directory, 'osaka');
    const revoked = await newLicensed(issuer, osaka, 'osaka');
    await revokeAs(issuer.world, issuer.world.identity, { deployment_id: 'osaka' }, 'osaka');
    const at = formatTime(issuer.now);
    await writeState(revoked.machine.files.state, {
      ...revoked.state,
      failures_in_row: 1,
      next_attempt_because: 'denied',
      last_error: { at, code: 'license_revoked', reason: null, message: 'revoked' },
    });
    const lock = await holdLock(daemonFiles(revoked.machine.home).lock, 0);
    expect(await faults(revoked.machine)).toEqual(['renewal fail', 'schedule renewal']);
    lock.release();
    expect(await found('renewal', revoked.machine)).toMatchObject({
      summary: `the license is revoked and cannot be renewed; the lease works until ${revoked.claims.grace_ends_at}`,
      evidence: { code: 'license_revoked' },
      remedy: 'Contact the issuer of the license.',
    });
    // A lease in grace stays in grace.
    const { world } = issuer;
    const before = issuer.now;
    world.now = issuer.now += 7 * DAY;
    const { checks } = await examine({ ...revoked.machine, ...later(0) });
    world.now = issuer.now = before;
    const statuses = Object.fromEntries(checks.map(({ code, status }) => [code, status]));
    expect(statuses).toMatchObject({ lease_state: 'warn', renewal: 'fail', entitlements: 'ok' });
  });

  test('an ended contract is reported with the date since which the lease has not worked', async () => {
    const { world } = issuer;
    const before = issuer.now;
    world.now = issuer.now = Date.UTC(2030, 1);
    const { checks } = await examine({ ...machine, ...later(0) });
    world.now = issuer.now = before;
    expect(checks.filter(({ status }) => status === 'fail').map(({ code }) => code)).toEqual([
      'renewal',
    ]);
    expect(checks.find(({ code }) => code === 'lease_state')).toMatchObject({
      status: 'skip',
      because: 'renewal',
      evidence: { state: 'expired' },
    });
    expect(checks.find(({ code }) => code === 'renewal')).toMatchObject({
      status: 'fail',
      summary: `the contract acme-pro ended on 2030-01-01T00:00:00Z; the lease has not worked since ${licensed.claims.grace_ends_at}`,
    });
  });

  test.each(
    some(2, [
      [90 * DAY, 13 * DAY, 'warn'],
      [90 * DAY, 16 * DAY, 'ok'],
      [6 * DAY, 2 * DAY, 'ok'],
      [6 * DAY, 12 * HOUR, 'warn'],
      [3650 * DAY, 13 * DAY, 'warn'],
    ] as const),
  )('a certificate valid for %i ms, with %i ms left, is %s', async (all, left, status) => {
    const certificate = { begins: issuer.now + left - all, ends: issuer.now + left };
    const answer = { ms: 1, ahead: 0, certificate, warning: undefined, isHeld: false, trust: [] };
    const check = SERVER_CHECKS.find(({ code }) => code === 'server')!;
    const facts = { ...factsOf(machine), server: () => Promise.resolve(answer) };
    expect(await check.run(facts)).toMatchObject({ status });
  });

  test('a server whose database is not adopted is a warning', async () => {
    const { storage } = issuer.world.identity;
    const supersededBy = (epoch: number | null) =>
      storage.write((tx) =>
        tx.updateTable('database_identity').set({ superseded_by: epoch }).execute(),
      );
    await supersededBy(2);
    expect(await found('server')).toMatchObject({
      status: 'warn',
      summary: expect.stringMatching(/^nothing trades with the database of/) as string,
    });
    await supersededBy(null);
    expect(await found('server')).toMatchObject({ status: 'ok' });
  });

  test('a server that is not configured is skipped', async () => {
    const unset = { url: 'http://127.0.0.1:1', urlBy: 'default' } as const;
    expect(await faults(unset)).toEqual(['server skip', 'renewal server', 'daemon warn']);
    expect((await found('server', unset)).summary).toBe(
      'no server is configured, and none answers at http://127.0.0.1:1',
    );
  });

  test.runIf(isAtLength)('all requests to a server share one timeout', async () => {
    const slow = createServer((request, response) => {
      const isHealth = request.url === '/healthz';
      const headers = { 'service-name': 'service-local', 'service-nonce': 'once more' };
      const body = '{"status":"ok","code":"invalid_device_proof","detail":"once more"}';
      const date = new Date(issuer.now).toUTCString();
      response.writeHead(isHealth ? 200 : 401, { ...headers, date }).flushHeaders();
      setTimeout(() => response.end(body), isHealth ? 0 : 300);
    });
    await once(slow.listen(0, '127.0.0.1'), 'listening');
    const url = `http://127.0.0.1:${(slow.address() as AddressInfo).port}`;
    expect(await found('renewal', { url, timeoutMs: 500 })).toMatchObject({
      status: 'fail',
      evidence: { code: 'server_unreachable', message: `${url}: no answer in time` },
    });
    slow.close();
  });

  test('a server that does not accept the lease of this device is a warning', async () => {
    const other = await newLicensed(issuer, join(directory, 'other'), 'tokyo');
    spoil(readFileSync(other.machine.files.lease, 'utf8'));
    expect(await found('renewal')).toMatchObject({
      status: 'warn',
      evidence: { code: 'not_allowed', reason: 'other_device' },
    });
  });

  test('an unencrypted connection is a warning', async () => {
    const url = issuer.url.replace('127.0.0.1', '0.0.0.0');
    expect(await found('server', { url })).toMatchObject({
      status: 'warn',
      summary: expect.stringMatching(/^http:\/\/0\.0\.0\.0:\d+ uses plain http: /) as string,
    });
  });

  test.runIf(isAtLength)('a server that cannot sign at the moment is a warning', async () => {
    const { identity } = issuer.world;
    const { signer } = identity;
    const gone = new ServiceError('license_lease_unavailable', 'the key is gone');
    Object.assign(identity, { signer: gone });
    expect(await faults()).toEqual(['renewal warn']);
    Object.assign(identity, { signer });
  });

  test.runIf(isAtLength)('a copy of this machine is a warning', async () => {
    const lease = JSON.parse(readFileSync(machine.files.lease, 'utf8')) as unknown;
    const { identity } = issuer.world;
    const device = await identity.storage.read
      .selectFrom('devices')
      .selectAll()
      .where('device_id', '=', licensed.device_id)
      .executeTakeFirstOrThrow();
    const { lease_id } = licensed.claims;
    await renew(identity, device, lease, 'renewal-1');
    expect(await found('renewal')).toMatchObject({
      status: 'warn',
      evidence: { warnings: [{ code: 'credential_cloned' }] },
    });
    // The same, but this machine itself sent the request, and did not receive the answer.
    await setState({ pending: { renewal_id: 'renewal-1', lease_id } });
    expect(await faults()).toEqual([]);
  });
});

const LOST = [
  'device_key fail',
  'server device_key',
  'renewal device_key',
  'daemon device_key',
  'schedule device_key',
];

describe('the device key', () => {
  test.each(
    some(2, [
      [0o644, undefined],
      [0o666, 'others may write to'],
    ] as const),
  )(
    'whose signed files have mode %o is reported only where others may write',
    async (mode, fault) => {
      for (const name of ['lease', 'keyset', 'root'] as const) chmodSync(machine.files[name], mode);
      const { status, summary } = await found('home');
      if (fault === undefined) expect(status).toBe('ok');
      else
        expect({ status, summary }).toMatchObject({
          status: 'warn',
          summary: expect.stringContaining(fault) as string,
        });
    },
  );

  test('a device key that other users may read fails once', async () => {
    chmodSync(machine.files.key, 0o644);
    expect(await faults()).toEqual(LOST);
    expect((await found('device_key')).remedy).toBe(
      'Run `service-local doctor --fix`. If other users may have read the key, then replace it with `service-local license rotate-key`.',
    );
  });

  test('a missing or damaged device key fails with the date until which the lease works', async () => {
    const left = `the lease works until ${licensed.claims.grace_ends_at}`;
    writeFileSync(machine.files.key, 'spoilt');
    expect(await faults()).toEqual(LOST);
    const spoilt = await found('device_key');
    expect(spoilt.summary).toBe(
      `${machine.files.key} does not contain a private key in PKCS#8 PEM: the lease cannot be renewed; ${left}`,
    );
    rmSync(machine.files.key);
    expect(await faults()).toEqual(LOST);
    const lost = await found('device_key');
    expect(lost.summary).toBe(
      `${machine.files.key} is missing: the lease is for the device ${licensed.device_id}, and cannot be renewed without its key; ${left}`,
    );
    for (const { remedy } of [spoilt, lost]) {
      expect(remedy).toMatch(/new enrollment code, .*`service-local license enroll`\.$/);
    }
  });

  test('an unfinished key rotation is a warning', async () => {
    writeFileSync(machine.files.nextKey, readFileSync(machine.files.key), { mode: 0o600 });
    expect(await faults()).toEqual(['device_key warn']);
  });
});

describe('an imported lease', () => {
  beforeEach(async () => {
    daemon.release();
    rmSync(daemonFiles(machine.home).note);
    const { lease_id } = licensed.claims;
    await setState({ imported_lease_id: lease_id, last_success_at: null, next_attempt_at: null });
  });
  const byHand = { url: 'http://127.0.0.1:1', urlBy: 'default' } as const;

  test('an imported lease needs no daemon and server, and the remedy explains how to get the next one', async () => {
    const { checks, status } = await examine({ ...machine, ...byHand, offline: true });
    expect(status).toBe('ok');
    expect(checks.find(({ code }) => code === 'daemon')).toMatchObject({
      status: 'ok',
      summary: 'no daemon has run here: the lease is renewed by hand',
      remedy: expect.stringMatching(/export-request`.*`service-local license import`/) as string,
    });
    expect((await examine({ ...machine, ...byHand })).status).toBe('ok');
  });

  test('an imported lease that is due is a warning with the same remedy', async () => {
    const due = later(renewalMoment(licensed.claims) - issuer.now);
    expect(await faults({ ...byHand, ...due })).toEqual([
      'server skip',
      'renewal server',
      'schedule warn',
    ]);
    const over = { ...byHand, ...later(10 * DAY) };
    expect((await found('lease_state', over)).remedy).toMatch(/export-request/);
  });
});

describe('the daemon', () => {
  test('a stopped daemon is a warning, and a failure once the lease is due', async () => {
    daemon.release();
    expect(await faults()).toEqual(['daemon warn']);
    expect((await found('daemon')).summary).toBe(
      'the daemon was killed, so the lease is not renewed',
    );
    await setNote({ stopped_at: formatTime(issuer.now) });
    expect((await found('daemon')).summary).toBe(
      'the daemon is not running, so the lease is not renewed',
    );
    const due = renewalMoment(licensed.claims) - issuer.now;
    expect(await faults({ ...later(due), offline: true })).toEqual([
      'server skip',
      'renewal server',
      'daemon warn',
      'schedule fail',
    ]);
  });

  test('a daemon that cannot repair the license files is a failure', async () => {
    const unrepaired = { at: formatTime(issuer.now), message: 'the disk is full' };
    await setState({ unrepaired });
    expect(await found('daemon')).toMatchObject({
      status: 'fail',
      summary: 'the daemon could not repair the license files: the disk is full',
      evidence: { unrepaired },
    });
  });

  test('a late daemon is a warning, because the machine may have been asleep', async () => {
    await setState({ next_attempt_at: formatTime(issuer.now - HOUR) });
    expect(await faults()).toEqual(['schedule warn']);
    expect(await found('schedule')).toMatchObject({
      summary: expect.stringMatching(
        /^the daemon should have renewed the lease at 20\S+Z, 60 minutes ago, but has not tried$/,
      ) as string,
      remedy: expect.stringMatching(/asleep.* check again in a minute/) as string,
    });
  });

  test('a daemon that fails although the server would renew is a warning with its last error', async () => {
    const message = 'the disk is full';
    const at = formatTime(issuer.now);
    const last_error = { at, code: 'output_not_writable', reason: null, message };
    await setState({ failures_in_row: 2, last_error, next_attempt_because: 'retry' });
    expect(await faults()).toEqual(['schedule warn']);
    expect((await found('schedule')).summary).toMatch(
      /^2 attempts failed, the last with: the disk is full; next attempt at 20\S+Z: /,
    );
    // A failed renewal that a user forced before the lease is due.
    await setState({ failures_in_row: 1, last_error, next_attempt_because: 'due' });
    expect(await faults()).toEqual([]);
  });

  test.runIf(isAtLength)(
    'a daemon of another version or with another server is a warning',
    async () => {
      await setNote({ version: '0.0.1' });
      expect(await faults()).toEqual(['versions warn']);
      await setNote({ server_url: 'https://other.example' });
      expect(await faults()).toEqual(['daemon warn']);
      expect(await faults({ urlBy: 'option' })).toEqual([]);
    },
  );

  test.runIf(isAtLength)('a service unit whose Node no longer exists is a failure', async () => {
    const units = join(directory, '.config/systemd/user');
    mkdirSync(units, { recursive: true });
    const path = join(units, 'service-local.service');
    writeFileSync(path, `[Service]\nExecStart="${process.execPath}" "/gone/cli.js" daemon run\n`);
    const linux = await found('service_unit');
    expect(linux).toMatchObject({
      status: 'fail',
      summary: `${path} starts /gone/cli.js, which does not exist`,
    });
    const cli = process.argv[1]!;
    writeFileSync(path, `[Service]\nExecStart="${process.execPath}" "${cli}" daemon run\n`);
    expect(await found('service_unit')).toMatchObject({ status: 'ok', summary: path });
    const unknown = `"${process.execPath}" --no-such-option "${cli}"`;
    writeFileSync(path, `[Service]\nExecStart=${unknown} daemon run\n`);
    expect(await found('service_unit')).toMatchObject({
      status: 'fail',
      summary: expect.stringContaining('bad option: --no-such-option') as string,
    });
  });

  test.runIf(isAtLength)('a service unit for another home directory is a warning', async () => {
    const manager = serviceManager('linux', 'user', machine.env);
    mkdirSync(dirname(manager.path), { recursive: true });
    const program = [process.execPath, process.argv[1]!];
    const install = (home: string): void => {
      const environment = { SERVICE_LOCAL_HOME: home };
      writeFileSync(manager.path, manager.describe({ program, environment, writable: [] }));
    };
    install('/srv/a "b" 50%\\');
    expect(await found('service_unit')).toMatchObject({
      status: 'warn',
      summary: `${manager.path} starts the daemon for /srv/a "b" 50%\\, not for ${machine.home}`,
    });
    install(machine.home);
    expect(await found('service_unit')).toMatchObject({ status: 'ok' });
    rmSync(manager.path);
    mkdirSync(manager.path);
    expect(await found('service_unit')).toMatchObject({
      status: 'skip',
      summary: expect.stringMatching(/^the service unit cannot be read: EISDIR/) as string,
    });
  });
});

describe('the home directory', () => {
  test.runIf(isAtLength)(
    'a home directory that others may write to is a failure, and a file that they may read a warning',
    async () => {
      chmodSync(machine.files.state, 0o644);
      expect(await faults()).toContain('home warn');
      chmodSync(machine.home, 0o777);
      expect(await faults()).toEqual(['home fail']);
      expect(await found('home')).toMatchObject({
        summary: `others may write to ${machine.home} and 1 more`,
        evidence: { mode: '777', wrong_modes: [machine.home, machine.files.state] },
      });
    },
  );

  test.runIf(isAtLength)(
    'a link in place of a file that the daemon writes is a failure',
    async () => {
      renameSync(machine.files.lease, join(directory, 'elsewhere.json'));
      symlinkSync(join(directory, 'elsewhere.json'), machine.files.lease);
      expect(await faults()).toEqual(['home fail']);
      expect((await found('home')).evidence).toMatchObject({ reason: 'symlink' });
    },
  );

  test.each(some(1, ['license.lock', 'daemon.lock']))(
    'an unusable lock at %s is a failure',
    async (name) => {
      const path = join(machine.home, name);
      rmSync(path, { force: true });
      mkdirSync(path);
      expect(await faults()).toEqual(expect.arrayContaining(['home fail']));
      expect(await found('home')).toMatchObject({ evidence: { reason: 'not_a_file' } });
      rmSync(path, { recursive: true });
      writeFileSync(path, '', { mode: 0o400 });
      expect(await found('home')).toMatchObject({
        status: 'fail',
        summary: `this user may not open ${path}`,
        remedy: 'Run `service-local doctor --fix` to correct the permissions.',
      });
    },
  );

  test.runIf(isAtLength)('a lock that is not a file is a failure', async () => {
    writeFileSync(machine.files.lock, 'what is no database, as long as the head of one'.repeat(9));
    expect(await faults()).toEqual(['home fail']);
    expect((await found('home')).summary).toMatch(/license\.lock cannot be locked: file is not/);
  });

  test.runIf(isAtLength)('a log that is a link is a warning', async () => {
    const { log } = daemonFiles(machine.home);
    symlinkSync(join(directory, 'elsewhere.log'), log);
    expect(await faults()).toEqual(['home warn']);
    expect((await found('home')).summary).toBe(
      `the daemon cannot write its log: ${log} is a symbolic link`,
    );
  });

  test.runIf(isAtLength)('a file in place of the home directory fails once', async () => {
    const home = join(directory, 'file');
    writeFileSync(home, '');
    const other = { home, files: licenseFiles(home, {}), catalogueDir: join(home, 'catalogue') };
    const { status, checks } = await examine({ ...machine, ...other });
    expect(status).toBe('fail');
    expect(checks.filter((check) => check.status === 'fail')).toMatchObject([{ code: 'home' }]);
    expect(checks.find(({ code }) => code === 'disk')).toMatchObject({ because: 'home' });
  });

  test('a home directory without write access fails once', async () => {
    expect(await faults({ home: '/proc/self' })).toEqual([
      'disk fail',
      'watcher disk',
      'daemon warn',
    ]);
    const fresh = { home: '/proc/self', files: licenseFiles('/proc/self', {}) };
    expect(await found('disk', fresh)).toMatchObject({ status: 'warn' });
  });

  test.runIf(isAtLength)(
    'a damaged dataset is a failure, and files that an import left are kept',
    async () => {
      const { catalogueDir } = machine;
      mkdirSync(join(catalogueDir, 'SPX'), { recursive: true });
      mkdirSync(join(catalogueDir, '.import-abc'));
      expect(await faults()).toEqual(['catalogue fail']);
      expect((await found('catalogue')).evidence).toMatchObject({ datasets: 1, damaged: ['SPX'] });
      expect(readdirSync(catalogueDir)).toContain('.import-abc');
    },
  );
});

test.runIf(isAtLength)(
  'a lease passes all checks after the server has switched to a new signing key',
  async () => {
    const { identity } = issuer.world;
    const { signer } = identity;
    Object.assign(identity, {
      signer: await announceNext(issuer.world, identity),
    });
    expect(await faults()).toEqual([]);
    Object.assign(identity, { signer });
  },
);
