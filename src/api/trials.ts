import { z } from '@hono/zod-openapi';
import { administrator, defineRoute, jsonResponse, page, pageQuery } from './http.ts';

const instant = z.string().openapi({ format: 'date-time' });

const entry = {
  seq: z.int(),
  recorded_at: instant,
  by: z
    .string()
    .describe('Caller that created the task.')
    .openapi({ example: 'administrator:ada' }),
  lock: z.string().describe('Digest of everything that decides the trial but its parameters.'),
  family: z.string().describe('Name that the strategy declares.'),
  symbols: z.array(z.string()),
  bar_ms: z.number().describe('Length of a bar in milliseconds.'),
  from: instant.describe('First bar.'),
  to: instant.describe('Last bar.'),
  prev_hash: z.string().describe('`hash` of the previous entry; 64 zeros in the first entry.'),
  hash: z.string().describe('SHA-256, in hex, of the other fields in canonical JSON (RFC 8785).'),
};

const TrialsEntry = z
  .strictObject({
    ...entry,
    kind: z.literal('trials'),
    count: z.int(),
    trials: z
      .string()
      .describe(
        'In base64, 16 bytes for each trial: 8 bytes that identify its parameters, and its annualized Sharpe ratio as little-endian float64, NaN if it is undefined.',
      ),
  })
  .openapi('TrialsEntry');

const OpeningEntry = z
  .strictObject({ ...entry, kind: z.literal('holdout_opened') })
  .openapi('HoldoutOpeningEntry', {
    description: 'A backtest over the holdout of the spec.',
  });

const TrialEntry = z.union([TrialsEntry, OpeningEntry]).openapi('TrialEntry');

export const listTrials = defineRoute({
  method: 'get',
  path: '/trials',
  operationId: 'listTrials',
  summary: 'Read the trial ledger, oldest entry first',
  description:
    'Each backtest of any user or agent is recorded once, however often it is repeated. Entries that were tampered with are returned unchanged, so that the reader can detect them by their hashes.',
  tags: ['Tasks'],
  security: administrator('read'),
  request: {
    query: z.strictObject({
      after_seq: z.coerce
        .number()
        .int()
        .min(0)
        .default(0)
        .describe('Sequence number of the last known entry: `next_cursor` of the previous page.'),
      limit: pageQuery.limit,
    }),
  },
  responses: {
    200: jsonResponse(
      'A page of the ledger.',
      page(TrialEntry).extend({
        head: z
          .strictObject({ seq: z.int(), hash: z.string() })
          .describe('The last entry of the ledger at the time of the response.'),
      }),
    ),
  },
  errors: ['trials_tampered'],
});
