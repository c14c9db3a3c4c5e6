/**
 * Stores conversations with research bots: sessions, and the turns in them. Every change to a turn, and
 * every tool call, is recorded as an event of the bot in the same transaction. Times are milliseconds
 * since the Unix epoch.
 */
import { v7 as uuidv7 } from 'uuid';
import { getBot } from '../fleet/registry/bots.ts';
import { ServiceError } from '../base/errors.ts';
import type { StorageService } from '../storage/storage.ts';
import type { ChatSessionsTable, ChatTurnsTable, Db } from '../storage/tables.ts';
import { hasEnded } from '../fleet/tasks/worker-id.ts';
import { agentOf, type Agent } from './agents.ts';
import type { Answerer, Budget, WantedBudget } from './answering.ts';
import { excerpt, MOST_CITATIONS, recordEvent, sha256 } from './turn-events.ts';
import {
  CANCELED,
  INTERRUPTED,
  lastTurn,
  recordOf,
  sessionOf,
  turnOf,
  turnsOf,
  type ToolUse,
  type Turn,
  type TurnRecord,
} from './turn-rows.ts';

export interface TurnContext extends StorageService {
  readonly answerer: Pick<Answerer, 'provider' | 'model'>;
  /** Upper bounds of the server, which callers can only lower. */
  readonly budget: Budget;
  /** Identifies this process as the one that answers its turns; see `newWorkerId`. */
  readonly worker_id: string;
}

export interface TurnRequest {
  readonly prompt: string;
  /** Session to continue; undefined for a new one. */
  readonly session_id?: string | undefined;
  /** Agent of the spec. If a session continues, it must be the agent of that session or undefined. */
  readonly agent_role?: string | undefined;
  /** Can only lower the bounds of the server and the agent. */
  readonly budget?: WantedBudget | undefined;
}

/** A turn that has begun, with everything needed to answer it. */
export interface BegunTurn {
  readonly session_id: string;
  readonly turn_id: string;
  readonly bot: TurnBot & { readonly kind: 'trading' | 'research' };
  readonly prompt: string;
  readonly agent: Agent | undefined;
  readonly budget: Budget;
  readonly history: readonly { readonly prompt: string; readonly answer: string }[];
}

interface TurnBot {
  readonly bot_id: string;
  readonly slug: string;
  readonly version: number;
}

const MOST_TURNS = 500;

/** Latest turns that are sent to the model again. */
const MOST_HISTORY_TURNS = 20;

/** Characters of these turns. */
const LONGEST_HISTORY = 40_000;

/** A turn that has not ended this long after its time budget is treated as interrupted. */
const GRACE_MS = 30_000;

/**
 * Begins a turn in a new or an existing session.
 *
 * @param by actor, as in the audit log.
 * @throws ServiceError `not_found` for the bot, the session or the agent; `conflict` with the reason
 * `session_of_another`, `other_agent`, `turn_running` or `session_full`.
 */
export async function beginTurn(
  context: TurnContext,
  by: string,
  ref: string,
  { prompt, session_id: asked, agent_role, budget: wanted = {} }: TurnRequest,
): Promise<BegunTurn> {
  const { storage, clock, answerer, worker_id } = context;
  return storage.write(async (tx) => {
    const now = clock();
    const { bot_id, slug, kind, current_version: version, document } = await getBot(tx, ref);
    const bot = { bot_id, slug, version, kind };
    const before = asked === undefined ? undefined : await sessionOf(tx, bot_id, asked);
    const role = before?.agent_role ?? agent_role;
    if (before) checkSession(before, by, agent_role);
    const agent = role === undefined ? undefined : agentOf(JSON.parse(document), role);
    const budget = lowestBudget(context.budget, agent?.budget ?? {}, wanted);
    const earlier = before ? await turnsOf(tx, before.session_id, MOST_HISTORY_TURNS) : [];
    const last = earlier.at(-1);
    if (last?.status === 'running') {
      if (!isAbandoned(last, now)) throw stillRunning(last);
      await interrupt(tx, bot, last, now);
    }
    const number = (last?.number ?? 0) + 1;
    if (number > MOST_TURNS) throw sessionFull();
    const session_id = before?.session_id ?? uuidv7({ msecs: now });
    const turn_id = uuidv7({ msecs: now });
    if (before === undefined) {
      const session = { session_id, bot_id, agent_role: role ?? null };
      await tx
        .insertInto('chat_sessions')
        .values({ ...session, created_at: now, created_by: by })
        .execute();
    }
    const { provider, model } = answerer;
    await tx
      .insertInto('chat_turns')
      .values({
        session_id,
        turn_id,
        number,
        status: 'running',
        prompt,
        answer: '',
        record: null,
        provider,
        model,
        worker_id,
        started_at: now,
        deadline: now + budget.seconds * 1000 + GRACE_MS,
        ended_at: null,
      })
      .execute();
    await recordEvent(tx, bot, now, 'chat.turn_started', {
      session_id,
      turn_id,
      by,
      agent_role: role ?? null,
      provider,
      model,
      budget,
      prompt: excerpt(prompt),
    });
    return { session_id, turn_id, bot, prompt, agent, budget, history: historyOf(earlier) };
  });
}

