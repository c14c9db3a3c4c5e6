import { z } from '@hono/zod-openapi';
import {
  actorName,
  administrator,
  answer,
  defineRoute,
  id,
  json,
  page,
  pageQuery,
  Problem,
  time,
} from './http.ts';
import { changes, patch, TaskReference } from './tasks.ts';
import { sha256 } from './bots.ts';

const tags = ['Research'];
const reading = { tags, security: administrator('read') };
const writing = { tags, security: administrator('write') };

const botPath = z.strictObject({ bot_ref: id('sma-crossover') });

// Market data.

const Dataset = z
  .strictObject({
    name: z.string().openapi({ description: 'Specs call it `catalog://NAME`.', example: 'SPX' }),
    timeframe: z.string().openapi({ example: '1d' }),
    bars: z.int(),
    from: z.string().openapi({ description: 'The first bar: a day or a time, in UTC.' }),
    to: z.string().openapi({ description: 'The last bar.' }),
    has_volume: z.boolean(),
    sha256: sha256.openapi({ description: 'Of the columns of the bars.' }),
    imported_at: time,
  })
  .openapi('Dataset');

export type Dataset = z.infer<typeof Dataset>;

export const listDatasets = defineRoute({
  ...reading,
  method: 'get',
  path: '/data/datasets',
  operationId: 'listDatasets',
  summary: 'List the market data that the server has',
  responses: {
    200: answer(
      'All datasets of the catalogue, by name; without those that are damaged.',
      z.strictObject({ items: z.array(Dataset) }).openapi('Datasets'),
    ),
  },
});

export const getDataset = defineRoute({
  ...reading,
  method: 'get',
  path: '/data/datasets/{name}',
  operationId: 'getDataset',
  summary: 'Show what a dataset holds',
  request: { params: z.strictObject({ name: id('SPX') }) },
  responses: { 200: answer('The dataset.', Dataset) },
  errors: ['not_found'],
});

// Proposals.

const Proposal = z
  .strictObject({
    ...changes,
    patch,
    rationale: z.string().min(1).max(2000).openapi({
      description: 'Why, for the person who decides; shown as it is, and never followed.',
    }),
  })
  .openapi('ProposalInput', {
    description: "What is to stand in place of the current version's own.",
  });

export const proposeVersion = defineRoute({
  ...writing,
  method: 'post',
  path: '/bots/{bot_ref}/proposals',
  operationId: 'proposeVersion',
  summary: 'Propose a version of a bot',
  description:
    'Makes no version: it backtests what is proposed, and leaves an event `chat.proposal` with the whole document and what differs. Files that came with the current version stay with it. Nothing that is proposed raises or removes a limit of `risk`, or changes slug, kind, `attribution` or `deployment`: that is `invalid_spec`. A person who agrees gives the bot that document, with `PUT /bots/{bot_ref}` or `service-local bots update BOT --proposal ID`.',
  idempotent: true,
  request: {
    params: botPath,
    body: json(Proposal, {
      faster: { params: { fast: 12 }, rationale: 'It follows turns sooner.' },
      limited: {
        patch: { spec: { risk: { max_drawdown_pct: 0.2 } } },
        rationale: 'It lost a quarter once.',
      },
    }),
  },
  responses: {
    202: answer(
      'It is in the events of the bot, and its backtest is queued.',
      z
        .strictObject({
          proposal_id: z.string(),
          base_version: z.int(),
          changes: z.array(z.record(z.string(), z.unknown())).openapi({
            description: 'As of `GET /bots/{bot_ref}/versions/{version}/diff`.',
          }),
          hash: sha256.openapi({ description: 'Of the document that is proposed.' }),
          apply_with: z.string().openapi({
            description: 'The command with which a person makes it the next version.',
          }),
          task: TaskReference,
        })
        .openapi('Proposal'),
    ),
  },
  errors: ['not_found', 'conflict', 'invalid_spec'],
});

// Chat.

