import { z } from '@hono/zod-openapi';
import {
  actorName,
  administrator,
  jsonResponse,
  defineRoute,
  id,
  jsonBody,
  page,
  pageQuery,
  searchText,
  time,
} from './http.ts';
import { BotDeployment, EffectiveHalt } from './tasks.ts';

const reading = { tags: ['Bots'], security: administrator('read') };
const writing = { tags: ['Bots'], security: administrator('write') };

const Kind = z.enum(['trading', 'research']);
const Status = z.enum(['draft', 'active', 'archived']).openapi({
  description:
    'A bot is a draft until it is first deployed. An archived bot is kept but cannot run.',
});
export const sha256 = z.string().regex(/^[0-9a-f]{64}$/);

const Document = z.record(z.string(), z.unknown()).openapi('BotDocument', {
  description: 'A spec as its author wrote it, in the format that `service-local schema` prints.',
  example: {
    apiVersion: 'bots/v1',
    kind: 'Bot',
    metadata: { name: 'SMA crossover on the S&P 500', slug: 'sma-crossover' },
    spec: {
      kind: 'trading',
      universe: { symbols: ['SPX'], currency: 'USD' },
      data: { source: 'catalog://SPX', timeframe: '1d' },
      strategy: { name: 'sma_crossover', params: { fast: 10, slow: 30 } },
    },
  },
});

const Files = z.record(z.string(), z.string());

const files = Files.optional().openapi({
  description:
    'Files of the spec as texts, by path relative to the spec; at most 32. The code of a custom strategy, if the server has the setting `custom_code`: the module in `strategy.module` and everything that it imports, at most 96 KiB in total. The ONNX files in `ml_models` as base64, at most 512 KiB in total before encoding.',
});

const BotInput = z
  .union([
    z.strictObject({ document: Document, files }),
    z.strictObject({
      yaml: z.string().openapi({ description: 'The spec as the text of a YAML or JSON file.' }),
      files,
    }),
  ])
  .openapi('BotInput', {
    description:
      'A spec whose data are in the catalog of the server (`catalog://NAME`) and whose strategy is built in or included in `files`. The pointers of an `invalid_spec` error refer to the spec.',
  });

export type BotInput = z.infer<typeof BotInput>;

const summary = {
  id: z
    .string()
    .openapi({ description: 'Permanent id, made by the server. Paths accept the id or the slug.' }),
  name: z.string(),
  slug: z.string(),
  kind: Kind,
  status: Status,
  current_version: z.int(),
};

export const BotSummary = z.strictObject(summary).openapi('BotSummary');

export type BotSummary = z.infer<typeof BotSummary>;

const Activity = z
  .strictObject({
    running: z.int().openapi({ description: 'Number of deployments that are pending or running.' }),
    halted: z
      .enum(['bot', 'all'])
      .nullable()
      .openapi({ description: 'Scope of the halt in force; null if the bot is not halted.' }),
    last: BotDeployment.nullable().openapi({
      description: 'The newest deployment that has ended; null if none has.',
    }),
  })
  .openapi('BotActivity');

export const BotListItem = z
  .strictObject({
    ...summary,
    activity: Activity.optional().openapi({ description: 'Only with `include=activity`.' }),
  })
  .openapi('BotListItem');

export type BotListItem = z.infer<typeof BotListItem>;

export const BotDetail = z
  .strictObject({
    ...summary,
    document: Document,
    version_hash: sha256.openapi({
      description:
        'SHA-256 of the document in canonical JSON (RFC 8785). For a version with code, SHA-256 of the canonical JSON of `{bundle, spec}`: the `bundle_hash` and the hash of the document.',
    }),
    created_at: time,
    updated_at: time,
    active_deployments: z.array(BotDeployment).openapi({
      description:
        'Pending and running deployments, newest first, at most 100. They do not change the `ETag`.',
    }),
    active_deployment_count: z
      .int()
      .openapi({ description: 'Number of all pending and running deployments.' }),
    halted: EffectiveHalt.nullable().openapi({
      description:
        'The halt in force: a halt of all bots if there is one, else the halt of this bot, else null. It does not change the `ETag`.',
    }),
  })
  .openapi('BotDetail');

