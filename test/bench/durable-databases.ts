import { startPostgres } from '../storage/cluster.ts';
import { newDatabase, type TestDatabase } from '../storage/databases.ts';

/** Passes a function that creates empty databases, which survive a power failure. */
export async function withDatabases(
  kind: 'sqlite' | 'postgres',
  work: (newOne: () => Promise<TestDatabase>) => Promise<void>,
): Promise<void> {
  if (kind === 'sqlite') return work(() => newDatabase('sqlite'));
  const cluster = await startPostgres(['-c', 'fsync=on', '-c', 'synchronous_commit=on']);
  try {
    await work(() => newDatabase('postgres', cluster.url));
  } finally {
    await cluster.stop();
  }
}