/** The session of the examples. */
export const EXAMPLE_CHAT_SESSION_ID = '0198c0de-0000-7000-8000-00000000c001';

/** The research bot of the examples. */
export const EXAMPLE_RESEARCH_BOT = 'sma-research';

const researchPath = z.strictObject({ bot_ref: id(EXAMPLE_RESEARCH_BOT) });

const prompt = z
  .string()
  .min(1)
  .max(8000)
  .refine((text) => text.isWellFormed() && !text.includes('\0'), 'must be well-formed text')
  .openapi({ description: 'What is asked.' });

const ChatRequest = z
  .strictObject({
    prompt,
    session_id: z.string().min(1).max(128).optional().openapi({
      description: 'The session to go on with, which must be your own; by default a new one.',
    }),
    agent_role: z.string().min(1).max(100).optional().openapi({
      description: 'The role of an agent of the spec; by default the bot itself.',
    }),
    budget: z
      .strictObject({
        turns: z.int().min(1).optional().openapi({ description: 'Requests to the model.' }),
        seconds: z.number().gt(0).optional(),
        tokens: z.int().min(1).optional().openapi({ description: 'Sent to it and said by it.' }),
      })
      .optional()
      .openapi({ description: 'At most this, and never more than the server is set to.' }),
  })
  .openapi('ChatRequest');

const ToolCall = z
  .strictObject({
    tool: z.string(),
    args: z.string().openapi({ description: 'As JSON, cut to a size.' }),
    source: z.string().nullable().openapi({ description: 'The path that it asked.' }),
    error: z.string().nullable().openapi({ description: 'Why it gave nothing.' }),
  })
  .openapi('ChatToolCall');

export const ChatTurn = z
  .strictObject({
    session_id: z.string(),
    turn_id: z.string(),
    number: z.int().openapi({ description: 'From 1 within the session.' }),
    status: z.enum(['running', 'done', 'failed', 'interrupted']),
    prompt: z.string(),
    answer: z.string().openapi({ description: 'What there is of it, also where the turn failed.' }),
    citations: z
      .array(
        z.strictObject({
          figure: z.string().optional(),
          value: z.union([z.number(), z.string(), z.boolean(), z.null()]).optional(),
          source: z.string(),
        }),
      )
      .openapi({
        description:
          'Where it can be checked: paths of this API. After `#` there is a JSON pointer (RFC 6901) into what is answered there, where a list stands for how many it has; of a table `cell=row,column` (RFC 7111).',
      }),
    tool_calls: z.array(ToolCall),
    usage: z.strictObject({
      requests: z.int().openapi({ description: 'Sent to the provider; none is sent twice.' }),
      input_tokens: z.int(),
      output_tokens: z.int(),
      estimated: z.boolean().openapi({ description: 'Where the provider did not count.' }),
    }),
    stopped_by: z.enum(['turns', 'seconds', 'tokens', 'length']).nullable().openapi({
      description: 'What of the budget was used up before the answer was whole.',
    }),
    error: Problem.pick({ code: true, detail: true, reason: true, remedy: true })
      .extend({ retry_after_seconds: z.number().optional() })
      .nullable(),
    provider: z.enum(['analyst', 'openai_compatible', 'anthropic']),
    model: z.string().nullable(),
    is_language_model: z.boolean().openapi({
      description:
        '`false` for the embedded analyst, which answers a set of questions: `What can I ask?` lists them.',
    }),
    started_at: time,
    ended_at: time.nullable(),
  })
  .openapi('ChatTurn');

export type ChatTurn = z.infer<typeof ChatTurn>;

/** What the stream tells, by the names of its events. */
export interface ChatParts {
  readonly begun: { readonly session_id: string; readonly turn_id: string };
  readonly text: { readonly text: string };
  readonly tool_call: { readonly tool: string; readonly args: string };
  readonly tool_result: Omit<ChatTurn['tool_calls'][number], 'args'>;
  readonly turn: ChatTurn;
}

