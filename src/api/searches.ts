import { z } from '@hono/zod-openapi';
import {
  actorName,
  administrator,
  defineRoute,
  id,
  jsonBody,
  jsonResponse,
  sha256,
  text,
  time,
} from './http.ts';

export const EXAMPLE_SEARCH_ID = '0198c0de-0000-7000-8000-00000005ea2c';
export const EXAMPLE_INPUT = 'c'.repeat(64);

/** Requests that may have larger bodies than others. */
export const SEARCH_UPLOAD = /^(PUT \/searches\/[^/]+\/inputs\/|POST \/searches\/[^/]+\/shards$)/;

const reading = { tags: ['Searches'], security: administrator('read') };
const writing = { tags: ['Searches'], security: administrator('write') };

const searchPath = z.strictObject({ search_id: id(EXAMPLE_SEARCH_ID) });

const NewSearch = z
  .strictObject({
    digest: sha256.describe('Identifies the search, so that an interrupted one resumes.'),
    title: text(300).describe('Shown in lists.'),
    package: text(100).describe('Version of service-local of the client.'),
    has_code: z.boolean().describe('Whether the strategy is custom code.'),
  })
  .openapi('NewSearch');

const SearchReference = z.strictObject({ search_id: z.string() }).openapi('SearchReference');

const count = z.int().min(0);

const Search = z
  .strictObject({
    search_id: z.string(),
    digest: z.string(),
    title: z.string(),
    created_by: z.string().openapi({ example: 'administrator:ada' }),
    created_by_name: actorName,
    created_at: time,
    used_at: time.describe('Last request of the client; a week later, the search is deleted.'),
    queued: count.describe('Shards that wait for a worker.'),
    running: count,
    ended: count.describe('Shards with results.'),
    failed: count,
  })
  .openapi('Search');

export type Search = z.infer<typeof Search>;

const param = z.union([z.number(), z.boolean(), z.string()]);

const Trial = z
  .strictObject({
    index: count,
    params: z.record(z.string(), param),
    permutation: count.optional().describe('Number of the permutation of the bars.'),
    rung: count.optional().describe('Index of the setup; the last one by default.'),
  })
  .openapi('Trial');

const Shard = z
  .strictObject({
    id: sha256.describe('Digest of the input and the trials.'),
    input: sha256.describe('Digest of the input.'),
    trials: z.array(Trial).min(1).max(1000),
  })
  .openapi('Shard');

const EndedShard = z.strictObject({
  id: z.string(),
  result: z
    .strictObject({
      parquet: z
        .string()
        .describe('In base64, a Parquet file with a row of figures for each trial.'),
      errors: z.array(z.tuple([z.int(), z.string()])).describe('Rows and errors of failed trials.'),
      sums: count.describe('Number of columns with sums of returns.'),
    })
    .nullable(),
  error: z.strictObject({ message: z.string(), remedy: z.string().optional() }).nullable(),
});

export type EndedShard = z.infer<typeof EndedShard>;

export const openSearch = defineRoute({
  ...writing,
  method: 'post',
  path: '/searches',
  operationId: 'openSearch',
  summary: 'Start a search for parameters, or resume it',
  description:
    'Workers run the trials of a search in shards. The client chooses the trials, and collects their results. If the same caller opens the same search again, its existing search is returned. An administrator has at most 20 searches, each with at most 4,096 shards whose results the client has not received.',
  request: {
    body: jsonBody(NewSearch, {
      sweep: {
        digest: 'd'.repeat(64),
        title: 'sweep of sma-crossover',
        package: '0.1.0',
        has_code: false,
      },
    }),
  },
  responses: { 200: jsonResponse('The search.', SearchReference) },
  errors: ['conflict'],
});

export const listSearches = defineRoute({
  ...reading,
  method: 'get',
  path: '/searches',
  operationId: 'listSearches',
  summary: 'List the searches, oldest first',
  responses: {
    200: jsonResponse('All searches.', z.strictObject({ items: z.array(Search) })),
  },
});

export const deleteSearch = defineRoute({
  ...writing,
  method: 'delete',
  path: '/searches/{search_id}',
  operationId: 'deleteSearch',
  summary: 'Cancel a search, and delete its results',
  request: { params: searchPath },
  description: 'Only the owner and tokens with the scope `admin` may cancel a search.',
  responses: { 204: { description: 'Its workers stop within seconds.' } },
  errors: ['not_found'],
});

export const storeInput = defineRoute({
  ...writing,
  method: 'put',
  path: '/searches/{search_id}/inputs/{digest}/{place}',
  operationId: 'storeInput',
  summary: 'Store a part of the input of shards',
  description:
    'An input holds the bars, the strategy and the settings of trials. Its parts, joined in their order, are compressed by gzip. The inputs of all searches of an administrator have at most 16,384 parts.',
  request: {
    params: z.strictObject({
      ...searchPath.shape,
      digest: sha256.openapi({ example: EXAMPLE_INPUT }),
      place: z.coerce.number().int().min(0).openapi({ example: 0 }),
    }),
    body: jsonBody(
      z
        .strictObject({
          parts: z.int().min(1).max(10_000).describe('Number of parts of the input.'),
          data: z.base64().max(256 * 1024),
        })
        .openapi('InputPart'),
      { part: { parts: 1, data: 'AAAA' } },
    ),
  },
  responses: { 204: { description: 'The part is stored.' } },
  errors: ['conflict', 'not_found'],
});

export const queueShards = defineRoute({
  ...writing,
  method: 'post',
  path: '/searches/{search_id}/shards',
  operationId: 'queueShards',
  summary: 'Queue shards of a search',
  description:
    'A shard that waits, runs or has succeeded is not queued again; one that has failed is.',
  request: {
    params: searchPath,
    body: jsonBody(
      z
        .strictObject({
          shards: z.array(Shard).min(1).max(128),
          received: count.describe(
            'Id of the last event whose shard the client has received; the shard and earlier ones are deleted.',
          ),
        })
        .openapi('NewShards'),
      {
        shard: {
          received: 0,
          shards: [
            {
              id: 'e'.repeat(64),
              input: EXAMPLE_INPUT,
              trials: [{ index: 0, params: { fast: 10, slow: 30 } }],
            },
          ],
        },
      },
    ),
  },
  responses: { 204: { description: 'The shards wait for workers.' } },
  errors: ['conflict', 'not_found'],
});

export const followShards = defineRoute({
  ...reading,
  method: 'get',
  path: '/searches/{search_id}/results',
  operationId: 'followShards',
  summary: 'Follow the ends of shards',
  description:
    'Server-sent events, one for each shard that has ended, in the order of their ends. `Last-Event-ID` continues a stream. The stream ends if only workers of another version are left; the next request then gets `conflict`.',
  request: {
    params: searchPath,
    headers: z.object({
      'last-event-id': z
        .string()
        .regex(/^\d{1,15}$/)
        .optional(),
    }),
  },
  responses: {
    200: {
      description:
        'Events `shard`, each with the id of a shard and either its results or its error as JSON. While no shard runs, events `waiting` with the `reason` as text, every five seconds.',
      content: { 'text/event-stream': { schema: z.string() } },
    },
  },
  errors: ['conflict', 'not_found'],
});
