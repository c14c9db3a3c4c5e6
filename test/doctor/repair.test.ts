import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { examine } from '../../src/doctor/examine.ts';
import type { Machine } from '../../src/doctor/machine-facts.ts';
import { repair } from '../../src/doctor/repair.ts';
import { backupOf } from '../../src/gate/license.ts';
import { holdLock } from '../../src/base/file-lock.ts';
import { licenseFiles } from '../../src/gate/license-files.ts';
import { newLicensed, startIssuer, type Issuer } from './licensed.ts';

let issuer: Issuer;
let directory: string;
let machine: Machine;
let lease: string;
let warnings: string[];

beforeAll(async () => {
  issuer = await startIssuer();
});
afterAll(() => issuer.close());

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'service-local-repair-'));
  ({ machine } = await newLicensed(issuer, directory, 'tokyo'));
  lease = readFileSync(machine.files.lease, 'utf8');
  warnings = [];
});
afterEach(() => rmSync(directory, { recursive: true }));

const fix = () => repair(machine, (text) => warnings.push(text));
const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8);
const names = (): string[] => readdirSync(machine.home).toSorted();
/** Writes a file that another process left long ago. */
const leave = (path: string, text: string): void => {
  writeFileSync(path, text);
  utimesSync(path, 1, 1);
};
/** Name of a temporary file of `writeAtomically`. */
const temporary = (path: string): string => `${path}.0123456789abcdef.tmp`;

test('valid files are not changed', async () => {
  const look = (): unknown =>
    names().map((name) => {
      const { ino, mtimeMs, mode } = statSync(join(machine.home, name));
      return [name, ino, mtimeMs, mode];
    });
  const before = look();
  expect(await fix()).toEqual([]);
  expect(look()).toEqual(before);
  expect(warnings).toEqual([]);
});

test('a missing home directory is not created', async () => {
  const home = join(directory, 'other');
  expect(await repair({ ...machine, home, files: licenseFiles(home, {}) }, () => {})).toEqual([]);
  expect(existsSync(home)).toBe(false);
});

test('private files are made inaccessible to other users', async () => {
  const { home, files } = machine;
  for (const [path, mode] of [
    [home, 0o777],
    [files.key, 0o644],
    [files.lease, 0o664],
  ] as const) {
    chmodSync(path, mode);
  }
  expect(await fix()).toEqual([
    { code: 'home', path: home, done: 'made inaccessible to other users' },
    { code: 'home', path: files.lease, done: 'made inaccessible to other users' },
    {
      code: 'device_key',
      path: files.key,
      done: 'made inaccessible to other users; if other users may have read the key, replace it with `service-local license rotate-key`',
    },
  ]);
  expect([home, files.key, files.lease].map(modeOf)).toEqual(['700', '600', '600']);
  expect(await fix()).toEqual([]);
  chmodSync(files.lock, 0o444);
  expect(await fix()).toEqual([
    { code: 'home', path: files.lock, done: 'made accessible to this user' },
  ]);
  expect(modeOf(files.lock)).toBe('600');
});

test('a truncated lease is quarantined, and replaced by its copy', async () => {
  const { files } = machine;
  writeFileSync(files.lease, lease.slice(0, 100));
  const [repaired] = await fix();
  expect(repaired).toMatchObject({ code: 'lease_file', path: files.lease });
  expect(readFileSync(files.lease, 'utf8')).toBe(lease);
  const kept = names().filter((name) => name.includes('.quarantined-'));
  expect(kept).toHaveLength(1);
  expect(repaired!.done).toBe(
    `the best copy was restored; the previous file is now ${join(machine.home, kept[0]!)}`,
  );
  expect(readFileSync(join(machine.home, kept[0]!), 'utf8')).toBe(lease.slice(0, 100));
  expect(await fix()).toEqual([]);
});

test('a missing lease is restored from a temporary file', async () => {
  const { files } = machine;
  rmSync(files.lease);
  rmSync(backupOf(files.lease));
  leave(temporary(files.lease), lease);
  expect(await fix()).toMatchObject([
    { code: 'lease_file', done: 'the best copy was restored' },
    { code: 'disk', path: temporary(files.lease), done: 'removed' },
  ]);
  for (const path of [files.lease, backupOf(files.lease)]) {
    expect(readFileSync(path, 'utf8')).toBe(lease);
  }
});

test('without a valid copy, a truncated lease and temporary files are kept', async () => {
  const { files } = machine;
  for (const path of [files.keyset, files.root, backupOf(files.lease)]) rmSync(path);
  writeFileSync(files.lease, '');
  leave(temporary(files.lease), lease);
  expect(await fix()).toEqual([]);
  expect(readFileSync(files.lease, 'utf8')).toBe('');
  expect(readFileSync(temporary(files.lease), 'utf8')).toBe(lease);
});

test('files of killed processes are removed, but not those of running ones', async () => {
  const { home, files } = machine;
  const selfTest = join(home, '.self-test-abcdef');
  const fresh = temporary(files.lease);
  mkdirSync(selfTest);
  leave(temporary(files.state), '{');
  leave(join(home, 'notes.tmp'), 'mine');
  writeFileSync(fresh, '');
  utimesSync(selfTest, 1, 1);
  const removed = [selfTest, temporary(files.state)];
  expect((await fix()).map(({ path }) => path).toSorted()).toEqual(removed.toSorted());
  expect(names()).toEqual(expect.arrayContaining(['notes.tmp']));
  expect(existsSync(fresh)).toBe(true);
});

test('a lease that is a link to an invalid file is reported, and not changed', async () => {
  const { files } = machine;
  const elsewhere = join(directory, 'elsewhere.json');
  renameSync(files.lease, elsewhere);
  writeFileSync(elsewhere, '');
  symlinkSync(elsewhere, files.lease);
  expect(await fix()).toEqual([]);
  expect(warnings).toEqual([`not repaired: ${files.lease} is a symbolic link`]);
  expect(readFileSync(elsewhere, 'utf8')).toBe('');
});

test('a repair waits for a process that holds the license lock', async () => {
  const { files } = machine;
  writeFileSync(files.lease, '');
  const lock = await holdLock(files.lock, 0);
  const fixing = fix();
  lock.release();
  expect(await fixing).toHaveLength(1);
  expect((await examine({ ...machine, offline: true })).checks).toContainEqual(
    expect.objectContaining({ code: 'lease_file', status: 'ok' }),
  );
});
