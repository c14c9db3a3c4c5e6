import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { CheckCode, CheckResult } from '../../src/doctor/run-checks.ts';
import { examine } from '../../src/doctor/examine.ts';
import type { Machine } from '../../src/doctor/machine-facts.ts';
import { repair } from '../../src/doctor/repair.ts';
import { anchorText } from '../../src/gate/anchor.ts';
import { backupOf } from '../../src/gate/license.ts';
import type { PublicKey } from '../../src/lease/keys.ts';
import { formatTime } from '../../src/lease/time.ts';
import { DAY } from '../identity/lease-world.ts';
import { keysetOf, rootOf, testKey } from '../lease/issuer.ts';
import { fingerprintOf, ROOT_KEY } from '../gate/signed-keyset.ts';
import { newLicensed, startIssuer, type Issuer, type Licensed } from './licensed.ts';

const ISSUER = 'service-local';

let issuer: Issuer;
let directory: string;
let licensed: Licensed;
let machine: Machine;
let keys: readonly PublicKey[];

beforeAll(async () => {
  issuer = await startIssuer();
});
afterAll(() => issuer.close());

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'service-local-trust-'));
  licensed = await newLicensed(issuer, directory, 'tokyo');
  machine = { ...licensed.machine, offline: true };
  ({ keys } = JSON.parse(readFileSync(machine.files.keyset, 'utf8')) as { keys: PublicKey[] });
});
afterEach(() => rmSync(directory, { recursive: true }));

const write = (path: string, text: string): void => writeFileSync(path, text, { mode: 0o600 });
const days = (count: number): string => formatTime(issuer.now + count * DAY);
const rootFor = (count: number): unknown =>
  rootOf([ROOT_KEY], { issuer: ISSUER, issued_at: days(-1), expires_at: days(count) });
const signed = (version: number, { root = 400, keyset = 300, other = [] as PublicKey[] } = {}) =>
  JSON.stringify({
    roots: [rootFor(root)],
    keyset: keysetOf([], [ROOT_KEY], {
      version,
      issuer: ISSUER,
      issued_at: days(-1),
      expires_at: days(keyset),
      keys: [...keys, ...other],
    }),
  });
const accept = (document: string, installationId = 'tokyo'): void => {
  write(machine.files.root, anchorText({ installationId, issuer: ISSUER, document }));
};
const found = async (code: CheckCode, change: Partial<Machine> = {}): Promise<CheckResult> => {
  const { checks } = await examine({ ...machine, ...change });
  return checks.find((check) => check.code === code)!;
};
const pinned = (pin = fingerprintOf(rootFor(400))): Partial<Machine> => ({
  files: { ...machine.files, pin },
});

