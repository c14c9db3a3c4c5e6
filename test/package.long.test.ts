import { spawnSync } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, delimiter, dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';

const root = join(import.meta.dirname, '..');
let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'service-local-package-'));
});
afterAll(() => rmSync(directory, { recursive: true }));

/** Environment of a shell outside of the project, without its programs on PATH or npm's variables. */
function run(cwd: string, command: string, ...args: string[]) {
  const path = process.env['PATH']!.split(delimiter).filter(
    (part) => !part.includes('node_modules'),
  );
  const { status, stdout, stderr } = spawnSync(command, args, {
    cwd,
    encoding: 'utf8',
    env: {
      PATH: path.join(delimiter),
      HOME: process.env['HOME'],
      npm_config_cache: process.env['npm_config_cache'],
      npm_config_prefer_offline: 'true',
      SERVICE_LOCAL_HOME: join(directory, 'home'),
    },
  });
  return { status, stdout, stderr };
}

/** A copy of the project to build and pack, so that the working tree is not changed. */
function copyOfProject(): string {
  const copy = join(directory, 'project');
  const left = new Set(['node_modules', 'dist', 'test', 'runs', '.git']);
  cpSync(root, copy, { recursive: true, filter: (path) => !left.has(basename(path)) });
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  return copy;
}

/**
 * As an installation would be: the packed files, and beside them what the package declares to need,
 * and nothing of what only the project needs. What npm itself does costs 20 seconds of a processor,
 * and a network.
 */
function install(tarball: string, elsewhere: string): string {
  const modules = join(elsewhere, 'node_modules');
  const installed = join(modules, 'service-local');
  mkdirSync(installed, { recursive: true });
  writeFileSync(join(elsewhere, 'package.json'), '{ "private": true }');
  expect(run(elsewhere, 'tar', '-xzf', tarball, '--strip-components=1', '-C', installed)).toEqual({
    status: 0,
    stdout: '',
    stderr: '',
  });
  const { dependencies, bin } = JSON.parse(
    readFileSync(join(installed, 'package.json'), 'utf8'),
  ) as Record<'dependencies' | 'bin', Record<string, string>>;
  for (const name of Object.keys(dependencies)) {
    mkdirSync(dirname(join(modules, name)), { recursive: true });
    symlinkSync(join(root, 'node_modules', name), join(modules, name));
  }
  return join(installed, bin['service-local']!);
}

test('the packed package works when only it is installed', { timeout: 180_000 }, () => {
  const project = copyOfProject();
  // As `npm run prepare`, but without checking the types, which `check:types` does.
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  const quick = ['--noCheck', '--noResolve', '--types', '', '--declaration', 'false'];
  const compile = [tsc, '-p', 'src', '--singleThreaded', ...quick];
  expect(run(project, process.execPath, ...compile)).toMatchObject({ status: 0, stdout: '' });
  const options = ['--silent', '--ignore-scripts', '--pack-destination', directory];
  expect(run(project, 'npm', 'pack', ...options)).toMatchObject({ status: 0 });
  const packed = readdirSync(directory).find((name) => name.endsWith('.tgz'))!;
  const elsewhere = join(directory, 'elsewhere');
  const bin = install(join(directory, packed), elsewhere);
  expect(readFileSync(bin, 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/);

  const imports = "import 'service-local/gate'; import 'service-local/lease'";
  const imported = run(elsewhere, process.execPath, '--input-type=module', '--eval', imports);
  expect(imported).toMatchObject({ status: 0, stderr: '' });

  const serviceLocal = (...args: string[]) => run(elsewhere, process.execPath, bin, ...args);
  expect(serviceLocal('init', 'my-bot', '--no-input')).toMatchObject({ status: 0 });
  expect(serviceLocal('validate', 'my-bot/bot.yaml')).toMatchObject({ status: 0 });
  const { status, stdout } = serviceLocal(
    'backtest',
    'my-bot/bot.yaml',
    '--json',
    '--out',
    'result',
  );
  expect(status).toBe(0);
  const summary = JSON.parse(stdout) as { trades: { count: number } };
  expect(summary.trades.count).toBeGreaterThan(0);
  expect(JSON.parse(readFileSync(join(elsewhere, 'result/summary.json'), 'utf8'))).toEqual(summary);
});
