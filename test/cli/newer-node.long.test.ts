import { execFileSync, spawn } from 'node:child_process';
import {
  chmod,
  copyFile,
  mkdtemp,
  readFile,
  realpath,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { oldNode } from './old-node.ts';

const ROOT = join(import.meta.dirname, '../..');

let directory: string;
let script: string;

/** The compiled package, and fakes of npm. */
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'service-local-old-node-'));
  execFileSync(process.execPath, [
    join(ROOT, 'node_modules/.bin/tsc'),
    '--noCheck',
    '--noResolve',
    '--singleThreaded',
    '--declaration',
    'false',
    '--types',
    '',
    '--project',
    join(ROOT, 'src'),
    '--outDir',
    join(directory, 'dist'),
  ]);
  await copyFile(join(ROOT, 'package.json'), join(directory, 'package.json'));
  await symlink(join(ROOT, 'node_modules'), join(directory, 'node_modules'));
  script = join(directory, 'dist/bin/service-local.js');
});

afterAll(() => rm(directory, { recursive: true, force: true }));

/** Creates a directory for PATH that contains only this `npm`. */
async function npmThat(...lines: string[]): Promise<string> {
  const bin = await mkdtemp(join(directory, 'npm-'));
  await program(join(bin, 'npm'), ...lines);
  return bin;
}

async function program(file: string, ...lines: string[]): Promise<void> {
  await writeFile(file, ['#!/bin/sh', ...lines, ''].join('\n'));
  await chmod(file, 0o755);
}

interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the CLI on the old Node with only `path` as PATH. */
async function onOldNode(
  args: readonly string[],
  path: string,
  whenReady?: (kill: (signal: NodeJS.Signals) => void) => void,
): Promise<Ended> {
  const child = spawn(oldNode!, [script, ...args], {
    cwd: directory,
    env: { PATH: path, HOME: directory, npm_config_call: 'service-local' },
  });
  if (whenReady) {
    const output = [child.stdout, child.stderr].map((stream) => once(stream, 'data'));
    void Promise.any(output).then(() => whenReady((signal) => child.kill(signal)));
  }
  const [[code, signal], stdout, stderr] = await Promise.all([
    once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>,
    text(child.stdout),
    text(child.stderr),
  ]);
  return { code, signal, stdout, stderr };
}

