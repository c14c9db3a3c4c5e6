import { sql } from 'kysely';
import type { SessionState } from '../../events/session-state.ts';
import type { Db } from '../../storage/tables.ts';
import type { BotDeployment } from './tasks.ts';

export interface Activity {
  readonly running: number;
  /** Scope of the halt in force; a halt of all bots comes before the bot's own. */
  readonly halted: 'bot' | 'all' | null;
  readonly last: BotDeployment | null;
  /** Trading sessions that have not ended, newest first. */
  readonly sessions: readonly ActiveSession[];
}

/** A trading session as last recorded. */
export interface ActiveSession extends SessionState {
  readonly task_id: string;
  /** Milliseconds since the Unix epoch. */
  readonly recorded_at: number;
}

/** Reads the activity of several bots by `bot_id`, in four queries. */
export async function readActivity(
  db: Db,
  bot_ids: readonly string[],
): Promise<ReadonlyMap<string, Activity>> {
  if (bot_ids.length === 0) return new Map();
  const [counts, halts, last, active] = await Promise.all([
    db
      .selectFrom('bot_deployments')
      .select(['bot_id', ({ fn }) => fn.countAll().as('count')])
      .where('ended_at', 'is', null)
      .where('bot_id', 'in', bot_ids)
      .groupBy('bot_id')
      .execute(),
    db
      .selectFrom('halts')
      .select('bot_id')
      .where('lifted_at', 'is', null)
      .where((is) => is.or([is('bot_id', 'is', null), is('bot_id', 'in', bot_ids)]))
      .execute(),
    db
      .selectFrom('bot_deployments')
      .selectAll()
      .where('deployment_id', 'in', (of) =>
        of.selectFrom('bots').select(newestEnded).where('bots.bot_id', 'in', bot_ids),
      )
      .execute(),
    db
      .selectFrom('trading_sessions as session')
      .innerJoin('bot_deployments as deployment', 'deployment.task_id', 'session.task_id')
      .select(['session.bot_id', 'session.task_id', 'session.state', 'session.recorded_at'])
      .where('session.bot_id', 'in', bot_ids)
      .where('deployment.bot_id', 'in', bot_ids)
      .where('deployment.ended_at', 'is', null)
      .orderBy('session.task_id', 'desc')
      .execute(),
  ]);
  const running = new Map(counts.map(({ bot_id, count }) => [bot_id, Number(count)]));
  const halted = new Set(halts.map(({ bot_id }) => bot_id));
  const sessions = Map.groupBy(active, ({ bot_id }) => bot_id);
  const ended = new Map(last.map((one) => [one.bot_id, one]));
  return new Map(
    bot_ids.map((bot_id) => [
      bot_id,
      {
        running: running.get(bot_id) ?? 0,
        halted: halted.has(null) ? 'all' : halted.has(bot_id) ? 'bot' : null,
        last: ended.get(bot_id) ?? null,
        sessions: (sessions.get(bot_id) ?? []).map(({ task_id, state, recorded_at }) => ({
          ...(JSON.parse(state) as SessionState),
          task_id,
          recorded_at,
        })),
      },
    ]),
  );
}

/** A subquery that uses the index, because a bot may have many deployments. */
const newestEnded = sql<string>`(
  select deployment_id from bot_deployments
  where bot_deployments.bot_id = bots.bot_id and ended_at is not null
  order by deployment_id desc limit 1
)`.as('deployment_id');
