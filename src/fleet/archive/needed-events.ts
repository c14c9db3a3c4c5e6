/** Events that other parts of the system need in the database. */
import { sql } from 'kysely';
import type { KeptEvents } from '../../events/archive/move-events.ts';
import type { Db } from '../../storage/tables.ts';
import { LATCHED, RE_ENABLED } from '../tasks/latches.ts';
import { ARCHIVED_INPUTS_LEVEL } from '../tasks/task-levels.ts';

/**
 * Finds the events that stay in the database, although they are archived: the start of each open task,
 * where reads of its events begin; latches, which people lift later; the events with which halts are
 * verified; and the last report of each agent.
 */
export async function findKeptEvents(db: Db, bot_id: string): Promise<KeptEvents> {
  const begun = await db
    .selectFrom('tasks')
    .innerJoin('bot_events as event', 'event.run_id', 'tasks.task_id')
    .select('event.seq')
    .where('tasks.bot_id', '=', bot_id)
    .where('tasks.ended_at', 'is', null)
    // Must match the condition of the partial index.
    .where(sql<boolean>`event.kind in ('run.queued', 'run.ended')`)
    .execute();
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
    seqs: [...begun, ...halted, ...reports].map(({ seq }) => Number(seq)),
  };
}

/**
 * Leaves the open paper sessions of a bot that began at or before an event to workers that can read
 * archived inputs.
 */
export async function requireArchiveReaders(tx: Db, bot_id: string, seq: number): Promise<void> {
  await tx
    .updateTable('tasks')
    .set({ needs_level: ARCHIVED_INPUTS_LEVEL })
    .where('bot_id', '=', bot_id)
    .where('kind', '=', 'paper')
    .where('ended_at', 'is', null)
    .where('needs_level', '<', ARCHIVED_INPUTS_LEVEL)
    .where('task_id', 'in', (of) =>
      of.selectFrom('trading_sessions').select('task_id').where('first_seq', '<=', seq),
    )
    .execute();
}