/** Records a tool call as an event of the bot, with the hash of its result. */
export async function recordToolCall(
  { storage, clock }: TurnContext,
  { bot, session_id, turn_id }: BegunTurn,
  { tool, args, source, error }: ToolUse,
  result: string,
): Promise<void> {
  await storage.write(async (tx) => {
    await recordEvent(tx, bot, clock(), 'chat.tool_called', {
      session_id,
      turn_id,
      tool,
      args,
      source,
      error,
      result: { sha256: sha256(result), characters: result.length },
    });
  });
}

/** Selects the turns that have ended. */
export async function endedOf(db: Db, turn_ids: readonly string[]): Promise<string[]> {
  const rows = await db
    .selectFrom('chat_turns')
    .select('turn_id')
    .where('turn_id', 'in', turn_ids)
    .where('status', '<>', 'running')
    .execute();
  return rows.map(({ turn_id }) => turn_id);
}

/**
 * Ends a turn, unless it has already ended. If it was canceled meanwhile, this only stores the partial
 * answer and the usage.
 * @returns whether the turn was still running.
 */
export async function endTurn(
  { storage, clock }: Pick<TurnContext, 'storage' | 'clock'>,
  {
    bot,
    session_id,
    turn_id,
  }: Pick<BegunTurn, 'session_id' | 'turn_id'> & { readonly bot: TurnBot },
  status: Exclude<Turn['status'], 'running'>,
  answer: string,
  record: TurnRecord,
): Promise<boolean> {
  return storage.write(async (tx) => {
    const now = clock();
    const [updated] = await tx
      .updateTable('chat_turns')
      .set({ status, answer, record: JSON.stringify(record), ended_at: now })
      .where('turn_id', '=', turn_id)
      .where('status', '=', 'running')
      .execute();
    if (updated?.numUpdatedRows !== 1n) {
      await storePartialAnswer(tx, turn_id, answer, record);
      return false;
    }
    const { usage, stopped_by, error, citations, tool_calls } = record;
    await recordEvent(tx, bot, now, 'chat.turn_ended', {
      session_id,
      turn_id,
      status,
      answer: excerpt(answer),
      citations: citations.slice(0, MOST_CITATIONS),
      tool_calls: tool_calls.length,
      usage,
      stopped_by,
      error,
    });
    return true;
  });
}

async function storePartialAnswer(
  tx: Db,
  turn_id: string,
  answer: string,
  record: TurnRecord,
): Promise<void> {
  const row = await tx
    .selectFrom('chat_turns')
    .selectAll()
    .where('turn_id', '=', turn_id)
    .executeTakeFirst();
  if (row === undefined || row.record === null) return;
  const { error } = JSON.parse(row.record) as TurnRecord;
  if (error?.reason !== CANCELED.reason || row.answer !== '') return;
  const rest = JSON.stringify({ ...record, stopped_by: null, error });
  await tx
    .updateTable('chat_turns')
    .set({ answer, record: rest })
    .where('turn_id', '=', turn_id)
    .execute();
}

/**
 * Cancels the last turn of a session. Does nothing if it has ended.
 *
 * @param stopHere stops the turn if this process answers it, and resolves once its partial answer is
 * stored. A turn of another process is only marked as canceled.
 * @throws ServiceError `not_found`; `conflict` for a session of another administrator.
 */
export async function cancelTurn(
  context: TurnContext,
  by: string,
  ref: string,
  session_id: string,
  stopHere: (turn_id: string) => Promise<void>,
): Promise<Turn> {
  const { read } = context.storage;
  const { bot_id, slug, current_version: version } = await getBot(read, ref);
  const session = await sessionOf(read, bot_id, session_id);
  if (session.created_by !== by) throw sessionOfAnother();
  const { turn_id, answer } = await lastTurn(read, session_id);
  await stopHere(turn_id);
  const turn = { bot: { bot_id, slug, version }, session_id, turn_id };
  await endTurn(context, turn, 'failed', answer, recordOf(CANCELED));
  return getTurn(context, turn_id);
}

