/**
 * Schedules of agents, which a person starts and stops. The next time of each is in the database: the
 * server that advances it runs the turn, so several servers run each time at most once. Missed times
 * are skipped. Every answer is recorded as an event of the bot. Times are milliseconds since the Unix
 * epoch.
 */
import { nextDue } from '../bots/agents.ts';
import { getBot, type Bot } from '../fleet/registry/bots.ts';
import { ServiceError } from '../base/errors.ts';
import { appendEvents } from '../events/append.ts';
import type { Scope } from '../base/scopes.ts';
import type { AgentRunsTable, AgentSchedulesTable, Db } from '../storage/tables.ts';
import { agentsOf, scheduleOf, type AgentSchedule } from './agents.ts';
import {
  beginTurn,
  getTurn,
  notAResearchBot,
  excerpt,
  type BegunTurn,
  type TurnContext,
} from './turns.ts';

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

/** Reasons for which the server stops a schedule, in addition to the reasons of `checkCaller`. */
type StopReason = 'bot_archived' | 'role_gone' | 'no_schedule';

/** All scopes that a tool can require. */
const SCOPES_OF_TOOLS: readonly Scope[] = ['read', 'write'];
/** Turns after which an agent begins a new session. */
const MOST_TURNS = 100;
const MOST_AT_ONCE = 32;
const MOST_CITATIONS = 50;

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
    await recordEvent(tx, bot, now, 'agent.schedule_started', {
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
    else if (row.next_run_at !== null) await stop(tx, bot, role, clock(), by, 'asked');
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
    await stop(tx, await getBot(tx, bot_id), role, now, by, reason);
  }
  return rows.length;
}

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
    if (typeof planned === 'string') return stop(tx, bot, role, now, 'server', planned);
    const { every, prompt } = planned;
    const due = every === row.every ? row.next_run_at : nextDue(every, now, now);
    const isDue = due <= now;
    const plan = {
      version: bot.current_version,
      every,
      next_run_at: isDue ? nextDue(every, due, now) : due,
    };
    await update(tx, bot_id, role, plan);
    if (!isDue) return undefined;
    const { administrator_id, token_id } = row;
    const scopes = new Set(JSON.parse(row.scopes) as Scope[]);
    const delegated = { bot_id, role, administrator_id, token_id, scopes };
    const refusal = await refusalOf(() => admits(tx, now, delegated));
    if (refusal) {
      return stop(tx, bot, role, now, 'server', refusal.reason ?? refusal.code, refusal.message);
    }
    const by = actorOf(row);
    try {
      const begun = await beginRun(context, tx, { bot_id, role, by, prompt, cause: 'schedule' });
      return { begun, delegated };
    } catch (error) {
      if (!(error instanceof ServiceError) || error.retryable) throw error;
      const { code, reason = code, message: detail } = error;
      await recordEvent(tx, bot, now, 'agent.skipped', { role, reason, detail });
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
    const report_seq = await recordEvent(
      tx,
      await getBot(tx, bot_id),
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

function scheduleOfBot({ kind, slug, status, document }: Bot, role: string): AgentSchedule {
  if (kind !== 'research') throw notAResearchBot(slug);
  if (status !== 'archived') return scheduleOf(JSON.parse(document), role);
  throw new ServiceError('conflict', `bot ${slug} is archived`, {
    reason: 'bot_archived',
    remedy: 'Reactivate it with `service-local bots apply`.',
  });
}

async function scheduleRow(
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

async function update(
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

async function stop(
  tx: Db,
  bot: Bot,
  role: string,
  now: number,
  by: string,
  reason: string,
  detail?: string,
): Promise<undefined> {
  await update(tx, bot.bot_id, role, {
    next_run_at: null,
    stopped_at: now,
    stopped_by: by,
    stopped_reason: reason,
  });
  const payload = { role, by, reason, ...(detail !== undefined && { detail }) };
  await recordEvent(tx, bot, now, 'agent.schedule_stopped', payload);
}

/** @returns the sequence number of the event. */
async function recordEvent(
  tx: Db,
  { bot_id, current_version: version }: Bot,
  now: number,
  kind: string,
  payload: Readonly<Record<string, unknown>>,
): Promise<number> {
  const { seq } = await appendEvents(tx, bot_id, now, [
    { kind, version, occurred_at: now, payload },
  ]);
  return seq;
}

function actorOf({ administrator_id }: Pick<AgentSchedulesTable, 'administrator_id'>): string {
  return `administrator:${administrator_id}`;
}