describe('keys', () => {
  test('keys that no root signs are reported as unpinned', async () => {
    rmSync(machine.files.root, { force: true });
    expect(await found('trust')).toMatchObject({
      status: 'ok',
      summary:
        'unpinned: the keys are trusted because they are in the file, and no root signs them',
      evidence: { by: 'unpinned', pin: null, root: null, anchor: 'none' },
    });
    write(machine.files.keyset, signed(1));
    const root = fingerprintOf(rootFor(400));
    expect((await found('trust')).summary).toContain(`they are signed by the root ${root}`);
  });

  test('keys that a pinned root signs or this machine accepted are reported as such', async () => {
    rmSync(machine.files.root, { force: true });
    write(machine.files.keyset, signed(1));
    const { pin } = pinned().files!;
    expect(await found('trust', pinned())).toMatchObject({
      status: 'ok',
      summary: `the keys descend from the pinned root ${pin}`,
      evidence: { by: 'pin', keyset_version: 1 },
    });
    accept(signed(1));
    expect(await found('trust')).toMatchObject({
      status: 'ok',
      summary: `this machine accepted the keys before (root ${pin})`,
    });
  });

  test.each([
    ['without a keyset, with a pin', 'not_vouched_for', () => JSON.stringify({ keys }), pinned],
    ['of another root than the pinned one', 'other_root', () => signed(1), otherPin],
    ['of an older keyset', 'keyset_rollback', () => signed(1), accepted],
    ['without a signature', 'not_vouched_for', () => JSON.stringify({ keys }), accepted],
    [
      'of an expired keyset, with a pin',
      'keyset_expired',
      () => signed(1, { keyset: -0.5 }),
      alone,
    ],
  ] as const)('keys %s fail, with a remedy', async (_, reason, text, prepare) => {
    rmSync(machine.files.root, { force: true });
    const change = prepare();
    write(machine.files.keyset, text());
    const { status, evidence, remedy } = await found('keyset', change);
    expect({ status, evidence }).toMatchObject({ status: 'fail', evidence: { reason } });
    expect(remedy).toMatch(/`service-local doctor --fix`|[Aa]sk the issuer/);
    const works = prepare === accepted;
    expect(await found('lease_state', change)).toMatchObject({ status: works ? 'ok' : 'skip' });
  });

  function otherPin(): Partial<Machine> {
    return pinned(fingerprintOf(rootFor(500)));
  }
  function accepted(): Partial<Machine> {
    accept(signed(2));
    return {};
  }
  /** A machine with a delivered lease, which was not enrolled. */
  function alone(): Partial<Machine> {
    const later = issuer.now + DAY;
    return { ...pinned(), clock: () => later };
  }

  test.each([
    ['root', { root: 59 }, 'expires at'],
    ['keyset', { keyset: 59 }, 'expires at'],
    ['keyset', { keyset: -0.5 }, 'expired at'],
  ])('keys of a %s that expires within 60 days are a warning: %j', async (what, end, when) => {
    accept(signed(1, end));
    write(machine.files.keyset, signed(1, end));
    const { status, summary, remedy } = await found('trust');
    expect({ status, summary }).toMatchObject({
      status: 'warn',
      summary: expect.stringContaining(`the license ${what} of ${ISSUER} ${when} 20`),
    });
    expect(remedy).toBe(`Ask the issuer to renew its ${what}.`);
    expect((await found('lease_state')).status).toBe('ok');
  });
});

describe('the trust anchor', () => {
  test('a damaged trust anchor fails, but the lease keeps working', async () => {
    write(machine.files.root, '{');
    expect(await found('trust')).toMatchObject({
      status: 'fail',
      summary: expect.stringContaining('the trust anchor is damaged'),
      evidence: { anchor: 'damaged', anchor_reason: 'not_json' },
      remedy: expect.stringContaining('`service-local license renew --now`'),
    });
    expect((await found('lease_state')).status).toBe('ok');
  });

  test('a trust anchor of another root than the pinned one fails', async () => {
    write(machine.files.keyset, signed(1));
    accept(signed(1, { root: 500 }));
    expect(await found('trust', pinned())).toMatchObject({
      status: 'fail',
      evidence: { anchor_reason: 'other_root', by: 'pin' },
      remedy: expect.stringContaining('SERVICE_LICENSE_ROOT'),
    });
  });

  test('a lease of another installation than that of the trust anchor fails once', async () => {
    accept(signed(1), 'osaka');
    write(machine.files.keyset, signed(1));
    const { checks } = await examine(machine);
    expect(checks.find(({ code }) => code === 'trust')).toMatchObject({
      status: 'fail',
      summary: expect.stringMatching(
        /the lease is for the installation tokyo.*this machine is osaka/,
      ),
      remedy: expect.stringContaining('`service-local license enroll`'),
    });
    expect(checks.find(({ code }) => code === 'lease_signature')).toMatchObject({
      status: 'skip',
      because: 'trust',
    });
  });
});

test('a lease that other users can change fails, and --fix corrects its permissions', async () => {
  for (const path of [machine.files.lease, backupOf(machine.files.lease)]) chmodSync(path, 0o666);
  expect(await found('lease_file')).toMatchObject({
    status: 'fail',
    remedy: `Check who changed it, and run \`chmod go-w ${machine.files.lease}\`.`,
  });
  await repair(machine, () => {});
  expect((await found('lease_file')).status).toBe('ok');
});

test('--fix accepts no keys if this machine accepted none before', async () => {
  rmSync(machine.files.root, { force: true });
  write(machine.files.keyset, JSON.stringify({ keys: [testKey(9).jwk] }));
  write(backupOf(machine.files.lease), 'torn');
  const before = readFileSync(machine.files.keyset, 'utf8');
  expect(await repair(machine, () => {})).toEqual([]);
  expect(readFileSync(machine.files.keyset, 'utf8')).toBe(before);
});
