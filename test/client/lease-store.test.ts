import { execFile } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  promises,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { quarantine, storeKeyset, storeLease } from '../../src/client/lease-store.ts';

let home: string;
let lease: string;
let backup: string;
let keyset: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'service-local-lease-store-'));
  lease = join(home, 'license_lease.json');
  backup = `${lease}.bak`;
  keyset = join(home, 'license_public_key.json');
});
afterEach(() => rmSync(home, { recursive: true }));

const read = (path: string): string => readFileSync(path, 'utf8');
const modeOf = (path: string): number => statSync(path).mode & 0o777;

describe('a lease', () => {
  test('a lease is stored twice, in private files of a new directory', async () => {
    const deep = join(home, 'a', 'b', 'lease.json');
    await storeLease(deep, 'text');
    expect([read(deep), read(`${deep}.bak`)]).toEqual(['text', 'text']);
    expect([modeOf(deep), modeOf(`${deep}.bak`)]).toEqual([0o600, 0o600]);
    expect([modeOf(join(home, 'a')), modeOf(join(home, 'a', 'b'))]).toEqual([0o700, 0o700]);
  });

  test('a lease replaces the former one and files of a killed process', async () => {
    await storeLease(lease, 'a longer text from before');
    const left = ['device.key', 'license_lease.json', 'license_lease.json.bak'].map((name) =>
      join(home, `${name}.0123456789abcdef.tmp`),
    );
    for (const path of left) {
      writeFileSync(path, 'left');
      utimesSync(path, 0, 0);
    }
    await storeKeyset(keyset, 'keys');
    expect(left.map(read)).toEqual(['left', 'left', 'left']);
    await storeLease(lease, 'text');
    expect([read(lease), read(backup)]).toEqual(['text', 'text']);
    expect(readdirSync(home)).toEqual([
      'license_lease.json',
      'license_lease.json.bak',
      'license_public_key.json',
    ]);
  });

  test('a lease is stored even if an abandoned file cannot be removed', async () => {
    const left = `${lease}.0123456789abcdef.tmp`;
    mkdirSync(left);
    utimesSync(left, 0, 0);
    await storeLease(lease, 'text');
    expect(read(lease)).toBe('text');
  });
});

