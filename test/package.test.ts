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
import { basename, delimiter, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';

const root = join(import.meta.dirname, '..');
let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'service-local-package-'));
});
afterAll(() => rmSync(directory, { recursive: true }));

/** As in a shell outside of the project: none of its programs on PATH, none of npm's variables. */
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

/** A copy to build and pack in, so that nobody who is at work in the project is disturbed. */
function copyOfProject(): string {
  const copy = join(directory, 'project');
  const left = new Set(['node_modules', 'dist', 'runs', '.git']);
  cpSync(root, copy, { recursive: true, filter: (path) => !left.has(basename(path)) });
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  return copy;
}

test('the packed package works where nothing but it is installed', { timeout: 180_000 }, () => {
  const pack = run(copyOfProject(), 'npm', 'pack', '--silent', '--pack-destination', directory);
  expect(pack).toMatchObject({ status: 0 });
  const packed = readdirSync(directory).find((name) => name.endsWith('.tgz'))!;
  const elsewhere = join(directory, 'elsewhere');
  mkdirSync(elsewhere);
  writeFileSync(join(elsewhere, 'package.json'), '{ "private": true }');
  const install = run(elsewhere, 'npm', 'install', '--silent', join(directory, packed));
  expect(install).toMatchObject({ status: 0 });

  const imports = "import 'service-local/gate'; import 'service-local/lease'";
  const imported = run(elsewhere, process.execPath, '--input-type=module', '--eval', imports);
  expect(imported).toMatchObject({ status: 0, stderr: '' });

  const serviceLocal = (...args: string[]) =>
    run(elsewhere, 'npx', '--no-install', 'service-local', ...args);
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
