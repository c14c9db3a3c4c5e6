import { z } from '@hono/zod-openapi';
import {
  actorName,
  administrator,
  botPath,
  defineRoute,
  jsonBody,
  jsonResponse,
  page,
  pageQuery,
  searchText,
  sha256,
  time,
} from './http.ts';
import { BotDeployment, EffectiveHalt } from './tasks.ts';

const reading = { tags: ['Bots'], security: administrator('read') };
const writing = { tags: ['Bots'], security: administrator('write') };

export const BotKind = z.enum(['trading', 'research']);
export const BotStatus = z
  .enum(['draft', 'active', 'archived'])
  .describe('A bot is a draft until it is first deployed. An archived bot is kept but cannot run.');

export const Document = z.record(z.string(), z.unknown()).openapi('BotDocument', {
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

export const Files = z.record(z.string(), z.string());

const files = Files.optional().describe(
  'Files of the spec as texts, by path relative to the spec; at most 32. The code of a custom strategy, if the server has the setting `custom_code`: the module in `strategy.module` and everything that it imports, at most 96 KiB in total. The ONNX files in `ml_models` as base64, at most 512 KiB in total before encoding.',
);

export const BotInput = z
  .union([
    z.strictObject({ document: Document, files }),
    z.strictObject({
      yaml: z.string().describe('The spec as the text of a YAML or JSON file.'),
      files,
    }),
  ])
  .openapi('BotInput', {
    description:
      'A spec whose data are in the catalogue of the server (`catalog://NAME`) and whose strategy is built in or included in `files`. The pointers of an `invalid_spec` error refer to the spec.',
  });

export type BotInput = z.infer<typeof BotInput>;

const summary = {
  id: z.string().describe('Permanent id, made by the server. Paths accept the id or the slug.'),
  name: z.string(),
  slug: z.string(),
  kind: BotKind,
  status: BotStatus,
  current_version: z.int(),
};

export const BotSummary = z.strictObject(summary).openapi('BotSummary');

export type BotSummary = z.infer<typeof BotSummary>;

const Activity = z
  .strictObject({
    running: z.int().describe('Number of deployments that are pending or running.'),
    halted: z
      .enum(['bot', 'all'])
      .nullable()
      .describe('Scope of the halt in force; null if the bot is not halted.'),
    last: z
      .union([BotDeployment, z.null()])
      .describe('The newest deployment that has ended; null if none has.'),
    sessions: z
      .array(
        z.strictObject({
          task_id: z.string(),
          recorded_at: time,
          time: time.nullable().describe('Opening time of the newest bars.'),
          equity: z.number(),
          day_start_equity: z
            .number()
            .nullable()
            .describe('Equity at the last close of the previous day; null if unknown.'),
          gross_exposure: z
            .number()
            .nullable()
            .describe('Value of all positions, account currency; null if unknown.'),
          working_orders: z.int(),
        }),
      )
      .describe('Trading sessions that have not ended, newest first.'),
  })
  .openapi('BotActivity');

export const BotListItem = z
  .strictObject({
    ...summary,
    activity: Activity.optional().describe('Only with `include=activity`.'),
  })
  .openapi('BotListItem');

export type BotListItem = z.infer<typeof BotListItem>;

export const BotDetail = z
  .strictObject({
    ...summary,
    document: Document,
    version_hash: sha256.describe(
      'SHA-256 of the document in canonical JSON (RFC 8785). For a version with code, SHA-256 of the canonical JSON of `{bundle, spec}`: the `bundle_hash` and the hash of the document.',
    ),
    created_at: time,
    updated_at: time,
    active_deployments: z
      .array(BotDeployment)
      .describe(
        'Pending and running deployments, newest first, at most 100. They do not change the `ETag`.',
      ),
    active_deployment_count: z.int().describe('Number of all pending and running deployments.'),
    halted: EffectiveHalt.nullable().describe(
      'The halt in force: a halt of all bots if there is one, else the halt of this bot, else null. It does not change the `ETag`.',
    ),
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
      kind: BotKind.optional(),
      status: BotStatus.optional(),
      q: searchText(120)
        .optional()
        .describe('Part of the slug or the name, in upper or lower case.'),
      ids: z
        .string()
        .regex(/^[0-9a-f-]{36}(,[0-9a-f-]{36}){0,99}$/, 'must be ids, joined by commas')
        .optional()
        .describe('Only the bots with these ids, at most 100, joined by commas.'),
      running: z
        .literal('true')
        .optional()
        .describe('Only bots with a deployment that is pending or running.'),
      include: z
        .enum(['activity'])
        .optional()
        .describe(
          'Adds `activity` to each bot: its running deployments, its halt and its last result.',
        ),
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
      'if-none-match': z.string().optional().describe('`ETag` of the copy that the caller has.'),
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

const version = {
  version: z.int(),
  hash: sha256,
  bundle_hash: sha256
    .nullable()
    .describe(
      'Hash of the files of the version: SHA-256 of the canonical JSON of an object with the SHA-256 of each file by path. Null without files.',
    ),
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

export const Change = z
  .strictObject({
    pointer: z.string().describe('Location in the document, as a JSON pointer (RFC 6901).'),
    kind: z.enum(['added', 'removed', 'changed']),
    from: z.unknown().optional().describe('Absent for an addition.'),
    to: z.unknown().optional().describe('Absent for a removal.'),
  })
  .openapi('BotChange');

const FileChange = z
  .strictObject({
    file: z.string().describe('Path relative to the spec.'),
    kind: z.enum(['added', 'removed', 'changed']),
    from: sha256.optional().describe('SHA-256; absent for an added file.'),
    to: sha256.optional().describe('SHA-256; absent for a removed file.'),
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