describe('neither lease nor keyset takes the place of', () => {
  const cases = [
    { what: 'the lease', at: () => lease, act: () => storeLease(lease, 'new') },
    { what: 'its backup', at: () => backup, act: () => storeLease(lease, 'new') },
    { what: 'the keyset', at: () => keyset, act: () => storeKeyset(keyset, 'new') },
    { what: 'what is bad', at: () => lease, act: () => quarantine(lease, 0) },
  ];
  beforeEach(() => {
    for (const path of [lease, backup, keyset]) writeFileSync(path, 'old', { mode: 0o600 });
  });

  test.each(cases)('a link is not replaced, as $what', async ({ at, act }) => {
    const elsewhere = join(home, 'elsewhere');
    writeFileSync(elsewhere, 'old');
    rmSync(at());
    symlinkSync(elsewhere, at());
    await expect(act()).rejects.toMatchObject({
      code: 'invalid_data',
      reason: 'symlink',
      message: `${at()} is a symbolic link`,
      remedy: 'Replace the link with the file itself.',
    });
    expect([elsewhere, lease, backup, keyset].map(read)).toEqual(['old', 'old', 'old', 'old']);
  });

  test.each(cases)('a dangling link is not replaced, as $what', async ({ at, act }) => {
    rmSync(at());
    symlinkSync(join(home, 'nothing'), at());
    await expect(act()).rejects.toMatchObject({ code: 'invalid_data', reason: 'symlink' });
    expect(readdirSync(home)).toHaveLength(3);
  });

  test.each(cases)('a directory or a pipe is not replaced, as $what', async ({ at, act }) => {
    rmSync(at());
    mkdirSync(at());
    const refusal = {
      code: 'invalid_data',
      reason: 'not_a_file',
      message: `${at()} is not a regular file`,
      remedy: 'Move it away.',
    };
    await expect(act()).rejects.toMatchObject(refusal);
    rmSync(at(), { recursive: true });
    await promisify(execFile)('mkfifo', [at()]);
    await expect(act()).rejects.toMatchObject(refusal);
    const others = [lease, backup, keyset].filter((path) => path !== at());
    expect(others.map(read)).toEqual(['old', 'old']);
  });

  test.each(cases)('a file of another user is not replaced, as $what', async ({ act }) => {
    const { uid } = statSync(lease);
    const getuid = vi.spyOn(process, 'getuid').mockReturnValue(uid + 1);
    try {
      await expect(act()).rejects.toMatchObject({
        code: 'invalid_data',
        reason: 'foreign_owner',
        message: expect.stringMatching(
          `belongs to user ${uid}, but this process runs as`,
        ) as string,
        remedy: expect.stringContaining(`sudo chown ${uid + 1} `) as string,
      });
    } finally {
      getuid.mockRestore();
    }
    expect([lease, backup, keyset].map(read)).toEqual(['old', 'old', 'old']);
  });

  test('no file is replaced in a directory that other users can write to', async () => {
    chmodSync(home, 0o770);
    const refusal = { code: 'invalid_data', reason: 'not_private' };
    await expect(storeLease(lease, 'new')).rejects.toMatchObject(refusal);
    await expect(storeKeyset(keyset, 'new')).rejects.toMatchObject(refusal);
    expect([lease, backup, keyset].map(read)).toEqual(['old', 'old', 'old']);
  });

  test('a file in place of the directory is not replaced', async () => {
    const path = join(lease, 'license_lease.json');
    await expect(storeLease(path, 'new')).rejects.toMatchObject({ code: 'output_not_writable' });
    expect(read(lease)).toBe('old');
  });
});

describe('quarantine', () => {
  const NOON = Date.UTC(2026, 0, 5, 12);

  test('quarantine gives a file a second name and leaves it at its path', async () => {
    writeFileSync(lease, 'bad');
    const kept = await quarantine(lease, NOON);
    expect(kept).toBe(`${lease}.quarantined-20260105T120000000Z`);
    expect([lease, kept!].map(read)).toEqual(['bad', 'bad']);
    await storeLease(lease, 'good');
    expect([lease, kept!].map(read)).toEqual(['good', 'bad']);
  });

  test('quarantine copies a file where hard links are not supported', async () => {
    const { link } = promises;
    const refuse = Object.assign(new Error('not permitted'), { code: 'EPERM', syscall: 'link' });
    promises.link = () => Promise.reject(refuse);
    syncBuiltinESMExports();
    try {
      writeFileSync(lease, 'bad', { mode: 0o600 });
      const kept = await quarantine(lease, NOON);
      expect([read(lease), read(kept!), modeOf(kept!)]).toEqual(['bad', 'bad', 0o600]);
    } finally {
      promises.link = link;
      syncBuiltinESMExports();
    }
  });

  test('quarantine of a missing file does nothing', async () => {
    expect(await quarantine(lease, NOON)).toBeUndefined();
    expect(readdirSync(home)).toEqual([]);
  });

  test('quarantine keeps the same file only once', async () => {
    writeFileSync(lease, 'bad');
    const first = await quarantine(lease, NOON);
    expect(await quarantine(lease, NOON + 60_000)).toBe(first);
    expect(readdirSync(home)).toHaveLength(2);
  });

  test('quarantine keeps the newest three files, even of the same moment', async () => {
    for (const [number, time] of [NOON, NOON + 1000, NOON + 2000, NOON + 2000].entries()) {
      rmSync(lease, { force: true });
      writeFileSync(lease, `bad ${number}`);
      await quarantine(lease, time);
    }
    const kept = readdirSync(home).filter((name) => name.includes('quarantined'));
    expect(kept.sort().map((name) => read(join(home, name)))).toEqual(['bad 1', 'bad 2', 'bad 3']);
  });
});
