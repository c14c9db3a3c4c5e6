import { z } from '@hono/zod-openapi';
import {
  actorName,
  administrator,
  botPath,
  defineRoute,
  id,
  jsonBody,
  jsonResponse,
  page,
  pageQuery,
  Problem,
  sha256,
  time,
} from './http.ts';
import { changes, patch, TaskReference } from './tasks.ts';

const tags = ['Research'];
const reading = { tags, security: administrator('read') };
const writing = { tags, security: administrator('write') };

const Dataset = z
  .strictObject({
    name: z.string().openapi({
      description: 'Name of the dataset; specs refer to it as `catalog://NAME`.',
      example: 'SPX',
    }),
    timeframe: z.string().openapi({ example: '1d' }),
    bars: z.int(),
    from: z.string().describe('Day or time of the first bar, in UTC.'),
    to: z.string().describe('Day or time of the last bar, in UTC.'),
    has_volume: z.boolean(),
    sha256: sha256.describe('Hash of the columns of the bars.'),
    imported_at: time,
  })
  .openapi('Dataset');

export type Dataset = z.infer<typeof Dataset>;

export const listDatasets = defineRoute({
  ...reading,
  method: 'get',
  path: '/data/datasets',
  operationId: 'listDatasets',
  summary: 'List the datasets of the server',
  responses: {
    200: jsonResponse(
      'All undamaged datasets of the catalogue, by name.',
      z.strictObject({ items: z.array(Dataset) }).openapi('Datasets'),
    ),
  },
});

export const getDataset = defineRoute({
  ...reading,
  method: 'get',
  path: '/data/datasets/{name}',
  operationId: 'getDataset',
  summary: 'Show a dataset',
  request: { params: z.strictObject({ name: id('SPX') }) },
  responses: { 200: jsonResponse('The dataset.', Dataset) },
  errors: ['not_found'],
});

const Proposal = z
  .strictObject({
    ...changes,
    patch,
    rationale: z
      .string()
      .min(1)
      .max(2000)
      .describe(
        'Reason for the proposal. It is shown verbatim to the person who decides, and never treated as an instruction.',
      ),
  })
  .openapi('ProposalInput', {
    description: 'Values that replace those of the current version.',
  });

export const proposeVersion = defineRoute({
  ...writing,
  method: 'post',
  path: '/bots/{bot_ref}/proposals',
  operationId: 'proposeVersion',
  summary: 'Propose a version of a bot',
  description:
    'Backtests the proposal and records an event `chat.proposal` with the whole document and the differences, but creates no version. The files of the current version stay with it. A proposal that raises or removes a limit of `risk`, or changes slug, kind, `attribution` or `deployment`, fails with `invalid_spec`. To accept a proposal, a person updates the bot with `PUT /bots/{bot_ref}` or `service-local bots update BOT --proposal ID`.',
  idempotent: true,
  request: {
    params: botPath,
    body: jsonBody(Proposal, {
      faster: { params: { fast: 12 }, rationale: 'It follows turns sooner.' },
      limited: {
        patch: { spec: { risk: { max_drawdown_pct: 0.2 } } },
        rationale: 'It lost a quarter once.',
      },
    }),
  },
  responses: {
    202: jsonResponse(
      'The proposal is recorded, and its backtest is queued.',
      z
        .strictObject({
          proposal_id: z.string(),
          base_version: z.int(),
          changes: z
            .array(z.record(z.string(), z.unknown()))
            .describe('In the format of `GET /bots/{bot_ref}/versions/{version}/diff`.'),
          hash: sha256.describe('Hash of the proposed document.'),
          apply_with: z
            .string()
            .describe('Command with which a person makes the proposal the next version.'),
          task: TaskReference,
        })
        .openapi('Proposal'),
    ),
  },
  errors: ['not_found', 'conflict', 'invalid_spec'],
});

export const EXAMPLE_CHAT_SESSION_ID = '0198c0de-0000-7000-8000-00000000c001';

export const EXAMPLE_RESEARCH_BOT = 'sma-research';

const researchPath = z.strictObject({ bot_ref: id(EXAMPLE_RESEARCH_BOT) });

const prompt = z
  .string()
  .min(1)
  .max(8000)
  .refine((text) => text.isWellFormed() && !text.includes('\0'), 'must be well-formed text')
  .describe('The question.');

const ChatRequest = z
  .strictObject({
    prompt,
    session_id: z
      .string()
      .min(1)
      .max(128)
      .optional()
      .describe('The chat session to continue, which must be your own; by default a new one.'),
    agent_role: z
      .string()
      .min(1)
      .max(100)
      .optional()
      .describe('Role of an agent in the spec; by default the bot itself.'),
    budget: z
      .strictObject({
        turns: z.int().min(1).optional().describe('Maximum number of requests to the model.'),
        seconds: z.number().gt(0).optional(),
        tokens: z.int().min(1).optional().describe('Maximum number of input and output tokens.'),
      })
      .optional()
      .describe('Limits for this turn; they cannot exceed those of the server.'),
  })
  .openapi('ChatRequest');

const ToolCall = z
  .strictObject({
    tool: z.string(),
    args: z.string().describe('Arguments as JSON, truncated if long.'),
    source: z.string().nullable().describe('Path that the tool read.'),
    error: z.string().nullable().describe('Why the call failed; null if it succeeded.'),
  })
  .openapi('ChatToolCall');

