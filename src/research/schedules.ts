/** Schedules of agents, which a person starts and stops. Times are milliseconds since the Unix epoch. */
import { nextDue } from '../bots/agent-schedule.ts';
import { getBot, type Bot } from '../fleet/registry/bots.ts';
import { ServiceError } from '../base/errors.ts';
import type { Scope } from '../base/scopes.ts';
import type { AgentRunsTable, AgentSchedulesTable, Db } from '../storage/tables.ts';
import { agentsOf, scheduleOf, type AgentSchedule } from './agents.ts';
import { recordEvent } from './turn-events.ts';
import type { TurnContext } from './turns.ts';

/** The administrator for whom a schedule runs, and the scopes that it may use. */
export interface Delegation {
  readonly administrator_id: string;
  /** Token with which the schedule was started; null for a login session of the console. */
  readonly token_id: string | null;
  readonly scopes: ReadonlySet<Scope>;
}

export interface Delegated extends Delegation {
  readonly bot_id: string;
  readonly role: string;
}

/** An agent with its schedule and last report. */
export interface AgentState {
  readonly role: string;
  /** Names of its tools; null for all tools. */
  readonly tools: readonly string[] | null;
  /** In the spec of the current version. */
  readonly schedule: AgentSchedule | null;
  readonly is_on: boolean;
  readonly next_run_at: number | null;
  readonly started_by: string | null;
  readonly started_at: number | null;
  readonly stopped_by: string | null;
  readonly stopped_at: number | null;
  readonly stopped_reason: string | null;
  readonly last_report: AgentReport | null;
}

export interface AgentReport {
  /** Sequence number of the event `agent.reported`. */
  readonly seq: number;
  readonly recorded_at: number;
  readonly cause: AgentRunsTable['cause'];
  readonly session_id: string;
  readonly turn_id: string;
  readonly status: 'done' | 'failed' | 'interrupted';
  /** Answer, cut if it is long. */
  readonly text: string;
}

/** All scopes that a tool can require. */
const SCOPES_OF_TOOLS: readonly Scope[] = ['read', 'write'];

/**
 * Lists the agents of a bot in the order of its spec, then removed agents that once had a schedule.
 * @throws ServiceError `not_found`
 */
export async function listAgents(db: Db, ref: string): Promise<AgentState[]> {
  const { bot_id, document } = await getBot(db, ref);
  const agents = agentsOf(JSON.parse(document));
  const rows = await db
    .selectFrom('agent_schedules')
    .selectAll()
    .where('bot_id', '=', bot_id)
    .orderBy('role')
    .execute();
  const gone = rows.filter(({ role }) => agents.every((agent) => agent.role !== role));
  const all = [...agents, ...gone.map(({ role }) => ({ role, tools: [], schedule: undefined }))];
  const states: AgentState[] = [];
  for (const { role, tools = null, schedule = null } of all) {
    const row = rows.find((one) => one.role === role);
    states.push({
      role,
      tools,
      schedule,
      is_on: row !== undefined && row.next_run_at !== null,
      next_run_at: row?.next_run_at ?? null,
      started_by: row === undefined ? null : actorOf(row),
      started_at: row?.started_at ?? null,
      stopped_by: row?.stopped_by ?? null,
      stopped_at: row?.stopped_at ?? null,
      stopped_reason: row?.stopped_reason ?? null,
      last_report: await lastReport(db, bot_id, role),
    });
  }
  return states;
}

async function lastReport(db: Db, bot_id: string, role: string): Promise<AgentReport | null> {
  const row = await db
    .selectFrom('agent_runs as run')
    .innerJoin('bot_events as event', (join) =>
      join.onRef('event.bot_id', '=', 'run.bot_id').onRef('event.seq', '=', 'run.report_seq'),
    )
    .select(['event.seq', 'event.recorded_at', 'event.payload'])
    .where('run.bot_id', '=', bot_id)
    .where('run.role', '=', role)
    .orderBy('run.turn_id', 'desc')
    .limit(1)
    .executeTakeFirst();
  if (row === undefined) return null;
  const { seq, recorded_at, payload } = row;
  const { cause, session_id, turn_id, status, answer } = JSON.parse(payload) as Omit<
    AgentReport,
    'text'
  > & { readonly answer: { readonly text: string } };
  return { seq, recorded_at, cause, session_id, turn_id, status, text: answer.text };
}

/**
 * Starts the schedule of an agent for the caller. If it is already on, it runs for the caller from now.
 *
 * @throws ServiceError `not_found` for the bot or the agent; `conflict` with the reason
 * `not_a_research_bot`, `bot_archived` or `no_schedule`.
 */
