/**
 * Runs agents by schedule, or at once for a person. The database holds the next time of each schedule,
 * and the server that advances it runs the turn, so several servers run each time at most once. Missed
 * times are skipped. Times are milliseconds since the Unix epoch.
 */
import { nextDue } from '../bots/agent-schedule.ts';
import { getBot, type Bot } from '../fleet/registry/bots.ts';
import { ServiceError } from '../base/errors.ts';
import type { Scope } from '../base/scopes.ts';
import type { AgentRunsTable, AgentSchedulesTable, Db } from '../storage/tables.ts';
import { agentsOf, type AgentSchedule } from './agents.ts';
import {
  actorOf,
  scheduleOfBot,
  scheduleRow,
  turnOff,
  updateSchedule,
  type Delegated,
} from './schedules.ts';
import { excerpt, MOST_CITATIONS, recordEvent } from './turn-events.ts';
import { beginTurn, getTurn, type BegunTurn, type TurnContext } from './turns.ts';

/** Reasons for which the server stops a schedule, in addition to the reasons of `checkCaller`. */
type StopReason = 'bot_archived' | 'role_gone' | 'no_schedule';

/** Turns after which an agent begins a new session. */
const MOST_TURNS = 100;

const MOST_AT_ONCE = 32;

/**
 * Begins a turn with the prompt of an agent's schedule now, for the caller.
 * @throws ServiceError as `startSchedule` and `beginTurn`
 */
export async function runNow(
  context: TurnContext,
  by: string,
  ref: string,
  role: string,
): Promise<BegunTurn> {
  return context.storage.write(async (tx) => {
    const bot = await getBot(tx, ref);
    const { prompt } = scheduleOfBot(bot, role);
    return beginRun(context, tx, { bot_id: bot.bot_id, role, by, prompt, cause: 'person' });
  });
}

/** Lists schedules that `claimRun` should check: due schedules, and schedules of a changed or archived bot. */
export async function dueSchedules(
  db: Db,
  now: number,
): Promise<Pick<AgentSchedulesTable, 'bot_id' | 'role'>[]> {
  return db
    .selectFrom('agent_schedules as agent')
    .innerJoin('bots', 'bots.bot_id', 'agent.bot_id')
    .select(['agent.bot_id', 'agent.role'])
    .where('agent.next_run_at', 'is not', null)
    .where((is) =>
      is.or([
        is('agent.next_run_at', '<=', now),
        is('bots.status', '=', 'archived'),
        is('agent.version', '<>', is.ref('bots.current_version')),
      ]),
    )
    .orderBy('agent.next_run_at')
    .limit(MOST_AT_ONCE)
    .execute();
}

export interface ClaimedRun {
  readonly begun: BegunTurn;
  readonly delegated: Delegated;
}

/**
 * Claims a due schedule and begins its turn, in one transaction. If the schedule can no longer run,
 * stops it and records why as an event of the bot.
 *
 * @param admits throws ServiceError if the administrator of the schedule has lost access.
 * @returns undefined if no turn began, for example because another server claimed it first.
 */
export async function claimRun(
  context: TurnContext,
  { bot_id, role }: Pick<AgentSchedulesTable, 'bot_id' | 'role'>,
  admits: (tx: Db, now: number, delegated: Delegated) => Promise<void>,
): Promise<ClaimedRun | undefined> {
  return context.storage.write(async (tx) => {
    const now = context.clock();
    const row = await scheduleRow(tx, bot_id, role);
    if (row === undefined || row.next_run_at === null) return undefined;
    const bot = await getBot(tx, bot_id);
    const planned = planOf(bot, role);
    if (typeof planned === 'string') return turnOff(tx, bot, role, now, 'server', planned);
    const { every, prompt } = planned;
    const due = every === row.every ? row.next_run_at : nextDue(every, now, now);
    const isDue = due <= now;
    const plan = {
      version: bot.current_version,
      every,
      next_run_at: isDue ? nextDue(every, due, now) : due,
    };
    await updateSchedule(tx, bot_id, role, plan);
    if (!isDue) return undefined;
    const { administrator_id, token_id } = row;
    const scopes = new Set(JSON.parse(row.scopes) as Scope[]);
    const delegated = { bot_id, role, administrator_id, token_id, scopes };
    const refusal = await refusalOf(() => admits(tx, now, delegated));
    if (refusal) {
      return turnOff(tx, bot, role, now, 'server', refusal.reason ?? refusal.code, refusal.message);
    }
    const by = actorOf(row);
    try {
      const begun = await beginRun(context, tx, { bot_id, role, by, prompt, cause: 'schedule' });
      return { begun, delegated };
    } catch (error) {
      if (!(error instanceof ServiceError) || error.retryable) throw error;
      const { code, reason = code, message: detail } = error;
      await recordEvent(tx, { ...bot, version: bot.current_version }, now, 'agent.skipped', {
        role,
        reason,
        detail,
      });
      return undefined;
    }
  });
}

