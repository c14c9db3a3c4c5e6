// Like bin/service-local.ts, this must run on Node 18.
import { spawn, spawnSync } from 'node:child_process';
import { constants } from 'node:os';
import { parse } from 'node:path';

/** Version that npm provides if the running Node is too old. */
const NEWER_NODE = '26.10.0';

/** Environment variable of a process that `runOnNewerNode` started. */
const LAUNCHED = 'SERVICE_LOCAL_LAUNCHED';

/**
 * Runs the same command line on a newer Node, which npm downloads once and keeps in its cache, and
 * exits with the same code or signal.
 * @param oldest oldest supported Node, such as `24.15`.
 */
export function runOnNewerNode(oldest: string): void {
  // With Node in npm's cache, neither a download nor a message is necessary.
  let npm = askNpm(['--offline'], 'ignore');
  if (npm.status !== 0 && !npm.error) {
    if (!process.argv.includes('--quiet')) {
      const needed = `service-local needs Node ${oldest} or newer, not ${process.versions.node}`;
      console.error(`${needed}: downloading Node ${NEWER_NODE} with npm, once`);
    }
    npm = askNpm([], 'inherit');
  }
  const node = npm.status === 0 ? npm.stdout.trim() : process.execPath;
  // If the package contains no `node`, npm finds the old one.
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
  // Installed before the child starts, so that no signal in between leaves it running.
  for (const signal of signals) process.on(signal, pass);
  // The channel closes when this process ends, even by SIGKILL, which cannot be passed on.
  const child = spawn(node, process.argv.slice(1), {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, [LAUNCHED]: '1' },
  });
  child.on('error', (error) => fail(`Node ${NEWER_NODE} did not start: ${error.message}`, oldest));
  child.on('exit', (code, signal) => {
    for (const name of signals) process.off(name, pass);
    process.exitCode = code ?? 128 + constants.signals[signal!];
    if (signal) process.kill(process.pid, signal);
  });
}

/** Ends this process as SIGTERM does when the process that started it on a newer Node is gone. */
export function endWithLauncher(): void {
  // Other channels close without such a reason: that of the daemon closes once the daemon has started.
  if (process.env[LAUNCHED] === undefined) return;
  delete process.env[LAUNCHED];
  process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'));
  process.channel?.unref();
}

/**
 * Asks npm for the path of the newer Node. If npm ran the command itself, arguments would pass
 * through a shell, and signals through two more processes.
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
      // In a project with the package anywhere in its tree, npm would not install it and would run
      // the old Node.
      cwd: parse(process.execPath).root,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', stderr],
      env: environmentForNpm(),
      shell: isWindows, // Node cannot start a .cmd file without a shell.
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

/** Removes variables of `npx -c` and `npx -w`, which a second npm would take for its own options. */
function environmentForNpm(): NodeJS.ProcessEnv {
  const env = { ...process.env };
  for (const option of ['call', 'workspace', 'workspaces']) delete env[`npm_config_${option}`];
  return env;
}

/**
 * Name of the package that contains the program. The package `node` would download the program with
 * an install script, which npm may not be allowed to run.
 */
function nodePackage(): string {
  const { platform, arch } = process;
  const system = platform === 'win32' ? 'win' : platform;
  const prefix = platform === 'darwin' && arch === 'arm64' ? 'node-bin' : 'node';
  return `${prefix}-${system}-${arch}@${NEWER_NODE}`;
}
