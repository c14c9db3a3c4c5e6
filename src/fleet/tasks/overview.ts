import { sql } from 'kysely';
import { countAlerts } from '../../events/list-alerts.ts';
import type { Db } from '../../storage/tables.ts';

/** Counts over all bots. */
export interface Overview {
  readonly bots: number;
  /** Number of bots with a deployment that is pending or running. */
  readonly running_bots: number;
  readonly halts: { readonly bot: number; readonly all: number };
  /** Tasks that failed within a day. */
  readonly failed_tasks: number;
  /** Alerts within a day. */
  readonly alerts: Readonly<Record<'critical' | 'warning', number>>;
}

const DAY = 86_400_000;

/** @param now milliseconds since the Unix epoch. */
export async function readOverview(db: Db, now: number): Promise<Overview> {
  const since = now - DAY;
  const [{ rows }, alerts] = await Promise.all([
    sql<Record<'bots' | 'running' | 'halted' | 'all_halted' | 'failed', number>>`
      select
        (select count(*) from bots) as bots,
        (select count(distinct bot_id) from bot_deployments where ended_at is null) as running,
        (select count(*) from halts where lifted_at is null and scope = 'bot') as halted,
        (select count(*) from halts where lifted_at is null and scope = 'all') as all_halted,
        (select count(*) from tasks where status = 'failed' and ended_at > ${since}) as failed
    `.execute(db),
    countAlerts(db, since),
  ]);
  const { bots, running, halted, all_halted, failed } = rows[0]!;
  return {
    bots,
    running_bots: running,
    halts: { bot: halted, all: all_halted },
    failed_tasks: failed,
    alerts,
  };
}
