/** Reads turns and sessions as they are stored. */
import { ServiceError, type ErrorCode } from '../base/errors.ts';
import type { ChatSessionsTable, ChatTurnsTable, Db } from '../storage/tables.ts';
import { NO_USAGE, type Citation, type StoppedBy, type Usage } from './answering.ts';

/** A tool call, without its result. */
export interface ToolUse {
  readonly tool: string;
  /** JSON, cut to `LONGEST_ARGS` characters. */
  readonly args: string;
  readonly source: string | null;
  /** Why the call failed. */
  readonly error: string | null;
}

/** Outcome of a turn, except its text. */
export interface TurnRecord {
  readonly citations: readonly Citation[];
  readonly tool_calls: readonly ToolUse[];
  readonly usage: Usage;
  readonly stopped_by: StoppedBy | null;
  readonly error: TurnError | null;
}

export interface TurnError {
  readonly code: ErrorCode;
  readonly detail: string;
  readonly reason?: string;
  readonly remedy?: string;
  readonly retry_after_seconds?: number;
}

export interface Turn extends TurnRecord {
  readonly session_id: string;
  readonly turn_id: string;
  readonly number: number;
  readonly status: ChatTurnsTable['status'];
  readonly prompt: string;
  readonly answer: string;
  readonly provider: string;
  readonly model: string | null;
  readonly started_at: number;
  readonly ended_at: number | null;
}

export const CANCELED: TurnError = {
  code: 'chat_failed',
  detail: 'the turn was canceled',
  reason: 'canceled',
  remedy: 'Ask again in the same session. The provider may have charged for this attempt.',
};

export const INTERRUPTED: TurnError = {
  code: 'chat_failed',
  detail: 'the server stopped before the answer was complete',
  reason: 'interrupted',
  remedy: 'Ask again in the same session. The provider may have charged for this attempt.',
};

/** Record of a turn whose only known outcome is its error. */
export function recordOf(error: TurnError | null): TurnRecord {
  // Requests to a provider may have been sent without being counted.
  const usage = { ...NO_USAGE, estimated: error !== null };
  return { citations: [], tool_calls: [], usage, stopped_by: null, error };
}

export function turnOf(row: ChatTurnsTable): Turn {
  const { session_id, turn_id, number, status, prompt, answer, provider, model } = row;
  const record =
    row.record === null
      ? recordOf(status === 'interrupted' ? INTERRUPTED : null)
      : (JSON.parse(row.record) as TurnRecord);
  const { started_at, ended_at } = row;
  const place = { session_id, turn_id, number, status, prompt, answer };
  return { ...place, ...record, provider, model, started_at, ended_at };
}

export async function sessionOf(
  db: Db,
  bot_id: string,
  session_id: string,
): Promise<ChatSessionsTable> {
  const session = await db
    .selectFrom('chat_sessions')
    .selectAll()
    .where('session_id', '=', session_id)
    .where('bot_id', '=', bot_id)
    .executeTakeFirst();
  if (session !== undefined) return session;
  throw new ServiceError('not_found', `the bot has no session ${JSON.stringify(session_id)}`, {
    remedy: 'Ask without a session to begin a new one.',
  });
}

/** Reads the last `limit` turns, oldest first. */
export async function turnsOf(
  db: Db,
  session_id: string,
  limit: number,
): Promise<ChatTurnsTable[]> {
  const rows = await db
    .selectFrom('chat_turns')
    .selectAll()
    .where('session_id', '=', session_id)
    .orderBy('number', 'desc')
    .limit(limit)
    .execute();
  return rows.toReversed();
}

/** Every session has at least one turn. */
export async function lastTurn(db: Db, session_id: string): Promise<ChatTurnsTable> {
  return (await turnsOf(db, session_id, 1))[0]!;
}
