import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { holdLock, isLocked } from '../../src/base/file-lock.ts';

let directory: string;
let path: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'service-local-lock-'));
  path = join(directory, 'home/some.lock');
});

afterEach(() => rmSync(directory, { recursive: true }));

/** A process that holds it until it is killed; resolves when it does. */
async function holder(): Promise<ChildProcess> {
  const module = join(import.meta.dirname, '../../src/base/file-lock.ts');
  const script = `
    const { holdLock } = await import(${JSON.stringify(module)});
    await holdLock(${JSON.stringify(path)}, 0);
    process.send('held');
    setInterval(() => {}, 1000);
  `;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  await once(child, 'message');
  return child;
}

it('a lock is held by one process, and free once that is killed', async () => {
  expect(isLocked(path)).toBe(false);
  const child = await holder();
  expect(isLocked(path)).toBe(true);
  await expect(holdLock(path, 0)).rejects.toMatchObject({ code: 'conflict', reason: 'locked' });
  const waiting = holdLock(path, 30_000);
  child.kill('SIGKILL');
  const lock = await waiting;
  expect(isLocked(path)).toBe(true);
  lock.release();
  expect(isLocked(path)).toBe(false);
});

it('a lock excludes other callers in the same process, even while it is probed', async () => {
  const first = await holdLock(path, 0);
  expect(isLocked(path)).toBe(true);
  await expect(holdLock(path, 0)).rejects.toMatchObject({ reason: 'locked' });
  expect(isLocked(path)).toBe(true);
  let order = '';
  const second = holdLock(path, 30_000).then((lock) => {
    order += 'second';
    return lock;
  });
  order += 'first ';
  first.release();
  (await second).release();
  first.release();
  expect(order).toBe('first second');
});

it('a lock reports that its file was replaced', async () => {
  const lock = await holdLock(path, 0);
  expect(lock.isInPlace()).toBe(true);
  rmSync(path);
  expect(lock.isInPlace()).toBe(false);
  const other = await holdLock(path, 0);
  expect([lock.isInPlace(), other.isInPlace()]).toEqual([false, true]);
  lock.release();
  other.release();
});

it('a lock writes no journal, and ignores an abandoned one', async () => {
  (await holdLock(path, 0)).release();
  writeFileSync(`${path}-journal`, 'what somebody left');
  const lock = await holdLock(path, 0);
  expect(isLocked(path)).toBe(true);
  lock.release();
  rmSync(`${path}-journal`, { force: true });
  const again = await holdLock(path, 0);
  expect(existsSync(`${path}-journal`)).toBe(false);
  again.release();
  expect(statSync(path).size).toBe(0);
});

it('a lock in a directory of another user is refused', async () => {
  (await holdLock(path, 0)).release();
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(statSync(join(directory, 'home')).mode & 0o777).toBe(0o700);
  expect(statSync(path).size).toBe(0);
});

it('a lock on a file with other content is refused', async () => {
  const other = join(directory, 'other');
  writeFileSync(other, 'what somebody wants to keep, as long as the head of a database'.repeat(9));
  await expect(holdLock(other, 0)).rejects.toMatchObject({
    code: 'output_not_writable',
    message: `${other} cannot be locked: file is not a database`,
  });
  await expect(holdLock(directory, 0)).rejects.toMatchObject({ code: 'output_not_writable' });
  const dangling = join(directory, 'dangling');
  symlinkSync(join(directory, 'nowhere'), dangling);
  await expect(holdLock(dangling, 0)).rejects.toMatchObject({ code: 'output_not_writable' });
});

it('root creates no lock file in the home of another user', async () => {
  const uid = process.getuid!();
  const getuid = vi.spyOn(process, 'getuid').mockReturnValue(uid + 1);
  try {
    await expect(holdLock(join(directory, 'some.lock'), 0)).rejects.toMatchObject({
      code: 'invalid_data',
      reason: 'foreign_owner',
      remedy: expect.stringContaining(`sudo chown ${uid + 1} ${directory}`) as string,
    });
  } finally {
    getuid.mockRestore();
  }
  expect(existsSync(join(directory, 'some.lock'))).toBe(false);
});
