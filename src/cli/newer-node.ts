// Like bin/service-local.ts, this must run on Node 18.
import { spawn, spawnSync } from 'node:child_process';
import { constants } from 'node:os';

/** What npm is asked for when the Node at hand is too old. */
const NODE_FROM_NPM = 'node@26.10.0';

/**
 * Runs this same command line on a Node from npm, which keeps it in its cache, and ends as it ends.
 * @param oldest the oldest Node that would have done, such as `24.15`.
 */
export function runOnNewerNode(oldest: string): void {
  const found = `service-local needs Node ${oldest} or newer and this is ${process.versions.node}`;
  console.error(`${found}: running on ${NODE_FROM_NPM} from npm`);

  // Only the path comes from npm: run through it, the command would get its arguments by way of a
  // shell, and signals by way of two processes more.
  const npm = spawnSync(
    'npm',
    ['exec', '--yes', `--package=${NODE_FROM_NPM}`, '--', 'node', '-p', 'process.execPath'],
    { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const node = npm.status === 0 ? npm.stdout.trim() : '';
  if (node === '' || node === process.execPath) {
    const why = npm.error
      ? `npm could not be started (${npm.error.message})`
      : 'npm could not get it';
    console.error(`error failure: ${why}\n→ Install Node ${oldest} or newer: https://nodejs.org`);
    process.exitCode = 1;
    return;
  }

  const child = spawn(node, process.argv.slice(1), { stdio: 'inherit' });
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  const pass = (signal: NodeJS.Signals): void => void child.kill(signal);
  for (const signal of signals) process.on(signal, pass);
  child.on('exit', (code, signal) => {
    for (const name of signals) process.off(name, pass);
    process.exitCode = code ?? 128 + constants.signals[signal!];
    if (signal) process.kill(process.pid, signal);
  });
}
