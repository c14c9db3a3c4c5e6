/** Sizes of tables, as sampled over the days. */
import { Worker } from 'node:worker_threads';
import { sql } from 'kysely';
import { DAY } from '../base/durations.ts';
import { THREAD_ENV } from '../base/thread-env.ts';
import type { Storage } from './storage.ts';
import type { Db } from './tables.ts';

export interface TableSize {
  readonly name: string;
  /** With its indexes. */
  readonly bytes: number;
}

/** Smaller tables are not sampled. */
const SMALLEST_BYTES = 2 ** 20;
/** Growth is the average over at most this time. */
const GROWTH_OVER_MS = 30 * DAY;
const SAMPLES_MS = 400 * DAY;

type Measured = Pick<Storage, 'kind' | 'read' | 'write'>;

/** Measures the tables, and stores the sizes of the larger ones as those of the current day. */
export async function sampleSizes(storage: Measured, now: number): Promise<void> {
  const sizes = await measureTables(storage);
  const samples = sizes
    .filter(({ bytes }) => bytes >= SMALLEST_BYTES)
    .map((size) => ({ ...size, day: Math.floor(now / DAY), measured_at: now }));
  if (samples.length === 0) return;
  await storage.write(async (tx) => {
    await tx
      .insertInto('size_samples')
      .values(samples)
      .onConflict((conflict) =>
        conflict.columns(['name', 'day']).doUpdateSet((of) => ({
          bytes: of.ref('excluded.bytes'),
          measured_at: of.ref('excluded.measured_at'),
        })),
      )
      .execute();
  });
}

async function measureTables({ kind, read }: Omit<Measured, 'write'>): Promise<TableSize[]> {
  if (kind === 'postgres') return tableSizes(read);
  const { rows } = await sql<{
    readonly file: string;
  }>`select file from pragma_database_list where name = 'main'`.execute(read);
  const url = new URL(`./table-sizes-worker${import.meta.url.slice(-3)}`, import.meta.url);
  const thread = new Worker(url, { workerData: rows[0]!.file, env: THREAD_ENV });
  const { promise, resolve, reject } = Promise.withResolvers<TableSize[]>();
  thread.on('message', resolve);
  thread.on('error', reject);
  thread.on('exit', (code) => {
    reject(new Error(`the thread that measures the database ended with code ${code}`));
  });
  return promise;
}

/** Sizes of all tables of PostgreSQL. */
export async function tableSizes(db: Db): Promise<TableSize[]> {
  const { rows } = await sql<TableSize>`
    select relname as name, pg_total_relation_size(oid) as bytes from pg_class
    where relkind = 'r' and relnamespace = current_schema()::regnamespace`.execute(db);
  return rows;
}

export interface SampledSize extends TableSize {
  readonly measured_at: number;
  /** Average growth of the last 30 days; null without a sample that is at least a day older. */
  readonly bytes_per_day: number | null;
}

/** Reads the newest sizes of the larger tables and their growth, largest first. */
export async function readSizes(db: Db): Promise<readonly SampledSize[]> {
  const samples = await db
    .selectFrom('size_samples')
    .selectAll()
    .where('measured_at', '>=', (of) =>
      of
        .selectFrom('size_samples')
        .select(sql<number>`max(measured_at) - ${sql.lit(GROWTH_OVER_MS)}`.as('since')),
    )
    .orderBy('measured_at')
    .execute();
  const newest = samples.at(-1)?.measured_at;
  return [...Map.groupBy(samples, ({ name }) => name)]
    .flatMap(([name, own]) => {
      const [first, last] = [own[0]!, own.at(-1)!];
      const ms = last.measured_at - first.measured_at;
      const bytes_per_day = ms < DAY ? null : ((last.bytes - first.bytes) / ms) * DAY;
      // A table that became small is no longer sampled.
      if (last.measured_at !== newest) return [];
      return [{ name, bytes: last.bytes, measured_at: last.measured_at, bytes_per_day }];
    })
    .sort((a, b) => b.bytes - a.bytes);
}

export async function purgeSizeSamples(tx: Db, now: number): Promise<void> {
  await tx
    .deleteFrom('size_samples')
    .where('measured_at', '<', now - SAMPLES_MS)
    .execute();
}

/** Numbers of events of all bots. */
export interface EventCounts {
  readonly database: number;
  readonly archived: number;
}

export async function countEvents(db: Db): Promise<EventCounts> {
  const { rows } = await sql<{ readonly all: number; readonly archived: number }>`
    select cast((select coalesce(sum(event_seq), 0) from bots) as bigint) as "all",
      cast((select coalesce(sum(seq), 0) from bot_event_heads) as bigint) as archived`.execute(db);
  const { all, archived } = rows[0]!;
  return { database: all - archived, archived };
}
