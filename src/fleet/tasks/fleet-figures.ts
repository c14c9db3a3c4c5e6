import { sql } from 'kysely';
import type { Db, TasksTable } from '../../storage/tables.ts';

/** What runs and waits on all workers of a database. */
export interface FleetFigures {
  /** Number of workers by version; null for versions that do not announce theirs. */
  readonly workers: readonly WorkersOfVersion[];
  /** Tasks that have not ended, by kind and state. */
  readonly tasks: readonly OpenTasks[];
  /** Halts in force; a halt of all bots is one. */
  readonly halts: { readonly bot: number; readonly all: number };
  /** Time of the oldest last record of a running paper session, ms; null without such sessions. */
  readonly recorded_at: number | null;
}

interface WorkersOfVersion {
  readonly version: string | null;
  readonly count: number;
}

interface OpenTasks {
  /** `shard` for shards of searches. */
  readonly kind: TasksTable['kind'] | 'shard';
  readonly status: 'queued' | 'running';
  readonly count: number;
  /** Creation of the oldest one, ms since the Unix epoch. */
  readonly created_at: number;
  /** Oldest heartbeat, ms since the Unix epoch; null for queued tasks. */
  readonly heartbeat_at: number | null;
}

/** Reads a row for every task that has not ended. */
export async function fleetFigures(db: Db): Promise<FleetFigures> {
  const [workers, tasks, halts, sessions] = await Promise.all([
    sql<WorkersOfVersion>`
      select version, count(*) as count from workers group by version`.execute(db),
    sql<OpenTasks>`
      select kind, status, count(*) as count, min(created_at) as created_at,
        min(heartbeat_at) as heartbeat_at
      from tasks where status in ('queued', 'running') group by kind, status
      union all
      select 'shard', status, count(*), min(created_at), min(heartbeat_at)
      from search_shards where status in ('queued', 'running') group by status`.execute(db),
    sql<{ bot: number; all_bots: number }>`
      select count(*) filter (where scope = 'bot') as bot,
        count(*) filter (where scope = 'all') as all_bots
      from halts where lifted_at is null`.execute(db),
    sql<{ recorded_at: number | null }>`
      select min(recorded_at) as recorded_at from trading_sessions
      join tasks on tasks.task_id = trading_sessions.task_id
      where tasks.status = 'running' and tasks.kind = 'paper'`.execute(db),
  ]);
  const { bot, all_bots: all } = halts.rows[0]!;
  return {
    workers: workers.rows,
    tasks: tasks.rows,
    halts: { bot, all },
    recorded_at: sessions.rows[0]!.recorded_at,
  };
}
