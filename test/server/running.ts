import { spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { createLog } from '../../src/base/log.ts';
import { startServer as startHere } from '../../src/server/server.ts';
import { resolveSettings } from '../../src/base/resolve-settings.ts';
import { BASIC_ENV, BIN } from '../cli/service-local.ts';
import { isAtLength } from '../length.ts';
import type { TestDatabase } from '../storage/databases.ts';

/** Default signing key of servers, PKCS#8 PEM. */
export const SIGNING_KEY_PEM = generateKeyPairSync('ed25519', {
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
}).privateKey;

/** A running program. */
interface Going {
  /** Variables with which a verb finds its database and URL, such as `SERVICE_LOCAL_HOME`. */
  readonly env: Readonly<Record<string, string>>;
  /** Log so far. */
  readonly log: () => string;
}

interface Running extends Going {
  readonly pid: number;
  /** Sends SIGTERM. @returns the exit code. */
  readonly stop: () => Promise<number | null>;
  /** Sends SIGKILL. */
  readonly kill: () => Promise<void>;
}

/** `service-local server` as a separate process. */
export interface RunningServer extends Running {
  readonly url: string;
}

/** The same server in this process. */
export interface ServerHere extends Going {
  readonly url: string;
  readonly stop: () => Promise<void>;
}

/**
 * Starts the server of `service-local server` in this process, which takes a third of the time of a
 * separate process. For tests in which no process must end.
 */
export async function serveHere(
  database: TestDatabase,
  variables: Readonly<Record<string, string>> = {},
): Promise<ServerHere> {
  const env = {
    ...whereItIs(database),
    SERVICE_AUTH_LICENSE_LEASE_PRIVATE_KEY_PEM: SIGNING_KEY_PEM,
    SERVICE_LOCAL_SERVER_PORT: '0',
    ...variables,
  };
  const lines: string[] = [];
  const { values } = resolveSettings(tmpdir(), env);
  const log = createLog((line) => lines.push(line), false);
  const { url, stop } = await startHere(values, env, log);
  return {
    url,
    env: { ...whereItIs(database), SERVICE_LOCAL_SERVER_URL: url },
    log: () => lines.join('\n'),
    stop,
  };
}

function whereItIs({ location }: TestDatabase): Record<string, string> {
  return {
    HOME: tmpdir(),
    SERVICE_LOCAL_HOME:
      'file' in location ? dirname(location.file) : join(tmpdir(), 'service-local-no-home'),
    ...('url' in location && { DATABASE_URL: location.url }),
  };
}

/**
 * Starts it on a free port with a database that outlives it; resolves when it listens.
 * @throws Error with the log if the process ends instead.
 */
export async function startServer(
  database: TestDatabase,
  args: readonly string[] = [],
  variables: Readonly<Record<string, string>> = {},
): Promise<RunningServer> {
  const key = { SERVICE_AUTH_LICENSE_LEASE_PRIVATE_KEY_PEM: SIGNING_KEY_PEM };
  const { ready, ...running } = await start(
    database,
    ['server', '--port', '0', ...args],
    { ...key, ...variables },
    /listening on (http:[^\s"]+)/,
  );
  return { ...running, url: ready, env: { ...running.env, SERVICE_LOCAL_SERVER_URL: ready } };
}

/** Starts a killed server again, on the same port and SQLite database. */
export function startAgain({
  url,
  env,
}: Pick<RunningServer, 'url' | 'env'>): Promise<RunningServer> {
  const unused = (): Promise<void> =>
    Promise.reject(new Error('the database belongs to the first server'));
  const location = { file: join(env['SERVICE_LOCAL_HOME']!, 'server.sqlite') };
  const database = { location, execute: unused, remove: unused };
  return startServer(database, ['--port', new URL(url).port]);
}

/** Starts a process in `npm run test:long`, for tests that kill it, and else serves in this process. */
export function serve(
  database: TestDatabase,
  catalogueDir: string,
): Promise<RunningServer | ServerHere> {
  return isAtLength
    ? startServer(database, ['--catalogue-dir', catalogueDir])
    : serveHere(database, { SERVICE_LOCAL_CATALOGUE_DIR: catalogueDir });
}

export type RunningWorker = Running;

/** `service-local worker`, started in the same way. */
export async function startWorker(
  database: TestDatabase,
  args: readonly string[] = [],
  variables: Readonly<Record<string, string>> = {},
): Promise<RunningWorker> {
  return start(database, ['worker', ...args], variables, /running tasks of (.*)/);
}

/** @param isReady tests a log line for readiness. */
async function start(
  database: TestDatabase,
  args: readonly string[],
  variables: Readonly<Record<string, string>>,
  isReady: RegExp,
): Promise<Running & { readonly ready: string }> {
  const env = whereItIs(database);
  const child = spawn(process.execPath, [BIN, ...args], {
    cwd: tmpdir(),
    env: { ...BASIC_ENV, ...env, ...variables },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const ended = once(child, 'close') as Promise<[code: number | null]>;
  const lines: string[] = [];
  const log = (): string => lines.join('\n');
  const ready = await new Promise<string>((resolve, reject) => {
    createInterface(child.stderr).on('line', (line) => {
      lines.push(line);
      const [, told] = isReady.exec(line) ?? [];
      if (told !== undefined) resolve(told);
    });
    void ended.then(() => reject(new Error(`the ${args[0]} ended: ${log()}`)));
  });
  return {
    ready,
    pid: child.pid!,
    env,
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
