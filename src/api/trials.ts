import { z } from '@hono/zod-openapi';
import { administrator, defineRoute, jsonBody, jsonResponse, sha256, text, time } from './http.ts';
import { chainPage, chainQuery } from './hash-chain.ts';

const instant = z.string().openapi({ format: 'date-time' });

const PACKED =
  'In base64, 16 bytes for each trial: 8 bytes that identify its parameters, and its annualized Sharpe ratio as little-endian float64, NaN if it is undefined.';

const entry = {
  seq: z.int(),
  recorded_at: instant,
  by: z
    .string()
    .describe('Caller that created the task or ran the search.')
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
    trials: z.string().describe(PACKED),
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
    'Each backtest of any user or agent, and each trial of a search, is recorded once, however often it is repeated. Entries that were tampered with are returned unchanged, so that the reader can detect them by their hashes.',
  tags: ['Tasks'],
  security: administrator('read'),
  request: {
    query: z.strictObject(chainQuery),
  },
  responses: {
    200: jsonResponse('A page of the ledger.', chainPage(TrialEntry)),
  },
  errors: ['trials_tampered'],
});

/** Requests that may have larger bodies than others. */
export const TRIALS_UPLOAD = /^POST \/trials$/;

/** Maximum number of trials in one request, which adds at most one entry. */
export const MOST_TRIALS = 10_000;

/** Longer than any bar; larger numbers would overflow sums of times. */
const MOST_BAR_MS = 100 * 366 * 86_400_000;

const NewTrials = z
  .strictObject({
    lock: sha256.describe(
      'Digest of everything that determines the trials, except their parameters.',
    ),
    family: text(200).describe('Name that the strategy declares.'),
    symbols: z.array(text(200)).min(1).max(5000),
    bar_ms: z.int().min(1).max(MOST_BAR_MS).describe('Length of a bar in milliseconds.'),
    from: time.describe('First bar.'),
    to: time.describe('Last bar.'),
    trials: z
      .base64()
      .min(1)
      .max(Math.ceil((MOST_TRIALS * 16) / 3) * 4)
      .describe(PACKED),
  })
  .refine(({ from, to }) => Date.parse(from) <= Date.parse(to), {
    error: 'must not be before `from`',
    path: ['to'],
  })
  .openapi('NewTrials');

export const recordTrials = defineRoute({
  method: 'post',
  path: '/trials',
  operationId: 'recordTrials',
  summary: 'Count the trials of a search',
  description:
    'Commands such as `backtest sweep --on server` report the trials of a search. A trial that is recorded already does not count again.',
  tags: ['Tasks'],
  security: administrator('write'),
  request: {
    body: jsonBody(NewTrials, {
      trial: {
        lock: 'e'.repeat(64),
        family: 'sma_crossover',
        symbols: ['SPX'],
        bar_ms: 86_400_000,
        from: '2000-01-03T00:00:00.000Z',
        to: '2020-04-17T00:00:00.000Z',
        trials: 'AAECAwQFBgcAAAAAAADgPw==',
      },
    }),
  },
  responses: { 204: { description: 'The trials are recorded.' } },
  errors: ['trials_tampered'],
});