export type BotDetail = z.infer<typeof BotDetail>;

const ETAG = {
  ETag: {
    description:
      'Identifies the version and status of the bot; send it as `If-Match` with the next change.',
    schema: { type: 'string' as const },
  },
};

const botResponse = (description: string) => ({
  ...jsonResponse(description, BotDetail),
  headers: ETAG,
});

const ifMatch = z.object({
  'if-match': z.string().optional().openapi({
    description: '`ETag` of the bot to change; `*` accepts any version.',
    example: '*',
  }),
});

const botPath = z.strictObject({ bot_ref: id('sma-crossover') });

/** A spec that a server accepts. */
export function exampleDocument(slug: string, fast: number): z.input<typeof Document> {
  return {
    apiVersion: 'bots/v1',
    kind: 'Bot',
    metadata: { name: 'SMA crossover', slug },
    spec: {
      kind: 'trading',
      universe: { symbols: ['SPX'], currency: 'USD' },
      data: { source: 'catalog://SPX', timeframe: '1d' },
      strategy: { name: 'sma_crossover', params: { fast, slow: 30 } },
    },
  };
}

export const createBot = defineRoute({
  ...writing,
  method: 'post',
  path: '/bots',
  operationId: 'createBot',
  summary: 'Create a bot',
  idempotent: true,
  request: {
    body: jsonBody(BotInput, {
      document: { document: exampleDocument('sma-20', 20) },
      yaml: { yaml: JSON.stringify(exampleDocument('sma-20', 20)) },
    }),
  },
  responses: { 201: botResponse('The new bot, a draft with version 1.') },
  errors: ['conflict', 'invalid_spec'],
});

export const listBots = defineRoute({
  ...reading,
  method: 'get',
  path: '/bots',
  operationId: 'listBots',
  summary: 'List the bots',
  request: {
    query: z.strictObject({
      ...pageQuery,
      kind: Kind.optional(),
      status: Status.optional(),
      q: searchText(120)
        .optional()
        .openapi({ description: 'Part of the slug or the name, in upper or lower case.' }),
      ids: z
        .string()
        .regex(/^[0-9a-f-]{36}(,[0-9a-f-]{36}){0,99}$/, 'must be ids, joined by commas')
        .optional()
        .openapi({ description: 'Only the bots with these ids, at most 100, joined by commas.' }),
      include: z.enum(['activity']).optional().openapi({
        description:
          'Adds `activity` to each bot: its running deployments, its halt and its last result.',
      }),
    }),
  },
  responses: { 200: jsonResponse('A page of bots, by slug.', page(BotListItem)) },
});

export const getBot = defineRoute({
  ...reading,
  method: 'get',
  path: '/bots/{bot_ref}',
  operationId: 'getBot',
  summary: 'Show a bot',
  request: {
    params: botPath,
    headers: z.object({
      'if-none-match': z
        .string()
        .optional()
        .openapi({ description: '`ETag` of the copy that the caller has.' }),
    }),
  },
  responses: {
    200: botResponse('The bot.'),
    304: {
      description:
        'The version and status of the bot have not changed; its deployments and its halt may have.',
      headers: ETAG,
    },
  },
  errors: ['not_found'],
});

export const updateBot = defineRoute({
  ...writing,
  method: 'put',
  path: '/bots/{bot_ref}',
  operationId: 'updateBot',
  summary: 'Create a new version of a bot',
  description:
    'A document with the hash of the current version creates no version. An archived bot becomes active. The document may change the name of the bot, and the slug if no other bot has it; it cannot change the kind.',
  request: {
    params: botPath,
    headers: ifMatch,
    body: jsonBody(BotInput, { document: { document: exampleDocument('sma-crossover', 20) } }),
  },
  responses: { 200: botResponse('The updated bot.') },
  errors: ['not_found', 'conflict', 'precondition_required', 'stale', 'invalid_spec'],
});

export const archiveBot = defineRoute({
  ...writing,
  method: 'delete',
  path: '/bots/{bot_ref}',
  operationId: 'archiveBot',
  summary: 'Archive a bot',
  description:
    'Keeps the versions, the events and the slug of the bot. Fails with `conflict` while a deployment of the bot is pending or running. Archiving an archived bot has no effect and ignores `If-Match`.',
  request: { params: botPath, headers: ifMatch },
  responses: { 204: { description: 'The bot is archived.' } },
  errors: ['not_found', 'conflict', 'precondition_required', 'stale'],
});