export async function startSchedule(
  { storage, clock }: Pick<TurnContext, 'storage' | 'clock'>,
  { administrator_id, token_id, scopes }: Delegation,
  ref: string,
  role: string,
): Promise<void> {
  await storage.write(async (tx) => {
    const now = clock();
    const bot = await getBot(tx, ref);
    const { every } = scheduleOfBot(bot, role);
    const before = await scheduleRow(tx, bot.bot_id, role);
    const isKept = before !== undefined && before.next_run_at !== null && before.every === every;
    const next_run_at = isKept ? before.next_run_at : nextDue(every, now, now);
    const given = SCOPES_OF_TOOLS.filter((scope) => scopes.has(scope));
    const row: AgentSchedulesTable = {
      bot_id: bot.bot_id,
      role,
      version: bot.current_version,
      every,
      next_run_at,
      administrator_id,
      token_id,
      scopes: JSON.stringify(given),
      started_at: now,
      stopped_at: null,
      stopped_by: null,
      stopped_reason: null,
    };
    await tx
      .insertInto('agent_schedules')
      .values(row)
      .onConflict((on) => on.columns(['bot_id', 'role']).doUpdateSet(row))
      .execute();
    await recordEvent(tx, { ...bot, version: bot.current_version }, now, 'agent.schedule_started', {
      role,
      every,
      scopes: given,
      next_run_at: new Date(next_run_at!).toISOString(),
      by: actorOf(row),
    });
  });
}

/**
 * Stops the schedule of an agent. Does nothing if it is off.
 * @throws ServiceError `not_found` for the bot, and for a role that the bot never had.
 */
export async function stopSchedule(
  { storage, clock }: Pick<TurnContext, 'storage' | 'clock'>,
  by: string,
  ref: string,
  role: string,
): Promise<void> {
  await storage.write(async (tx) => {
    const bot = await getBot(tx, ref);
    const row = await scheduleRow(tx, bot.bot_id, role);
    if (row === undefined) scheduleOf(JSON.parse(bot.document), role);
    else if (row.next_run_at !== null) await turnOff(tx, bot, role, clock(), by, 'asked');
  });
}

/** Stops all schedules, in the caller's transaction. @returns the number of stopped schedules. */
export async function stopAllSchedules(
  tx: Db,
  now: number,
  by: string,
  reason: string,
): Promise<number> {
  const rows = await tx
    .selectFrom('agent_schedules')
    .select(['bot_id', 'role'])
    .where('next_run_at', 'is not', null)
    .execute();
  for (const { bot_id, role } of rows) {
    await turnOff(tx, await getBot(tx, bot_id), role, now, by, reason);
  }
  return rows.length;
}

export function scheduleOfBot({ kind, slug, status, document }: Bot, role: string): AgentSchedule {
  if (kind !== 'research') throw notAResearchBot(slug);
  if (status !== 'archived') return scheduleOf(JSON.parse(document), role);
  throw new ServiceError('conflict', `bot ${slug} is archived`, {
    reason: 'bot_archived',
    remedy: 'Reactivate it with `service-local bots apply`.',
  });
}

export async function scheduleRow(
  tx: Db,
  bot_id: string,
  role: string,
): Promise<AgentSchedulesTable | undefined> {
  return tx
    .selectFrom('agent_schedules')
    .selectAll()
    .where('bot_id', '=', bot_id)
    .where('role', '=', role)
    .executeTakeFirst();
}

export async function updateSchedule(
  tx: Db,
  bot_id: string,
  role: string,
  changes: Partial<AgentSchedulesTable>,
): Promise<void> {
  await tx
    .updateTable('agent_schedules')
    .set(changes)
    .where('bot_id', '=', bot_id)
    .where('role', '=', role)
    .execute();
}

export async function turnOff(
  tx: Db,
  bot: Bot,
  role: string,
  now: number,
  by: string,
  reason: string,
  detail?: string,
): Promise<undefined> {
  await updateSchedule(tx, bot.bot_id, role, {
    next_run_at: null,
    stopped_at: now,
    stopped_by: by,
    stopped_reason: reason,
  });
  const payload = { role, by, reason, ...(detail !== undefined && { detail }) };
  await recordEvent(
    tx,
    { ...bot, version: bot.current_version },
    now,
    'agent.schedule_stopped',
    payload,
  );
}

export function actorOf({
  administrator_id,
}: Pick<AgentSchedulesTable, 'administrator_id'>): string {
  return `administrator:${administrator_id}`;
}

function notAResearchBot(slug: string): ServiceError {
  return new ServiceError(
    'conflict',
    `${slug} is a trading bot; only agents of research bots have schedules`,
    {
      reason: 'not_a_research_bot',
      remedy: 'Create a bot with `kind: research` in its spec, with the agent and its schedule.',
    },
  );
}
