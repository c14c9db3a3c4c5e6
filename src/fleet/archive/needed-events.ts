/** Events that other parts of the system need in the database. */
import type { KeptEvents } from '../../events/archive/move-events.ts';
import type { Db } from '../../storage/tables.ts';
import { LATCHED, RE_ENABLED } from '../tasks/latches.ts';

/**
 * Finds the first event that an open task of a bot may read: `run.queued` of the first of them. A trading
 * session resumes from the events that it has recorded since.
 *
 * @returns Infinity if the bot has no open task.
 */
export async function findFirstNeeded(db: Db, bot_id: string): Promise<number> {
  const open = await db
    .selectFrom('tasks')
    .leftJoin('bot_events as queued', (join) =>
      join
        .onRef('queued.run_id', '=', 'tasks.task_id')
        .onRef('queued.bot_id', '=', 'tasks.bot_id')
        .on('queued.kind', '=', 'run.queued'),
    )
    .leftJoin('trading_sessions as session', 'session.task_id', 'tasks.task_id')
    .select(['queued.seq', 'session.first_seq'])
    .where('tasks.bot_id', '=', bot_id)
    .where('tasks.ended_at', 'is', null)
    .execute();
  return Math.min(...open.map(({ seq, first_seq }) => Math.min(seq ?? 1, first_seq ?? Infinity)));
}

/**
 * Finds the events that stay in the database, although they are archived: latches, which people lift
 * later; the events with which halts are verified; and the last report of each agent.
 */
export async function findKeptEvents(db: Db, bot_id: string): Promise<KeptEvents> {
  const halted = await db
    .selectFrom('halted_deployments as halted')
    .innerJoin('bot_deployments as deployment', 'deployment.deployment_id', 'halted.deployment_id')
    .innerJoin('bot_events as event', (join) =>
      join
        .onRef('event.bot_id', '=', 'deployment.bot_id')
        .onRef('event.seq', '>=', 'halted.first_seq')
        .onRef('event.seq', '<=', 'halted.last_seq'),
    )
    .select('event.seq')
    .where('deployment.bot_id', '=', bot_id)
    .execute();
  const reports = await db
    .selectFrom('agent_runs')
    .select(({ fn }) => fn.max('report_seq').as('seq'))
    .where('bot_id', '=', bot_id)
    .where('report_seq', 'is not', null)
    .groupBy('role')
    .execute();
  return {
    kinds: [LATCHED, RE_ENABLED],
    seqs: [...halted, ...reports].map(({ seq }) => Number(seq)),
  };
}