// Versions.

const version = {
  version: z.int(),
  hash: sha256,
  bundle_hash: sha256.nullable().openapi({
    description:
      'Hash of the files of the version: SHA-256 of the canonical JSON of an object with the SHA-256 of each file by path. Null without files.',
  }),
  created_at: time,
  created_by: z.string().openapi({ example: 'administrator:ada' }),
  created_by_name: actorName,
};

export const BotVersion = z.strictObject(version).openapi('BotVersion');

export type BotVersion = z.infer<typeof BotVersion>;

export const listBotVersions = defineRoute({
  ...reading,
  method: 'get',
  path: '/bots/{bot_ref}/versions',
  operationId: 'listBotVersions',
  summary: 'List the versions of a bot, newest first',
  request: { params: botPath, query: z.strictObject(pageQuery) },
  responses: { 200: jsonResponse('A page of versions.', page(BotVersion)) },
  errors: ['not_found'],
});

const versionNumber = z.coerce.number().int().min(1);
const versionPath = z.strictObject({
  ...botPath.shape,
  version: versionNumber.openapi({ example: 1 }),
});

export const getBotVersion = defineRoute({
  ...reading,
  method: 'get',
  path: '/bots/{bot_ref}/versions/{version}',
  operationId: 'getBotVersion',
  summary: 'Show a version of a bot',
  request: { params: versionPath },
  responses: {
    200: jsonResponse(
      'The version.',
      z.strictObject({ ...version, document: Document }).openapi('BotVersionDetail'),
    ),
  },
  errors: ['not_found'],
});

export const getBotVersionFiles = defineRoute({
  ...reading,
  method: 'get',
  path: '/bots/{bot_ref}/versions/{version}/files',
  operationId: 'getBotVersionFiles',
  summary: 'Read the files of a version of a bot',
  request: { params: versionPath },
  responses: {
    200: jsonResponse(
      'The files as texts by path, models in base64; empty for a version without files.',
      z.strictObject({ files: Files }).openapi('BotVersionFiles'),
    ),
  },
  errors: ['not_found'],
});

const Change = z
  .strictObject({
    pointer: z
      .string()
      .openapi({ description: 'Location in the document, as a JSON pointer (RFC 6901).' }),
    kind: z.enum(['added', 'removed', 'changed']),
    from: z.unknown().optional().openapi({ description: 'Absent for an addition.' }),
    to: z.unknown().optional().openapi({ description: 'Absent for a removal.' }),
  })
  .openapi('BotChange');

const FileChange = z
  .strictObject({
    file: z.string().openapi({ description: 'Path relative to the spec.' }),
    kind: z.enum(['added', 'removed', 'changed']),
    from: sha256.optional().openapi({ description: 'SHA-256; absent for an added file.' }),
    to: sha256.optional().openapi({ description: 'SHA-256; absent for a removed file.' }),
  })
  .openapi('BotFileChange', { description: 'A difference between the files of two versions.' });

export const diffBotVersions = defineRoute({
  ...reading,
  method: 'get',
  path: '/bots/{bot_ref}/versions/{version}/diff',
  operationId: 'diffBotVersions',
  summary: 'Compare two versions of a bot',
  request: {
    params: versionPath,
    query: z.strictObject({ to: versionNumber.openapi({ example: 2 }) }),
  },
  responses: {
    200: jsonResponse(
      'All differences between the documents, in document order, and between the files, by path. Not empty if the hashes of the versions differ.',
      z
        .strictObject({
          from_version: z.int(),
          to_version: z.int(),
          changes: z.array(Change),
          files: z.array(FileChange),
        })
        .openapi('BotDiff'),
    ),
  },
  errors: ['not_found'],
});

// State and events.

