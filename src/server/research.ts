import type { Context } from 'hono';
import { formatInstant, formatInstantOrNull } from '../api/http.ts';
import * as api from '../api/research.ts';
import { ServiceError } from '../base/errors.ts';
import { withNames, type WithNames } from '../identity/actor-names.ts';
import { checkCaller, type Caller } from '../identity/tokens.ts';
import { LONGEST_FILE, type Ask } from '../research/call-api.ts';
import type { Chat } from '../research/chat.ts';
import { getDataset, listDatasets } from '../research/datasets.ts';
import { proposeVersion, type Proposal } from '../research/proposals.ts';
import { getSession, listSessions, type Session } from '../research/sessions.ts';
import type { Turn } from '../research/turn-rows.ts';
import { beginTurn, type BegunTurn, type TurnContext } from '../research/turns.ts';
import type { TaskService } from '../fleet/tasks/tasks.ts';
import { actorOf, asCaller } from './authentication.ts';
import { refuseTooManyStreams, streamAdmittedEvents } from './event-stream.ts';
import { createOnce } from './idempotency.ts';
import { serializePage } from './serialize-page.ts';
import type { App, AppEnv, Services } from './services.ts';

/** Slightly less than the time limit of a request. */
const PLAIN_WAIT_MS = 25_000;

export function addResearch(app: App, services: Services): void {
  const { tasks, chat } = services;
  const { read } = chat.storage;

  app.openapi(api.listDatasets, async (c) => {
    const found = await listDatasets(tasks.catalogueDir);
    return c.json({ items: found.map(serializeDataset) }, 200);
  });
  app.openapi(api.getDataset, async (c) => {
    const found = await getDataset(tasks.catalogueDir, c.req.valid('param').name);
    return c.json(serializeDataset(found), 200);
  });

  app.openapi(api.proposeVersion, async (c) => {
    const { bot_ref } = c.req.valid('param');
    const propose = (service: TaskService): Promise<Proposal> =>
      proposeVersion(service, actorOf(c), bot_ref, c.req.valid('json'));
    const proposal = await createOnce(c, tasks, propose, ({ changes, ...rest }) => ({
      ...rest,
      changes: changes.map((change) => ({ ...change })),
    }));
    tasks.wake();
    return c.json(proposal, 202);
  });

  app.openapi(api.chatWithBot, async (c) => {
    const { bot_ref } = c.req.valid('param');
    const isStream = c.req.header('accept')?.includes('text/event-stream') === true;
    // Checked before the turn starts, because a turn may be charged.
    if (isStream) refuseTooManyStreams(c);
    const caller = c.var.caller!;
    const { administrator_id, scopes } = caller;
    const { session_id, turn_id } = await chat.admit(administrator_id, async () => {
      const { begun, ...place } = await begin(c, chat, bot_ref, c.req.valid('json'));
      const ask = askWhileAllowed(app, services, caller, c.var.request_id);
      if (begun) chat.run(begun, { administrator_id, ask, scopes });
      return place;
    });
    c.header('Location', `/bots/${encodeURIComponent(bot_ref)}/chat/sessions/${session_id}`);
    if (isStream) {
      return streamAdmittedEvents(c, services, `turn ${turn_id}`, () =>
        messagesOf(chat, session_id, turn_id),
      );
    }
    const turn = await chat.waitFor(turn_id, PLAIN_WAIT_MS);
    if (turn.error !== null) throw errorOf(turn);
    return c.json(serializeTurn(turn), turn.status === 'running' ? 202 : 200);
  });
  app.openapi(api.listChatSessions, async (c) => {
    const found = await listSessions(read, c.req.valid('param').bot_ref, c.req.valid('query'));
    const items = await withNames(read, found.items, 'created_by');
    return c.json(serializePage({ ...found, items }, serializeSession), 200);
  });
  app.openapi(api.getChatSession, async (c) => {
    const { bot_ref, session_id } = c.req.valid('param');
    const { limit } = c.req.valid('query');
    const { session, turns } = await getSession(chat, bot_ref, session_id, limit);
    const [named] = await withNames(read, [session], 'created_by');
    return c.json({ ...serializeSession(named!), items: turns.map(serializeTurn) }, 200);
  });
  app.openapi(api.cancelChatTurn, async (c) => {
    const { bot_ref, session_id } = c.req.valid('param');
    const turn = await chat.cancel(actorOf(c), bot_ref, session_id);
    return c.json(serializeTurn(turn), 200);
  });
}