/**
 * Reads a turn. If its server has died, marks it as interrupted first.
 * @throws ServiceError `not_found`
 */
export async function getTurn(context: TurnContext, turn_id: string): Promise<Turn> {
  const find = () =>
    context.storage.read
      .selectFrom('chat_turns')
      .selectAll()
      .where('turn_id', '=', turn_id)
      .executeTakeFirst();
  const row = await find();
  if (row === undefined) throw new ServiceError('not_found', `there is no turn ${turn_id}`);
  if (!isAbandoned(row, context.clock())) return turnOf(row);
  await interruptAbandoned(context, row.session_id);
  return turnOf((await find())!);
}

export function isAbandoned(
  { status, worker_id, deadline }: Pick<ChatTurnsTable, 'status' | 'worker_id' | 'deadline'>,
  now: number,
): boolean {
  return status === 'running' && (now > deadline || hasEnded(worker_id));
}

export async function interruptAbandoned(
  { storage, clock }: TurnContext,
  session_id: string,
): Promise<void> {
  await storage.write(async (tx) => {
    const [last] = await turnsOf(tx, session_id, 1);
    const now = clock();
    if (last === undefined || !isAbandoned(last, now)) return;
    const { bot_id } = await tx
      .selectFrom('chat_sessions')
      .select('bot_id')
      .where('session_id', '=', session_id)
      .executeTakeFirstOrThrow();
    const { slug, current_version: version } = await getBot(tx, bot_id);
    await interrupt(tx, { bot_id, slug, version }, last, now);
  });
}

async function interrupt(
  tx: Db,
  bot: TurnBot,
  { session_id, turn_id }: ChatTurnsTable,
  now: number,
): Promise<void> {
  const status = 'interrupted';
  await tx
    .updateTable('chat_turns')
    .set({ status, ended_at: now })
    .where('turn_id', '=', turn_id)
    .execute();
  await recordEvent(tx, bot, now, 'chat.turn_ended', {
    session_id,
    turn_id,
    status,
    error: INTERRUPTED,
  });
}

/** Selects answered turns, newest first, until `LONGEST_HISTORY` is reached. */
function historyOf(rows: readonly ChatTurnsTable[]): BegunTurn['history'] {
  let left = LONGEST_HISTORY;
  const kept: { readonly prompt: string; readonly answer: string }[] = [];
  for (const { status, prompt, answer } of rows.toReversed()) {
    if (status !== 'done' || answer === '') continue;
    left -= prompt.length + answer.length;
    if (left < 0) break;
    kept.push({ prompt, answer });
  }
  return kept.toReversed();
}

function lowestBudget(most: Budget, ...wanted: readonly WantedBudget[]): Budget {
  const of = (name: keyof Budget): number =>
    Math.min(most[name], ...wanted.flatMap((one) => one[name] ?? []));
  return { turns: of('turns'), seconds: of('seconds'), tokens: of('tokens') };
}

function checkSession(session: ChatSessionsTable, by: string, role: string | undefined): void {
  if (session.created_by !== by) throw sessionOfAnother();
  if (role === undefined || role === session.agent_role) return;
  const whom = session.agent_role === null ? 'the bot itself' : `the agent ${session.agent_role}`;
  throw new ServiceError('conflict', `the session belongs to ${whom}`, {
    reason: 'other_agent',
    remedy: 'Ask without a session to begin a new one with the other agent.',
  });
}

function sessionOfAnother(): ServiceError {
  return new ServiceError('conflict', 'the session belongs to another administrator', {
    reason: 'session_of_another',
    remedy: 'Ask without a session to begin one of your own.',
  });
}

function stillRunning({ session_id }: ChatTurnsTable): ServiceError {
  return new ServiceError(
    'conflict',
    `the last question of session ${session_id} is still being answered`,
    {
      reason: 'turn_running',
      remedy: 'Wait for the answer, or cancel the question.',
    },
  );
}

function sessionFull(): ServiceError {
  return new ServiceError('conflict', `the session has reached its limit of ${MOST_TURNS} turns`, {
    reason: 'session_full',
    remedy: 'Ask without a session to begin a new one.',
  });
}