export const RiskState = z
  .strictObject({
    peak_equity: z.number().openapi({ description: 'Highest equity at the close of a bar.' }),
    day_start_equity: z.number().openapi({ description: 'Equity at the last close before `day`.' }),
    day: z.string().nullable().openapi({ description: 'UTC date; null before the first bars.' }),
    executions: z
      .array(
        z.strictObject({
          symbol: z.string(),
          side: z.enum(['buy', 'sell']),
          times: z.array(z.number()).readonly(),
        }),
      )
      .readonly()
      .optional()
      .openapi({
        description:
          'Times of recent executions, in milliseconds since the Unix epoch, if `repeated_execution` is limited.',
      }),
  })
  .openapi('RiskState', {
    description: 'State of the loss limits and of `repeated_execution` of a session.',
  });

export const Carry = z
  .strictObject({
    marks: z.record(z.string(), z.number()).openapi({
      description: 'Valuation prices of positions, by symbol.',
    }),
    risk: RiskState,
  })
  .optional()
  .openapi({
    description:
      'State that the next session of this account inherits. Absent in sessions recorded by version 0.1.0.',
  });

const Session = z
  .strictObject({
    deployment_id: z.string(),
    version: z.int(),
    status: z.enum(['running', 'halted', 'failed', 'ruined']),
    time: time
      .nullable()
      .openapi({ description: 'Opening time of the newest bars; null before the first bars.' }),
    seq: z.int().openapi({ description: 'Sequence number of the newest order event.' }),
    cash: z.number(),
    equity: z.number().openapi({ description: 'Valued at the newest closes.' }),
    positions: z.record(z.string(), z.number()).openapi({ description: 'Units, by symbol.' }),
    working: z
      .array(
        z.strictObject({
          order: z.int(),
          symbol: z.string(),
          side: z.enum(['buy', 'sell']),
          type: z.enum(['market', 'limit', 'stop', 'stop_limit', 'trailing_stop']),
          time_in_force: z.enum(['gtc', 'day', 'ioc', 'fok']),
          quantity: z.number().optional(),
          weight: z.number().optional().openapi({ description: 'Target share of equity.' }),
          limit: z.number().optional(),
          stop: z.number().optional(),
          filled: z.number(),
          triggered: z.boolean(),
          client_order_id: z
            .string()
            .optional()
            .openapi({ description: 'Id of the order at the exchange.' }),
          pending_cancel: z.literal(true).optional(),
        }),
      )
      .openapi({ description: 'Orders that may still be filled, oldest first.' }),
    carry: Carry,
  })
  .openapi('PaperSession', {
    description: 'Last recorded state of a paper or production session.',
  });

export type PaperSession = z.infer<typeof Session>;

export const State = z
  .strictObject({
    slug: z.string(),
    name: z.string(),
    kind: Kind,
    status: Status,
    version: z.int(),
    created_at: time,
    updated_at: time,
    versions: z.array(sha256).openapi({ description: 'Hash of each version, from version 1.' }),
    sessions: z.record(z.string(), Session).openapi({
      description: 'Paper and production sessions that have not ended, by `task_id`.',
    }),
    halted: z
      .strictObject({ halt_id: z.string(), by: z.string(), reason: z.string(), at: time })
      .nullable()
      .openapi({ description: 'The halt of this bot in force; null if the bot is not halted.' }),
  })
  .openapi('BotState', { description: 'State of a bot, computed from its events.' });

export type BotState = z.infer<typeof State>;

export const stateHash = sha256.openapi({
  description: 'SHA-256 of the state in canonical JSON (RFC 8785).',
});

const seq = z.coerce.number().int();

/** Without an example, because the tests send all examples and would combine it with another. */
export const optionalTime = z.iso
  .datetime({ error: 'must be a time in UTC, such as 2026-01-02T03:04:05Z' })
  .optional();

