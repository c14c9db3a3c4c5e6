import { spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { BASIC_ENV, BIN } from '../cli/service-local.ts';
import type { TestDatabase } from '../storage/databases.ts';

/** PKCS#8 PEM of the key with which servers sign that are given no other. */
export const SIGNING_KEY_PEM = generateKeyPairSync('ed25519', {
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
}).privateKey;

/** `service-local server` as a process of its own. */
export interface RunningServer {
  readonly url: string;
  readonly pid: number;
  /** What a verb needs to find its database and it: `SERVICE_LOCAL_HOME` and so on. */
  readonly env: Readonly<Record<string, string>>;
  /** All that it has logged until now. */
  readonly log: () => string;
  /** Sends SIGTERM. @returns the exit code. */
  readonly stop: () => Promise<number | null>;
  /** Sends SIGKILL. */
  readonly kill: () => Promise<void>;
}

/**
 * Starts it on a free port and on a database that outlives it; resolves when it listens.
 * @throws Error with what it logged, when it ends instead.
 */
export async function startServer(
  database: TestDatabase,
  args: readonly string[] = [],
  variables: Readonly<Record<string, string>> = {},
): Promise<RunningServer> {
  const { location } = database;
  const env = {
    HOME: tmpdir(),
    SERVICE_LOCAL_HOME:
      'file' in location ? dirname(location.file) : join(tmpdir(), 'service-local-no-home'),
    ...('url' in location && { DATABASE_URL: location.url }),
  };
  const child = spawn(process.execPath, [BIN, 'server', '--port', '0', ...args], {
    cwd: tmpdir(),
    env: {
      ...BASIC_ENV,
      SERVICE_AUTH_LICENSE_LEASE_PRIVATE_KEY_PEM: SIGNING_KEY_PEM,
      ...env,
      ...variables,
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const ended = once(child, 'close') as Promise<[code: number | null]>;
  const lines: string[] = [];
  const log = (): string => lines.join('\n');
  const url = await new Promise<string>((resolve, reject) => {
    createInterface(child.stderr).on('line', (line) => {
      lines.push(line);
      const [, listening] = /listening on (http:[^\s"]+)/.exec(line) ?? [];
      if (listening !== undefined) resolve(listening);
    });
    void ended.then(() => reject(new Error(`the server ended: ${log()}`)));
  });
  return {
    url,
    pid: child.pid!,
    env: { ...env, SERVICE_LOCAL_SERVER_URL: url },
    log,
    async stop() {
      child.kill('SIGTERM');
      return (await ended)[0];
    },
    async kill() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}
