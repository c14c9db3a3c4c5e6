import { spawnSync } from 'node:child_process';
import {
  chmodSync,
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
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { oldNode } from './cli/old-node.ts';

const root = join(import.meta.dirname, '..');
const modules = join(root, 'node_modules');
let directory: string;
/** The packed package. */
let tarball: string;
/** A project with nothing but the package and its dependencies. */
let elsewhere: string;
/** The command of the installed package. */
let bin: string;

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'service-local-package-'));
  tarball = pack(copyOfProject());
  elsewhere = join(directory, 'elsewhere');
  bin = install(tarball, elsewhere);
}, 300_000);
afterAll(() => rmSync(directory, { recursive: true }));

/** Runs a command as in a shell outside of the project: without its programs and npm's variables. */
function run(cwd: string, command: string, ...args: string[]) {
  const path = process.env['PATH']!.split(delimiter).filter(
    (part) => !part.includes('node_modules'),
  );
  const { status, stdout, stderr } = spawnSync(command, args, {
    cwd,
    encoding: 'utf8',
    env: {
      PATH: [join(directory, 'bin'), ...path].join(delimiter),
      HOME: process.env['HOME'],
      npm_config_cache: process.env['npm_config_cache'],
      npm_config_prefer_offline: 'true',
      SERVICE_LOCAL_HOME: join(directory, 'home'),
    },
  });
  return { status, stdout, stderr };
}

/** A copy to build and pack in, so that the build of the project stays unchanged. */
function copyOfProject(): string {
  const copy = join(directory, 'project');
  const left = new Set(['node_modules', 'dist', '.vitepress', 'test', 'runs', '.git']);
  cpSync(root, copy, { recursive: true, filter: (path) => !left.has(basename(path)) });
  symlinkSync(modules, join(copy, 'node_modules'));
  return copy;
}

function pack(project: string): string {
  const tsc = join(modules, 'typescript/bin/tsc');
  const compile = [tsc, '-p', 'src', '--singleThreaded'];
  expect(run(project, process.execPath, ...compile)).toMatchObject({ status: 0, stdout: '' });
  const options = ['--silent', '--ignore-scripts', '--pack-destination', directory];
  expect(run(project, 'npm', 'pack', ...options)).toMatchObject({ status: 0 });
  return join(
    directory,
    readdirSync(directory).find((name) => name.endsWith('.tgz'))!,
  );
}

/**
 * Unpacks the tarball and links the dependencies that it declares, as an installation would. npm
 * itself would need a network and 20 seconds.
 */
function install(packed: string, project: string): string {
  const installed = join(project, 'node_modules/service-local');
  mkdirSync(installed, { recursive: true });
  writeFileSync(join(project, 'package.json'), '{ "private": true, "type": "module" }');
  const unpack = ['-xzf', packed, '--strip-components=1', '-C', installed];
  expect(run(project, 'tar', ...unpack)).toMatchObject({ status: 0, stderr: '' });
  const manifest = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')) as Record<
    'dependencies' | 'bin',
    Record<string, string>
  >;
  for (const name of [...Object.keys(manifest.dependencies), '@types/node', 'undici-types']) {
    const link = join(project, 'node_modules', name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(modules, name), link);
  }
  return join(installed, manifest.bin['service-local']!);
}

test('publint and Are The Types Wrong find no fault in the package', () => {
  const publint = join(modules, 'publint/src/cli.js');
  expect(run(root, process.execPath, publint, 'run', tarball, '--strict')).toMatchObject({
    status: 0,
    stdout: expect.stringContaining('All good!') as string,
  });
  const attw = join(modules, '@arethetypeswrong/cli/dist/index.js');
  // The package is only for Node 24 and newer, which resolves and requires ES modules.
  const report = run(root, process.execPath, attw, tarball, '--profile', 'esm-only');
  expect(report).toMatchObject({ status: 0 });
});

const OWN_STRATEGY = `
import { defineStrategy, integer, Sma } from 'service-local/strategy';

export default defineStrategy({
  name: 'above_average',
  description: 'Long while the close is above its average.',
  params: { period: integer({ default: 50, min: 2 }) },
  create({ params, instruments: [instrument], broker }) {
    const average = new Sma(params.period);
    return {
      onBar() {
        broker.target(instrument!, instrument!.close > average.next(instrument!.close) ? 1 : 0);
      },
    };
  },
});
`;