const sessionLocation = {
  Location: { description: 'Of the session.', schema: { type: 'string' as const } },
};

export const chatWithBot = defineRoute({
  ...reading,
  method: 'post',
  path: '/bots/{bot_ref}/chat',
  operationId: 'chatWithBot',
  summary: 'Ask a research bot',
  description:
    'Answers with the scopes of the caller: tools that backtest and propose are there for those who have `write`. With `Accept: text/event-stream` the answer comes as server-sent events, with JSON in `data`: first `begun` with the ids of session and turn, then `text`, `tool_call` and `tool_result` as they come, and last `turn`, which is a `ChatTurn`, also of a turn that failed. Else it is one JSON document; where the answer takes longer than 25 seconds, 202 with a turn that is `running`. A turn goes on when the caller has gone, until its budget is used up; its answer is in the session. What a provider was asked is never sent twice: an `Idempotency-Key` gets the answer that was kept, also that it failed. With 429, nothing was asked: the reason is `turns` or `streams`.',
  idempotent: true,
  request: {
    params: researchPath,
    body: json(ChatRequest, {
      question: { prompt: 'What is the Sharpe ratio?' },
      goes_on: { prompt: 'And the drawdown?', session_id: EXAMPLE_CHAT_SESSION_ID },
    }),
  },
  responses: {
    200: {
      description: 'The answer.',
      content: {
        'application/json': { schema: ChatTurn },
        'text/event-stream': { schema: z.string() },
      },
      headers: sessionLocation,
    },
    202: {
      ...answer('It is not answered yet: see the session.', ChatTurn),
      headers: sessionLocation,
    },
  },
  errors: ['not_found', 'conflict', 'rate_limited', 'chat_failed'],
});

const sessionSummary = {
  session_id: z.string(),
  agent_role: z.string().nullable(),
  created_at: time,
  created_by: z.string().openapi({ example: 'administrator:ada' }),
  created_by_name: actorName,
  turns: z.int(),
  first_prompt: z.string().openapi({ description: 'The beginning of what was asked first.' }),
};

const ChatSession = z.strictObject(sessionSummary).openapi('ChatSession');

export type ChatSession = z.infer<typeof ChatSession>;

export const listChatSessions = defineRoute({
  ...reading,
  method: 'get',
  path: '/bots/{bot_ref}/chat/sessions',
  operationId: 'listChatSessions',
  summary: 'List the conversations with a bot, the newest first',
  request: { params: researchPath, query: z.strictObject(pageQuery) },
  responses: { 200: answer('A page of sessions.', page(ChatSession)) },
  errors: ['not_found'],
});

const sessionPath = z.strictObject({
  ...researchPath.shape,
  session_id: id(EXAMPLE_CHAT_SESSION_ID),
});

export const getChatSession = defineRoute({
  ...reading,
  method: 'get',
  path: '/bots/{bot_ref}/chat/sessions/{session_id}',
  operationId: 'getChatSession',
  summary: 'Read a conversation with a bot',
  description: 'A turn whose server died is `interrupted`.',
  request: {
    params: sessionPath,
    query: z.strictObject({
      limit: z.coerce.number().int().min(1).max(500).default(50).openapi({
        description: 'So many of its last turns.',
      }),
    }),
  },
  responses: {
    200: answer(
      'The session, with its turns in their order.',
      z.strictObject({ ...sessionSummary, items: z.array(ChatTurn) }).openapi('ChatSessionDetail'),
    ),
  },
  errors: ['not_found'],
});

export const cancelChatTurn = defineRoute({
  ...reading,
  method: 'post',
  path: '/bots/{bot_ref}/chat/sessions/{session_id}/cancel',
  operationId: 'cancelChatTurn',
  summary: 'Break off the answer that is under way',
  description: 'What has ended stays as it ended. What the provider has been asked may be charged.',
  request: { params: sessionPath },
  responses: { 200: answer('The last turn of the session.', ChatTurn) },
  errors: ['not_found', 'conflict'],
});
