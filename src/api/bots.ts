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
  searchText,
  time,
} from './http.ts';
import { BotDeployment, EffectiveHalt } from './tasks.ts';

const reading = { tags: ['Bots'], security: administrator('read') };
const writing = { tags: ['Bots'], security: administrator('write') };

const Kind = z.enum(['trading', 'research']);
const Status = z.enum(['draft', 'active', 'archived']).openapi({
  description: 'A draft until it is first deployed. What is archived is kept, and only kept.',
});
export const sha256 = z.string().regex(/^[0-9a-f]{64}$/);

const Document = z.record(z.string(), z.unknown()).openapi('BotDocument', {
  description: 'A spec as its author wrote it: what `service-local schema` describes.',
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
    'What goes with the spec, as texts by path relative to it, at most 32 files. The code of a strategy of your own, for a server with the setting `custom_code`: the module that `strategy.module` names and all that it imports, 96 KiB in all. The ONNX files that `ml_models` names, in base64, 512 KiB in all before that.',
});

const BotInput = z
  .union([
    z.strictObject({ document: Document, files }),
    z.strictObject({
      yaml: z.string().openapi({ description: 'The same as the text of a file, YAML or JSON.' }),
      files,
    }),
  ])
  .openapi('BotInput', {
    description:
      'A spec for a server: its data are in the catalogue (`catalog://NAME`) and its strategy is a built-in one, or comes with it. The pointers of `invalid_spec` are into the spec.',
  });

export type BotInput = z.infer<typeof BotInput>;

const summary = {
  id: z
    .string()
    .openapi({ description: 'Of the server, and for good; paths take it or the slug.' }),
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
    running: z.int().openapi({ description: 'Deployments that are pending or running.' }),
    halted: z
      .enum(['bot', 'all'])
      .nullable()
      .openapi({ description: 'Whether a halt of this bot, or of all, is in force.' }),
    last: BotDeployment.nullable().openapi({
      description: 'The newest deployment that has ended; null before any has.',
    }),
  })
  .openapi('BotActivity');

export const BotListItem = z
  .strictObject({
    ...summary,
    activity: Activity.optional().openapi({ description: 'Only where it is asked for.' }),
  })
  .openapi('BotListItem');

export type BotListItem = z.infer<typeof BotListItem>;

export const BotDetail = z
  .strictObject({
    ...summary,
    document: Document,
    version_hash: sha256.openapi({
      description:
        'SHA-256 of the document in canonical JSON (RFC 8785); with code, that of `{bundle, spec}`: the `bundle_hash`, and that hash of the document.',
    }),
    created_at: time,
    updated_at: time,
    active_deployments: z.array(BotDeployment).openapi({
      description:
        'What is pending or running, the newest first, at most 100. The `ETag` does not stand for them.',
    }),
    active_deployment_count: z.int().openapi({ description: 'Of all that is pending or running.' }),
    halted: EffectiveHalt.nullable().openapi({
      description:
        'The halt that is in force for it, that of all bots before its own; null where there is none. The `ETag` does not stand for it.',
    }),
  })
  .openapi('BotDetail');

export type BotDetail = z.infer<typeof BotDetail>;

const ETAG = {
  ETag: {
    description: 'Stands for version and status of the bot: for `If-Match` of the next change.',
    schema: { type: 'string' as const },
  },
};

const detail = (description: string) => ({ ...answer(description, BotDetail), headers: ETAG });

const ifMatch = z.object({
  'if-match': z.string().optional().openapi({
    description: '`ETag` of the bot that is to be changed; `*` for whatever it is by now.',
    example: '*',
  }),
});

const botPath = z.strictObject({ bot_ref: id('sma-crossover') });

/** A spec that a server takes. */
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
    body: json(BotInput, {
      document: { document: exampleDocument('sma-20', 20) },
      yaml: { yaml: JSON.stringify(exampleDocument('sma-20', 20)) },
    }),
  },
  responses: { 201: detail('The bot, a draft at version 1.') },
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
        .openapi({ description: 'Part of the slug or the name, in letters of either case.' }),
      ids: z
        .string()
        .regex(/^[0-9a-f-]{36}(,[0-9a-f-]{36}){0,99}$/, 'must be ids, joined by commas')
        .optional()
        .openapi({ description: 'Only these, at most 100 of them, joined by commas.' }),
      include: z
        .enum(['activity'])
        .optional()
        .openapi({ description: 'Adds what each bot does, and what it came to last.' }),
    }),
  },
  responses: { 200: answer('A page of bots, by slug.', page(BotListItem)) },
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
        .openapi({ description: '`ETag` of the bot as the caller has it.' }),
    }),
  },
  responses: {
    200: detail('The bot.'),
    304: {
      description:
        'The bot is as the caller has it; what is pending or running, and whether it is halted, may be other than it was.',
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
  summary: 'Give a bot a new version',
  description:
    'A document with the hash of the current version makes no new one. An archived bot becomes active. The document may give the bot another name, and another slug when no bot has it; a bot keeps its kind.',
  request: {
    params: botPath,
    headers: ifMatch,
    body: json(BotInput, { document: { document: exampleDocument('sma-crossover', 20) } }),
  },
  responses: { 200: detail('The bot as it is now.') },
  errors: ['not_found', 'conflict', 'precondition_required', 'stale', 'invalid_spec'],
});

