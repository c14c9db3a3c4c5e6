import { getBotId } from '../fleet/registry/bots.ts';
import { readPage, type Page, type PageRequest } from '../storage/paging.ts';
import type { ChatSessionsTable, Db } from '../storage/tables.ts';
import { lastTurn, sessionOf, turnOf, turnsOf, type Turn } from './turn-rows.ts';
import { interruptAbandoned, isAbandoned, type TurnContext } from './turns.ts';

export type Session = Readonly<ChatSessionsTable> & {
  readonly turns: number;
  readonly first_prompt: string;
};

/** Lists the sessions of a bot, newest first. @throws ServiceError `not_found` */
export async function listSessions(
  db: Db,
  ref: string,
  request: PageRequest,
): Promise<Page<Session>> {
  const bot_id = await getBotId(db, ref);
  return readPage(
    ['chat-sessions', bot_id],
    request,
    ({ session_id }) => session_id,
    async (after, limit) => {
      const query = selectSessions(db)
        .where('chat_sessions.bot_id', '=', bot_id)
        .orderBy('chat_sessions.session_id', 'desc')
        .limit(limit);
      return (
        after === undefined ? query : query.where('chat_sessions.session_id', '<', after)
      ).execute();
    },
  );
}

/**
 * Reads a session with its last `limit` turns, oldest first.
 * @throws ServiceError `not_found` for the bot or the session.
 */
export async function getSession(
  context: TurnContext,
  ref: string,
  session_id: string,
  limit: number,
): Promise<{ readonly session: Session; readonly turns: readonly Turn[] }> {
  const { read } = context.storage;
  const bot_id = await getBotId(read, ref);
  await sessionOf(read, bot_id, session_id);
  const last = await lastTurn(read, session_id);
  if (isAbandoned(last, context.clock())) await interruptAbandoned(context, session_id);
  const session = await selectSessions(read)
    .where('chat_sessions.session_id', '=', session_id)
    .executeTakeFirstOrThrow();
  return { session, turns: (await turnsOf(read, session_id, limit)).map(turnOf) };
}

function selectSessions(db: Db) {
  return db
    .selectFrom('chat_sessions')
    .innerJoin('chat_turns as first', (join) =>
      join.onRef('first.session_id', '=', 'chat_sessions.session_id').on('first.number', '=', 1),
    )
    .selectAll('chat_sessions')
    .select('first.prompt as first_prompt')
    .select((of) =>
      of
        .selectFrom('chat_turns')
        .select(({ fn }) => fn.max<number>('number').as('turns'))
        .where('chat_turns.session_id', '=', of.ref('chat_sessions.session_id'))
        .$asScalar()
        .$notNull()
        .as('turns'),
    );
}