export const getBotSnapshot = defineRoute({
  ...reading,
  method: 'get',
  path: '/bots/{bot_ref}/state/snapshot',
  operationId: 'getBotSnapshot',
  summary: 'Show the current or an earlier state of a bot',
  request: {
    params: botPath,
    query: z
      .strictObject({
        at_seq: seq
          .min(1)
          .optional()
          .openapi({ description: 'State after the event with this sequence number.', example: 2 }),
        at: optionalTime.openapi({ description: 'State recorded by this time.' }),
      })
      .refine(({ at_seq, at }) => at_seq === undefined || at === undefined, {
        error: 'excludes at_seq',
        path: ['at'],
      }),
  },
  responses: {
    200: jsonResponse(
      'The state.',
      z
        .strictObject({
          seq: z.int().openapi({ description: 'The last event included in the state.' }),
          head_seq: z
            .int()
            .openapi({ description: 'Sequence number of the newest event in the log.' }),
          in_doubt: z.strictObject({ first_seq: z.int(), last_seq: z.int() }).optional().openapi({
            description:
              'Only with `at`, if a clock was wrong: events whose times do not show whether they were recorded before `at`. The state includes events up to `seq`. Use `at_seq` for an exact answer.',
          }),
          state: State,
          state_hash: stateHash,
        })
        .openapi('BotSnapshot'),
    ),
  },
  errors: ['not_found'],
});

export const BotEvent = z
  .strictObject({
    bot_id: z.string(),
    seq: z.int().openapi({
      description: 'Starts at 1 for each bot, without gaps, and alone defines the order of events.',
    }),
    event_id: z.string(),
    version: z.int(),
    run_id: z.string().nullable(),
    kind: z.string().openapi({ example: 'version.created' }),
    occurred_at: time,
    recorded_at: time,
    causation_id: z.string().nullable(),
    payload: z.record(z.string(), z.unknown()),
    prev_hash: sha256,
    hash: sha256,
  })
  .openapi('BotEvent');

export type BotEvent = z.infer<typeof BotEvent>;

const eventsQuery = {
  after_seq: seq
    .min(0)
    .default(0)
    .openapi({ description: 'Only events after this sequence number.' }),
  kind: z
    .string()
    .regex(/^[a-z_.]+(,[a-z_.]+){0,99}$/, 'must be kinds such as bot.created, joined by commas')
    .optional()
    .openapi({ description: 'Only events of these kinds, joined by commas.' }),
  run_id: z.string().min(1).max(128).optional().openapi({
    description: 'Only events of this run: the `task_id` of a backtest or paper session.',
  }),
};

export const listBotEvents = defineRoute({
  ...reading,
  method: 'get',
  path: '/bots/{bot_ref}/state/events',
  operationId: 'listBotEvents',
  summary: 'Read the events of a bot',
  description:
    'Returns events in the order in which they were recorded. Following `next_after_seq` returns every event exactly once, even while events are being added.',
  request: {
    params: botPath,
    query: z.strictObject({
      ...eventsQuery,
      until_seq: seq
        .min(0)
        .optional()
        .openapi({ description: 'Only events up to this sequence number.' }),
      last: z.enum(['true', 'false']).optional().openapi({
        description: '`true` returns the last events instead of the first, in the same order.',
      }),
      limit: pageQuery.limit,
    }),
  },
  responses: {
    200: jsonResponse(
      'The events.',
      z
        .strictObject({
          items: z.array(BotEvent),
          head_seq: z
            .int()
            .openapi({ description: 'Sequence number of the newest event in the log.' }),
          next_after_seq: z.int().openapi({ description: '`after_seq` of the next request.' }),
        })
        .openapi('BotEvents'),
    ),
  },
  errors: ['not_found'],
});

export const streamBotEvents = defineRoute({
  ...reading,
  method: 'get',
  path: '/bots/{bot_ref}/state/events/stream',
  operationId: 'streamBotEvents',
  summary: 'Follow the events of a bot',
  description:
    'A stream of server-sent events, each with its sequence number as `id` and the event as JSON in `data`, and a comment every 15 seconds. The stream ends when the server stops or the token expires or is revoked; resume with `Last-Event-ID`. An administrator may have at most 100 streams open, of bots and tasks together.',
  request: {
    params: botPath,
    query: z.strictObject(eventsQuery),
    headers: z.object({
      'last-event-id': z
        .string()
        .regex(/^\d{1,15}$/, 'must be the id of an event of this stream')
        .optional()
        .openapi({
          description: 'Sequence number of the last event received; overrides `after_seq`.',
        }),
    }),
  },
  responses: {
    200: {
      description: 'Events as they are recorded.',
      content: { 'text/event-stream': { schema: z.string() } },
    },
  },
  errors: ['not_found', 'rate_limited'],
});