export const archiveBot = defineRoute({
  ...writing,
  method: 'delete',
  path: '/bots/{bot_ref}',
  operationId: 'archiveBot',
  summary: 'Archive a bot',
  description:
    'Its versions and events stay, and so does its slug. It is refused while a deployment of the bot is pending or running. Archiving what is archived does nothing, whatever `If-Match` says.',
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
      'Of the code that came with it: SHA-256 of the canonical JSON of the SHA-256 of each file by its path.',
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
  summary: 'List the versions of a bot, the newest first',
  request: { params: botPath, query: z.strictObject(pageQuery) },
  responses: { 200: answer('A page of versions.', page(BotVersion)) },
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
    200: answer(
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
  summary: 'Read the files that came with a version of a bot',
  request: { params: versionPath },
  responses: {
    200: answer(
      'Its files as texts by path, models in base64; none where nothing came with it.',
      z.strictObject({ files: Files }).openapi('BotVersionFiles'),
    ),
  },
  errors: ['not_found'],
});

const Change = z
  .strictObject({
    pointer: z.string().openapi({ description: 'Into the document: a JSON pointer (RFC 6901).' }),
    kind: z.enum(['added', 'removed', 'changed']),
    from: z.unknown().optional().openapi({ description: 'Absent where something is added.' }),
    to: z.unknown().optional().openapi({ description: 'Absent where something is removed.' }),
  })
  .openapi('BotChange');

const FileChange = z
  .strictObject({
    file: z.string().openapi({ description: 'Its path, relative to the spec.' }),
    kind: z.enum(['added', 'removed', 'changed']),
    from: sha256.optional().openapi({ description: 'Absent where it is added.' }),
    to: sha256.optional().openapi({ description: 'Absent where it is removed.' }),
  })
  .openapi('BotFileChange', { description: 'Of the code that came with a version, by SHA-256.' });

export const diffBotVersions = defineRoute({
  ...reading,
  method: 'get',
  path: '/bots/{bot_ref}/versions/{version}/diff',
  operationId: 'diffBotVersions',
  summary: 'Say what differs between two versions of a bot',
  request: {
    params: versionPath,
    query: z.strictObject({ to: versionNumber.openapi({ example: 2 }) }),
  },
  responses: {
    200: answer(
      'All that differs: in the documents, in their order, and in the code, by path. Something, where the hashes of the versions differ.',
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
    peak_equity: z.number().openapi({ description: 'Highest equity at a close.' }),
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
        description: 'Times of recent executions, ms, if `repeated_execution` is limited.',
      }),
  })
  .openapi('RiskState', {
    description: 'State of the loss limits and of `repeated_execution` of a session.',
  });

/** Absent in sessions recorded by version 0.1.0. */
export const Carry = z
  .strictObject({
    marks: z.record(z.string(), z.number()).openapi({
      description: 'Prices at which positions are valued.',
    }),
    risk: RiskState,
  })
  .optional()
  .openapi({ description: 'State that a session inherits when it continues this account.' });

const Session = z
  .strictObject({
    deployment_id: z.string(),
    version: z.int(),
    status: z.enum(['running', 'halted', 'failed', 'ruined']),
    time: time.nullable().openapi({ description: 'Of the newest bars; null before the first.' }),
    seq: z.int().openapi({ description: 'The newest order event of the session.' }),
    cash: z.number(),
    equity: z.number().openapi({ description: 'At the newest closes.' }),
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
          weight: z.number().optional().openapi({ description: 'Of equity, for a target.' }),
          limit: z.number().optional(),
          stop: z.number().optional(),
          filled: z.number(),
          triggered: z.boolean(),
          client_order_id: z.string().optional().openapi({ description: 'At an exchange.' }),
          pending_cancel: z.literal(true).optional(),
        }),
      )
      .openapi({ description: 'The orders that may still be filled, oldest first.' }),
    carry: Carry,
  })
  .openapi('PaperSession', {
    description: 'A session, on paper or in production, as it was recorded last.',
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
    versions: z.array(sha256).openapi({ description: 'The hash of each, from version 1.' }),
    sessions: z.record(z.string(), Session).openapi({
      description: 'Sessions, on paper and in production, that have not ended, by `task_id`.',
    }),
    halted: z
      .strictObject({ halt_id: z.string(), by: z.string(), reason: z.string(), at: time })
      .nullable()
      .openapi({ description: 'The halt of this bot that is in force.' }),
  })
  .openapi('BotState', { description: 'What the events of a bot come to.' });