async function refusalOf(check: () => Promise<void>): Promise<ServiceError | undefined> {
  try {
    await check();
    return undefined;
  } catch (error) {
    if (error instanceof ServiceError && !error.retryable) return error;
    throw error;
  }
}

/** Lists turns of agents that have no `agent.reported` event yet. */
export async function unreportedRuns(db: Db): Promise<string[]> {
  const rows = await db
    .selectFrom('agent_runs')
    .select('turn_id')
    .where('report_seq', 'is', null)
    .orderBy('turn_id')
    .execute();
  return rows.map(({ turn_id }) => turn_id);
}

/**
 * Records the answer of an agent as an event of its bot, once. Does nothing while the turn is running.
 * A turn whose server died is reported as interrupted.
 */
export async function reportRun(context: TurnContext, turn_id: string): Promise<void> {
  const turn = await getTurn(context, turn_id);
  const { session_id, status, answer, citations, usage, stopped_by, error } = turn;
  if (status === 'running') return;
  await context.storage.write(async (tx) => {
    const run = await tx
      .selectFrom('agent_runs')
      .selectAll()
      .where('turn_id', '=', turn_id)
      .where('report_seq', 'is', null)
      .executeTakeFirst();
    if (run === undefined) return;
    const { bot_id, role, cause } = run;
    const { current_version: version } = await getBot(tx, bot_id);
    const report_seq = await recordEvent(
      tx,
      { bot_id, version },
      context.clock(),
      'agent.reported',
      {
        role,
        cause,
        session_id,
        turn_id,
        status,
        answer: excerpt(answer),
        citations: citations.slice(0, MOST_CITATIONS),
        usage,
        stopped_by,
        error,
      },
    );
    await tx.updateTable('agent_runs').set({ report_seq }).where('turn_id', '=', turn_id).execute();
  });
}

/** Begins the turn in the agent's last session with `by`, or in a new one. */
async function beginRun(
  context: TurnContext,
  tx: Db,
  {
    by,
    prompt,
    ...run
  }: Omit<AgentRunsTable, 'turn_id' | 'report_seq'> & {
    readonly by: string;
    readonly prompt: string;
  },
): Promise<BegunTurn> {
  const { bot_id, role } = run;
  const before = await tx
    .selectFrom('agent_runs')
    .innerJoin('chat_turns as turn', 'turn.turn_id', 'agent_runs.turn_id')
    .innerJoin('chat_sessions as session', 'session.session_id', 'turn.session_id')
    .select(['session.session_id', 'turn.number'])
    .where('agent_runs.bot_id', '=', bot_id)
    .where('agent_runs.role', '=', role)
    .where('session.created_by', '=', by)
    .orderBy('agent_runs.turn_id', 'desc')
    .limit(1)
    .executeTakeFirst();
  const continues = before !== undefined && before.number < MOST_TURNS;
  const within = { ...context, storage: { ...context.storage, write: inWrite(tx) } };
  const begun = await beginTurn(within, by, bot_id, {
    prompt,
    agent_role: role,
    session_id: continues ? before.session_id : undefined,
  });
  const { turn_id } = begun;
  await tx
    .insertInto('agent_runs')
    .values({ ...run, turn_id, report_seq: null })
    .execute();
  return begun;
}

function inWrite(tx: Db): TurnContext['storage']['write'] {
  return (work) => work(tx);
}

function planOf({ status, document }: Bot, role: string): AgentSchedule | StopReason {
  if (status === 'archived') return 'bot_archived';
  const agent = agentsOf(JSON.parse(document)).find((one) => one.role === role);
  if (agent === undefined) return 'role_gone';
  return agent.schedule ?? 'no_schedule';
}