/** Uses every export of the package, so that a wrong or missing type is an error. */
const CONSUMER = `
import { openLicenseGate, type LicenseGate } from 'service-local/gate';
import { importKeyset, leaseStatus, verifyLease, type LeaseClaims } from 'service-local/lease';
import strategy from './own.ts';

const gate: Promise<LicenseGate> = openLicenseGate({ enforced: true });
const keyset = importKeyset('{}');
const lease = keyset.ok ? verifyLease('', keyset.keys) : keyset;
const claims: LeaseClaims | undefined = lease.ok ? lease.claims : undefined;
const state: string | undefined = claims && leaseStatus(claims, Date.now()).state;
const name: string = strategy.name;
export { gate, name, state };
// @ts-expect-error: the types of the package are known, and this is not one of them
export const wrong: number = gate;
`;

describe('the installed package', () => {
  test('exports modules that load, with types that fit', () => {
    writeFileSync(join(elsewhere, 'own.ts'), OWN_STRATEGY);
    writeFileSync(join(elsewhere, 'consumer.ts'), CONSUMER);
    const exported = ['gate', 'lease', 'strategy'].map((name) => `import 'service-local/${name}';`);
    const evaluated = ['--input-type=module', '--eval', exported.join('')];
    expect(run(elsewhere, process.execPath, ...evaluated)).toMatchObject({ status: 0, stderr: '' });
    const tsc = join(modules, 'typescript/bin/tsc');
    const options = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2024'];
    const relaxed = ['--skipLibCheck', '--allowImportingTsExtensions', '--types', 'node'];
    const checked = run(elsewhere, process.execPath, tsc, ...options, ...relaxed, 'consumer.ts');
    expect(checked).toMatchObject({ status: 0, stdout: '' });
  });

  const nodes = [
    { name: 'the pinned Node', node: process.execPath },
    ...(oldNode === undefined ? [] : [{ name: 'an old Node', node: oldNode }]),
  ];

  test.each(nodes)('creates and backtests bots, started with $name', ({ name, node }) => {
    if (node !== process.execPath) offerNode();
    const serviceLocal = (...args: string[]) => run(elsewhere, node, bin, ...args);
    const bot = `bot-${name.length}`;
    expect(serviceLocal('init', bot, '--no-input')).toMatchObject({ status: 0 });
    expect(serviceLocal('validate', `${bot}/bot.yaml`)).toMatchObject({ status: 0 });
    expect(tradesOf(serviceLocal, `${bot}/bot.yaml`)).toBeGreaterThan(0);

    const spec = readFileSync(join(elsewhere, bot, 'bot.yaml'), 'utf8');
    writeFileSync(
      join(elsewhere, bot, 'own.yaml'),
      spec.replace(/strategy: .*/, 'strategy: { module: ./own.ts, params: { period: 100 } }'),
    );
    writeFileSync(join(elsewhere, bot, 'own.ts'), OWN_STRATEGY);
    expect(tradesOf(serviceLocal, `${bot}/own.yaml`)).toBeGreaterThan(0);
  });
});

/** Number of trades in a backtest, whose printed and written summaries must be equal. */
function tradesOf(
  serviceLocal: (...args: string[]) => ReturnType<typeof run>,
  bot: string,
): number {
  const { status, stdout, stderr } = serviceLocal('backtest', bot, '--json', '--out', 'result');
  expect(status, stderr).toBe(0);
  const summary = JSON.parse(stdout) as { trades: { count: number } };
  expect(JSON.parse(readFileSync(join(elsewhere, 'result/summary.json'), 'utf8'))).toEqual(summary);
  rmSync(join(elsewhere, 'result'), { recursive: true });
  return summary.trades.count;
}

/** Puts an npm on the PATH that offers the pinned Node, as npm does from its cache. */
function offerNode(): void {
  const npm = join(directory, 'bin/npm');
  mkdirSync(dirname(npm), { recursive: true });
  writeFileSync(npm, `#!/bin/sh\necho '${process.execPath}'\n`);
  chmodSync(npm, 0o755);
}