export type BotState = z.infer<typeof State>;

export const stateHash = sha256.openapi({
  description: 'SHA-256 of the state in canonical JSON (RFC 8785).',
});

const seq = z.coerce.number().int();

/** Without the example of `time`: two of these at once would be too many. */
export const optionalTime = z.iso
  .datetime({ error: 'must be a time in UTC, such as 2026-01-02T03:04:05Z' })
  .optional();

export const getBotSnapshot = defineRoute({
  ...reading,
  method: 'get',
  path: '/bots/{bot_ref}/state/snapshot',
  operationId: 'getBotSnapshot',
  summary: 'Show the state of a bot, now or at another moment',
  request: {
    params: botPath,
    query: z
      .strictObject({
        at_seq: seq.min(1).optional().openapi({ description: 'After this event.', example: 2 }),
        at: optionalTime.openapi({ description: 'As it was recorded by then.' }),
      })
      .refine(({ at_seq, at }) => at_seq === undefined || at === undefined, {
        error: 'excludes at_seq',
        path: ['at'],
      }),
  },
  responses: {
    200: answer(
      'The state.',
      z
        .strictObject({
          seq: z.int().openapi({ description: 'The last event that is in it.' }),
          head_seq: z
            .int()
            .openapi({ description: 'Sequence number of the newest event in the log.' }),
          in_doubt: z.strictObject({ first_seq: z.int(), last_seq: z.int() }).optional().openapi({
            description:
              'Only with `at`, if a clock was wrong: the events whose times do not show whether they were recorded before `at`. Events up to `seq` are included in the state. Use `at_seq` for an exact answer.',
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
    seq: z.int().openapi({ description: 'From 1 without gaps: the only order of events.' }),
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
  after_seq: seq.min(0).default(0).openapi({ description: 'Those after this one.' }),
  kind: z
    .string()
    .regex(/^[a-z_.]+(,[a-z_.]+){0,99}$/, 'must be kinds such as bot.created, joined by commas')
    .optional()
    .openapi({ description: 'Only these, joined by commas.' }),
  run_id: z.string().min(1).max(128).optional().openapi({
    description: 'Only those of this run: the `task_id` of a backtest or a paper session.',
  }),
};

export const listBotEvents = defineRoute({
  ...reading,
  method: 'get',
  path: '/bots/{bot_ref}/state/events',
  operationId: 'listBotEvents',
  summary: 'Read the events of a bot',
  description:
    'In the order in which they were recorded. Asking on with `next_after_seq` gets every event once, whoever writes meanwhile.',
  request: {
    params: botPath,
    query: z.strictObject({
      ...eventsQuery,
      until_seq: seq.min(0).optional().openapi({ description: 'None after this one.' }),
      last: z.enum(['true', 'false']).optional().openapi({
        description: 'Of all those, the last ones in place of the first; in the same order.',
      }),
      limit: pageQuery.limit,
    }),
  },
  responses: {
    200: answer(
      'Events.',
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
    'Server-sent events, each with its seq as `id` and the event as JSON in `data`; a comment every 15 seconds. It ends when the server stops, or the token does: go on with `Last-Event-ID`. An administrator may have 100 streams open, of bots and tasks together.',
  request: {
    params: botPath,
    query: z.strictObject(eventsQuery),
    headers: z.object({
      'last-event-id': z
        .string()
        .regex(/^\d{1,15}$/, 'must be the id of an event of this stream')
        .optional()
        .openapi({ description: 'The last event that was received; goes before `after_seq`.' }),
    }),
  },
  responses: {
    200: {
      description: 'Events, as they are recorded.',
      content: { 'text/event-stream': { schema: z.string() } },
    },
  },
  errors: ['not_found', 'rate_limited'],
});