export const ChatTurn = z
  .strictObject({
    session_id: z.string(),
    turn_id: z.string(),
    number: z.int().describe('Starts at 1 in each chat session.'),
    status: z.enum(['running', 'done', 'failed', 'interrupted']),
    prompt: z.string(),
    answer: z
      .string()
      .describe('The answer, or the part of it that exists if the turn is running or failed.'),
    citations: z
      .array(
        z.strictObject({
          figure: z.string().optional(),
          value: z.union([z.number(), z.string(), z.boolean(), z.null()]).optional(),
          source: z.string(),
          times: z
            .strictObject({ from: time, to: time, symbol: z.string().optional() })
            .optional()
            .describe(
              'Time on the chart: from the entry to the exit of a trade, or a single time.',
            ),
        }),
      )
      .describe(
        'Sources of the answer: paths of this API. After `#` follows a JSON pointer (RFC 6901) into the response, where a list stands for its length, or `cell=row,column` (RFC 7111) for a table.',
      ),
    tool_calls: z.array(ToolCall),
    usage: z.strictObject({
      requests: z.int().describe('Number of requests sent to the provider; none is sent twice.'),
      input_tokens: z.int(),
      output_tokens: z.int(),
      estimated: z
        .boolean()
        .describe('Whether the counts are estimates because the provider returned none.'),
    }),
    stopped_by: z
      .enum(['turns', 'seconds', 'tokens', 'length'])
      .nullable()
      .describe('The limit that was reached before the answer was complete; null if none was.'),
    error: Problem.pick({ code: true, detail: true, reason: true, remedy: true })
      .extend({ retry_after_seconds: z.number().optional() })
      .nullable(),
    provider: z.enum(['analyst', 'openai_compatible', 'anthropic']),
    model: z.string().nullable(),
    is_language_model: z
      .boolean()
      .describe(
        '`false` for the embedded analyst, which answers questions about the records of the bot: `What can I ask?` lists examples.',
      ),
    started_at: time,
    ended_at: time.nullable(),
  })
  .openapi('ChatTurn');

export type ChatTurn = z.infer<typeof ChatTurn>;

/** Payloads of a chat stream, by event name. */
export interface ChatParts {
  readonly begun: { readonly session_id: string; readonly turn_id: string };
  readonly text: { readonly text: string };
  readonly tool_call: { readonly tool: string; readonly args: string };
  readonly tool_result: Omit<ChatTurn['tool_calls'][number], 'args'>;
  readonly turn: ChatTurn;
}

const sessionLocation = {
  Location: { description: 'URL of the chat session.', schema: { type: 'string' as const } },
};

export const chatWithBot = defineRoute({
  ...reading,
  method: 'post',
  path: '/bots/{bot_ref}/chat',
  operationId: 'chatWithBot',
  summary: 'Ask about a bot',
  description:
    'Answers with the scopes of the caller; tools that backtest and propose require `write`. About a trading bot, the answer only reads: these tools fail with the reason `trading_bot`. With `Accept: text/event-stream`, the response is a stream of server-sent events with JSON in `data`: first `begun` with the ids of session and turn, then `text`, `tool_call` and `tool_result`, and finally `turn` with a `ChatTurn`, even if the turn failed. Otherwise the response is one JSON document. If the answer takes longer than 25 seconds, it is 202 with a turn that is `running`. A turn continues after the caller disconnects, until its budget is used up; the answer is stored in the session. A request to a provider is never sent twice: a repeated `Idempotency-Key` returns the stored answer or failure. With 429, nothing was sent; the reason is `turns` or `streams`.',
  idempotent: true,
  request: {
    params: researchPath,
    body: jsonBody(ChatRequest, {
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
      ...jsonResponse('The answer is not complete; read it from the session.', ChatTurn),
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
  first_prompt: z.string().describe('Beginning of the first question.'),
};

const ChatSession = z.strictObject(sessionSummary).openapi('ChatSession');

export type ChatSession = z.infer<typeof ChatSession>;

export const listChatSessions = defineRoute({
  ...reading,
  method: 'get',
  path: '/bots/{bot_ref}/chat/sessions',
  operationId: 'listChatSessions',
  summary: 'List the conversations with a bot, newest first',
  request: { params: researchPath, query: z.strictObject(pageQuery) },
  responses: { 200: jsonResponse('A page of chat sessions.', page(ChatSession)) },
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
  description: 'A turn whose server stopped unexpectedly is `interrupted`.',
  request: {
    params: sessionPath,
    query: z.strictObject({
      limit: z.coerce
        .number()
        .int()
        .min(1)
        .max(500)
        .default(50)
        .describe('Maximum number of turns, counted from the last.'),
    }),
  },
  responses: {
    200: jsonResponse(
      'The chat session with its turns, oldest first.',
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
  summary: 'Cancel the running answer',
  description:
    'A turn that has ended does not change. The provider may charge for requests that were already sent.',
  request: { params: sessionPath },
  responses: { 200: jsonResponse('The last turn of the chat session.', ChatTurn) },
  errors: ['not_found', 'conflict'],
});
