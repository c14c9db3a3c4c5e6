import { mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { makeDirectory } from '../../src/base/make-directory.ts';
import { serviceLocal } from '../cli/service-local.ts';
import { isAtLength } from '../length.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'make-directory-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

test('creates the missing directories with the mode, and leaves existing ones unchanged', () => {
  const path = join(directory, 'a/b/c');
  makeDirectory(path, 0o700);
  makeDirectory(path, 0o755);
  for (const made of ['a', 'a/b', 'a/b/c']) {
    expect(statSync(join(directory, made)).mode & 0o777).toBe(0o700);
  }
});

test('throws the system error if a file or a link is in the way', () => {
  writeFileSync(join(directory, 'file'), '');
  symlinkSync('nowhere', join(directory, 'link'));
  expect(() => makeDirectory(join(directory, 'file'))).toThrow('EEXIST');
  expect(() => makeDirectory(join(directory, 'file/below'))).toThrow('ENOTDIR');
  expect(() => makeDirectory(join(directory, 'link'))).toThrow('EEXIST');
});

test.runIf(isAtLength)(
  'a server whose home directory cannot be created exits with an error',
  async () => {
    const home = '/proc/no-such-directory/home';
    const { code, stderr } = await serviceLocal(['server', '--port', '0'], {
      env: { SERVICE_LOCAL_HOME: home },
    });
    expect(code).toBe(1);
    expect(stderr).toMatch(/^error storage_unavailable: \/proc\/no-such-directory/m);
  },
);