// Skipped on machines without an old Node.
describe.skipIf(oldNode === undefined)('on a Node that is too old', () => {
  const AWKWARD = 'a  b "$HOME" \'*\' \\';
  const REFUSED = `error unknown_setting: unknown setting '${AWKWARD}'`;
  const ASKED = (option: string): RegExp =>
    new RegExp(
      `^exec --yes ${option}--loglevel=error --package=node-\\S+@\\d+\\.\\d+\\.\\d+ -- node -p process\\.execPath$`,
    );

  it('runs the same command line on a cached Node, without network access or messages', async () => {
    const path = await npmThat(
      'echo "$npm_config_call$@" >> "$0.args"',
      `echo ${process.execPath}`,
    );
    const { code, stdout, stderr } = await onOldNode(['config', 'explain', AWKWARD], path);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr.split('\n')[0]).toBe(REFUSED);
    const asked = (await readFile(join(path, 'npm.args'), 'utf8')).trimEnd().split('\n');
    expect(asked).toEqual([expect.stringMatching(ASKED('--offline '))]);
  });

  it('runs npm outside of any project, and the command in the current directory', async () => {
    const node = join(directory, 'tells-where');
    await program(node, 'pwd');
    const path = await npmThat('pwd > "$0.cwd"', `echo ${node}`);
    const { code, stdout } = await onOldNode(['config', 'list'], path);
    expect({ code, stdout }).toEqual({ code: 0, stdout: `${await realpath(directory)}\n` });
    expect(await readFile(join(path, 'npm.cwd'), 'utf8')).toBe('/\n');
  });

  /** A fake npm that must download Node first. */
  const downloading = (): Promise<string> =>
    npmThat(
      'echo "$@" >> "$0.args"',
      'case "$*" in *--offline*) echo "not cached" >&2; exit 1;; esac',
      `echo ${process.execPath}`,
    );

  it('prints a message if npm has to download Node', async () => {
    const path = await downloading();
    const { code, stdout, stderr } = await onOldNode(['config', 'explain', AWKWARD], path);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    const { engines } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as {
      engines: { node: string };
    };
    const oldest = engines.node.replace('>=', '');
    const [first, second] = stderr.split('\n');
    expect(first).toMatch(
      new RegExp(
        `^service-local needs Node ${oldest} or newer, not \\d+\\.\\d+\\.\\d+: downloading Node \\d+\\.\\d+\\.\\d+ with npm, once$`,
      ),
    );
    expect(second).toBe(REFUSED);
    const asked = (await readFile(join(path, 'npm.args'), 'utf8')).trimEnd().split('\n');
    expect(asked).toEqual([
      expect.stringMatching(ASKED('--offline ')),
      expect.stringMatching(ASKED('')),
    ]);
  });

  it('prints no message with --quiet', async () => {
    const ended = await onOldNode(['config', 'list', '--quiet', '--json'], await downloading());
    expect(ended).toMatchObject({ code: 0, stderr: '' });
  });

  it('forwards a signal, and returns the exit code', async () => {
    const node = join(directory, 'exits-9-on-sigterm');
    const code = `process.on("SIGTERM", () => process.exit(9)); setInterval(() => {}, 1000); console.log("ready")`;
    await program(node, `exec ${process.execPath} -e '${code}'`);
    const ended = await onOldNode(['config', 'list'], await npmThat(`echo ${node}`), (kill) =>
      kill('SIGTERM'),
    );
    expect(ended).toMatchObject({ code: 9, signal: null, stdout: 'ready\n' });
  });

  it('leaves no server behind when it is killed', async () => {
    const path = await npmThat(`echo ${process.execPath}`);
    // The server writes to the same pipes, so that they are open until it has ended.
    const ended = await onOldNode(['server', '--port', '0'], path, (kill) => kill('SIGKILL'));
    expect(ended).toMatchObject({ code: null, signal: 'SIGKILL' });
  });

  it('ends with the signal that ended its child', async () => {
    const node = join(directory, 'kills-itself');
    await program(node, 'kill -KILL $$');
    const ended = await onOldNode(['config', 'list'], await npmThat(`echo ${node}`));
    expect(ended).toMatchObject({ code: null, signal: 'SIGKILL' });
  });

  it.each([
    ['npm fails', () => npmThat('exit 1'), 'npm could not provide Node 26'],
    [
      'npm finds only the old one',
      () => npmThat(`echo ${oldNode}`),
      'npm could not provide Node 26',
    ],
    [
      'what npm provides does not start',
      () => npmThat('echo /none'),
      'Node 26.10.0 did not start: spawn /none',
    ],
    ['there is no npm', () => mkdtemp(join(directory, 'empty-')), 'npm did not start'],
  ])('says what to install when %s', async (_when, makePath, why) => {
    const path = await makePath();
    const human = await onOldNode(['config', 'list'], path);
    expect(human.code).toBe(1);
    expect(human.stderr).toContain(`error failure: ${why}`);
    expect(human.stderr).toMatch(/^→ Install Node 24\.15 or newer/m);
    const machine = await onOldNode(['config', 'list', '--json'], path);
    expect(machine.code).toBe(1);
    expect(JSON.parse(machine.stdout)).toMatchObject({ error: { code: 'failure' } });
  });

  it('refuses to open a license gate, and names the Node that it needs', () => {
    const api = pathToFileURL(join(directory, 'dist/src/gate/api.js'));
    const source = `
      import { openLicenseGate } from '${api.href}';
      await openLicenseGate({ enforced: true }).catch((error) => console.log(error.message));`;
    const printed = execFileSync(oldNode!, ['--input-type=module', '-e', source], {
      encoding: 'utf8',
      env: { HOME: directory },
    });
    expect(printed).toMatch(/^the license gate needs Node 24\.15 or newer, not \d+\.\d+\.\d+\n$/);
  });

  it('prints its version without a newer Node', async () => {
    const ended = await onOldNode(['--version'], await mkdtemp(join(directory, 'empty-')));
    expect(ended).toMatchObject({ code: 0, stderr: '' });
    expect(ended.stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });
});
