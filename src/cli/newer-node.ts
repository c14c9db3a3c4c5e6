// Like bin/service-local.ts, this must run on Node 18.
import { spawn, spawnSync } from 'node:child_process';
import { constants } from 'node:os';
import { parse } from 'node:path';

/** The Node that npm is asked for when the one at hand is too old. */
const NEWER_NODE = '26.10.0';

/**
 * Runs this same command line on a Node from npm, which downloads it once and keeps it in its cache,
 * and ends as it ends.
 * @param oldest the oldest Node that would have done, such as `24.15`.
 */
export function runOnNewerNode(oldest: string): void {
  // Most often it is in the cache: then no network is needed, and nothing is worth telling.
  let npm = askNpm(['--offline'], 'ignore');
  if (npm.status !== 0 && !npm.error) {
    if (!process.argv.includes('--quiet')) {
      const needed = `service-local needs Node ${oldest} or newer, not ${process.versions.node}`;
      console.error(`${needed}: getting Node ${NEWER_NODE} through npm, once`);
    }
    npm = askNpm([], 'inherit');
  }
  const node = npm.status === 0 ? npm.stdout.trim() : process.execPath;
  // When the package brings no program of that name, npm finds the old one.
  if (node === process.execPath) {
    fail(
      npm.error
        ? `npm did not start: ${npm.error.message}`
        : `npm could not provide Node ${NEWER_NODE}`,
      oldest,
    );
    return;
  }

  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  const pass = (signal: NodeJS.Signals): void => void child.kill(signal);
  // Before there is a child: a signal that came between the two would leave it behind.
  for (const signal of signals) process.on(signal, pass);
  const child = spawn(node, process.argv.slice(1), { stdio: 'inherit' });
  child.on('error', (error) => fail(`Node ${NEWER_NODE} did not start: ${error.message}`, oldest));
  child.on('exit', (code, signal) => {
    for (const name of signals) process.off(name, pass);
    process.exitCode = code ?? 128 + constants.signals[signal!];
    if (signal) process.kill(process.pid, signal);
  });
}

/**
 * npm only says where it put the Node: run through it, the command would get its arguments by way of
 * a shell, and its signals by way of two more processes.
 */
function askNpm(options: readonly string[], stderr: 'ignore' | 'inherit') {
  const isWindows = process.platform === 'win32';
  return spawnSync(
    isWindows ? 'npm.cmd' : 'npm',
    [
      'exec',
      '--yes',
      ...options,
      '--loglevel=error',
      `--package=${nodePackage()}`,
      '--',
      'node',
      '-p',
      'process.execPath',
    ],
    {
      // In a project that has the package anywhere below it, npm takes that to be at hand and then
      // runs the old Node all the same.
      cwd: parse(process.execPath).root,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', stderr],
      env: environmentForNpm(),
      shell: isWindows, // Node starts no .cmd without one.
    },
  );
}

function fail(message: string, oldest: string): void {
  const remedy = `Install Node ${oldest} or newer from https://nodejs.org`;
  if (process.argv.includes('--json')) {
    console.log(
      JSON.stringify({ error: { code: 'failure', message, remedy, problems: [] } }, null, 2),
    );
  } else {
    console.error(`error failure: ${message}\n→ ${remedy}`);
  }
  process.exitCode = 1;
}

/** Under `npx -c` or `npx -w` a second npm would take the first one's options for its own. */
function environmentForNpm(): NodeJS.ProcessEnv {
  const env = { ...process.env };
  for (const option of ['call', 'workspace', 'workspaces']) delete env[`npm_config_${option}`];
  return env;
}

/**
 * The package that holds the program itself. The package `node` would fetch the same by an install
 * script, which many an npm does not run: by its default, or because the user forbids scripts.
 */
function nodePackage(): string {
  const { platform, arch } = process;
  const system = platform === 'win32' ? 'win' : platform;
  const prefix = platform === 'darwin' && arch === 'arm64' ? 'node-bin' : 'node';
  return `${prefix}-${system}-${arch}@${NEWER_NODE}`;
}
