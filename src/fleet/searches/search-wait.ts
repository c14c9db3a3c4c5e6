import { ServiceError } from '../../base/errors.ts';
import { formatCountOf } from '../../base/format.ts';
import { packageVersion } from '../../base/package-version.ts';
import type { Storage } from '../../storage/storage.ts';
import type { Db } from '../../storage/tables.ts';

/** A worker writes its heartbeat every two seconds, by its own clock. */
const ALIVE_WITHIN_MS = 60_000;

/**
 * Returns why none of the waiting shards of a search runs; undefined if one runs or none waits.
 * @throws ServiceError `conflict` if only workers of another version are left
 */
export async function reasonToWait(
  { kind, read }: Pick<Storage, 'kind' | 'read'>,
  now: number,
  search_id: string,
): Promise<string | undefined> {
  const counts = await read
    .selectFrom('search_shards')
    .select(['status', ({ fn }) => fn.countAll<number>().as('count')])
    .where('search_id', '=', search_id)
    .where('status', 'in', ['queued', 'running'])
    .groupBy('status')
    .execute();
  const queued = counts.find(({ status }) => status === 'queued')?.count ?? 0;
  if (queued === 0 || counts.some(({ status }) => status === 'running')) return undefined;
  const { package: wanted } = await read
    .selectFrom('searches')
    .select('package')
    .where('search_id', '=', search_id)
    .executeTakeFirstOrThrow();
  const own = packageVersion();
  // Only the server itself can use a SQLite database.
  const versions = kind === 'sqlite' ? [own] : await versionsOfWorkers(read, now);
  const fitting = versions.filter((version) => version === wanted).length;
  const waiting = `waiting to start ${formatCountOf(queued, 'shard')}`;
  if (fitting > 0) {
    return `${waiting}, since the workers (${fitting}) run other tasks`;
  }
  if (wanted !== own) {
    const text = `no worker has version ${wanted} any longer, and the server has version ${own}`;
    throw new ServiceError('conflict', text, {
      reason: 'version_differs',
      remedy: `Install version ${own} of service-local, and run the command again.`,
    });
  }
  return `${waiting}, since no worker of version ${own} runs; start one with \`service-local worker\``;
}

async function versionsOfWorkers(db: Db, now: number): Promise<(string | null)[]> {
  const rows = await db
    .selectFrom('workers')
    .select('version')
    .where('heartbeat_at', '>', now - ALIVE_WITHIN_MS)
    .execute();
  return rows.map(({ version }) => version);
}
