import { execFile } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { restoreDatabase } from '../../src/server/restore-database.ts';
import { backupDatabase } from '../../src/storage/backup.ts';
import { failAt } from '../fault/fail-points.ts';
import { SCRATCH } from '../scratch.ts';
import { newSqliteTables } from '../storage/databases.ts';
import { BASIC_ENV, BIN } from './service-local.ts';

const FAIL_POINTS = join(import.meta.dirname, '../fault/fail-points.ts');

let root: string;
let backup: string;

beforeAll(async () => {
  root = await mkdtemp(join(SCRATCH, 'backup-kill-'));
  const home = await newHome();
  backup = join(root, 'backup.sqlite');
  await backupDatabase(home, {}, backup, { force: false });
});
afterAll(() => rm(root, { recursive: true }));

async function newHome(): Promise<string> {
  const home = await mkdtemp(join(root, 'home-'));
  const database = await newSqliteTables();
  await copyFile(database.location.file, join(home, 'server.sqlite'));
  await database.remove();
  return home;
}

/** Runs the CLI and kills it at one of its system calls that change files. @returns whether it was killed */
async function killAt(at: number, directory: string, home: string, args: readonly string[]) {
  const env = {
    ...BASIC_ENV,
    SERVICE_LOCAL_HOME: home,
    FAIL_POINT: JSON.stringify({ directory, at, fault: 'kill' }),
  };
  const all = ['--import', FAIL_POINTS, BIN, ...args];
  const ended = promisify(execFile)(process.execPath, all, { cwd: root, env });
  return ended.then(
    () => undefined,
    (error: { readonly signal?: string }) => error.signal,
  );
}

function inDatabase(file: string): { readonly epoch: number; readonly halts: number } {
  const database = new Database(file);
  try {
    expect(database.pragma('integrity_check', { simple: true })).toBe('ok');
    return database
      .prepare<[], { readonly epoch: number; readonly halts: number }>(
        'select epoch, (select count(*) from halts where lifted_at is null) as halts from database_identity',
      )
      .get()!;
  } finally {
    database.close();
  }
}

const OLD = { epoch: 1, halts: 0 };
const NEW = { epoch: 2, halts: 1 };

test('a killed restore leaves either the former database or the restored one', async () => {
  const whole = await newHome();
  const options = { force: true, audit: undefined, keyset: undefined };
  const never = { directory: whole, at: 1_000_000, fault: 'EIO' } as const;
  const { calls, end } = await failAt(never, () => restoreDatabase(whole, {}, backup, options));
  expect(end).toBe('done');
  const replacing = calls.indexOf('rename server.sqlite') + 1;
  for (const at of calls.map((_, i) => i + 1)) {
    const home = await newHome();
    const args = ['server', 'restore', backup, '--force'];
    expect(await killAt(at, home, home, args)).toBe('SIGKILL');
    const file = join(home, 'server.sqlite');
    expect({ at, ...inDatabase(file) }).toEqual({ at, ...(at <= replacing ? OLD : NEW) });
    await restoreDatabase(home, {}, backup, options);
    expect(inDatabase(file)).toMatchObject({ halts: 1 });
    expect((await readdir(home)).filter((name) => name.includes('.tmp'))).toEqual([]);
  }
});

test('a killed backup leaves either the former file or the new one', async () => {
  const home = await newHome();
  const directory = join(root, 'backups');
  await mkdir(directory);
  const out = join(directory, 'backup.sqlite');
  const never = { directory, at: 1_000_000, fault: 'EIO' } as const;
  const { calls } = await failAt(never, () => backupDatabase(home, {}, out, { force: true }));
  const replacing = calls.indexOf('rename backup.sqlite') + 1;
  await copyFile(backup, out);
  const database = new Database(out);
  database.exec('update database_identity set epoch = 7');
  database.close();
  for (const at of calls.map((_, i) => i + 1)) {
    const args = ['server', 'backup', '--out', out, '--force'];
    expect(await killAt(at, directory, home, args)).toBe('SIGKILL');
    expect({ at, ...inDatabase(out) }).toMatchObject({ at, epoch: at <= replacing ? 7 : 1 });
  }
  await backupDatabase(home, {}, out, { force: true });
  expect(await readdir(directory)).toEqual(['backup.sqlite']);
});