/** Begins a turn, or returns the turn of an earlier request with the same key. */
async function begin(
  c: Context<AppEnv>,
  chat: Chat,
  bot_ref: string,
  request: Parameters<typeof beginTurn>[3],
): Promise<{
  readonly session_id: string;
  readonly turn_id: string;
  readonly begun: BegunTurn | undefined;
}> {
  let begun: BegunTurn | undefined;
  const create = async (context: TurnContext): Promise<BegunTurn> => {
    begun = await beginTurn(context, actorOf(c), bot_ref, request);
    return begun;
  };
  const place = await createOnce(c, chat, create, ({ session_id, turn_id }) => ({
    session_id,
    turn_id,
  }));
  return { ...place, begun };
}

/** Streams the parts of a turn as server-sent events. */
async function* messagesOf(
  chat: Chat,
  session_id: string,
  turn_id: string,
): AsyncGenerator<string | undefined, void> {
  yield message('begun', { session_id, turn_id });
  for await (const part of chat.follow(turn_id)) {
    yield part && message(part.event, part.event === 'turn' ? serializeTurn(part.data) : part.data);
  }
}

function message(event: keyof api.ChatParts, data: object): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}

function errorOf({ error, session_id }: Turn): ServiceError {
  const { code, detail, reason, remedy, retry_after_seconds: seconds } = error!;
  return new ServiceError(code, `${detail} (session ${session_id})`, {
    ...(reason !== undefined && { reason }),
    ...(remedy !== undefined && { remedy }),
    ...(seconds !== undefined && { retryAfterSeconds: seconds }),
  });
}

export function serializeTurn({ started_at, ended_at, ...turn }: Turn): api.ChatTurn {
  const { citations, tool_calls, provider } = turn;
  return {
    ...turn,
    citations: citations.map((one) => ({ ...one })),
    tool_calls: tool_calls.map((one) => ({ ...one })),
    provider: provider as api.ChatTurn['provider'],
    is_language_model: provider !== 'analyst',
    started_at: formatInstant(started_at),
    ended_at: formatInstantOrNull(ended_at),
  };
}

/** Length of prompts in lists, in characters. */
const LISTED_PROMPT = 200;

function serializeSession(session: WithNames<Session, 'created_by'>): api.ChatSession {
  const { session_id, agent_role, created_by, created_by_name, turns } = session;
  return {
    session_id,
    agent_role,
    created_at: formatInstant(session.created_at),
    created_by,
    created_by_name,
    turns,
    first_prompt: session.first_prompt.slice(0, LISTED_PROMPT),
  };
}

/** Like `askAs`, but checks before each call that the caller is still authorized. */
export function askWhileAllowed(
  app: App,
  { identity }: Pick<Services, 'identity'>,
  caller: Caller,
  requestId: string,
): Ask {
  const ask = askAs(app, caller, requestId);
  return async (...request) => {
    await checkCaller(identity.storage.read, identity.clock(), caller);
    return ask(...request);
  };
}

/** Calls the API of this server as the caller, with the caller's scopes. */
export function askAs(app: Pick<App, 'request'>, caller: Caller, requestId: string): Ask {
  return async (method, path, body, { signal } = {}) => {
    const answer = await app.request(
      path,
      {
        method,
        headers: {
          'x-request-id': requestId,
          ...(body !== undefined && { 'content-type': 'application/json' }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        ...(signal && { signal }),
      },
      asCaller(caller),
    );
    const text = await textOf(answer);
    const isJson = /json/.test(answer.headers.get('content-type') ?? '');
    return { status: answer.status, json: isJson ? (JSON.parse(text) as unknown) : text };
  };
}

/** Reads a response; files are truncated to `LONGEST_FILE`. */
async function textOf(answer: Response): Promise<string> {
  if (/json/.test(answer.headers.get('content-type') ?? '')) return answer.text();
  let text = '';
  for await (const part of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += part;
    if (text.length >= LONGEST_FILE) return text.slice(0, LONGEST_FILE);
  }
  return text;
}

/** Omits the path of the source file, which exists only on the server. */
function serializeDataset(manifest: Awaited<ReturnType<typeof getDataset>>): api.Dataset {
  const { symbol: name, timeframe, rows: bars, from, to, columns, sha256, imported_at } = manifest;
  const has_volume = columns.includes('volume');
  return { name, timeframe, bars, from, to, has_volume, sha256, imported_at };
}
