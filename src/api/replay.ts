import { PARITY_CAUSES } from '../base/parity-causes.ts';
import { z } from '@hono/zod-openapi';
import { optionalTime, State, stateHash } from './bot-state.ts';
import {
  administrator,
  botPath,
  defineRoute,
  jsonBody,
  jsonResponse,
  sha256,
  time,
} from './http.ts';

const reading = { tags: ['Bots'], security: administrator('read') };

export const EXAMPLE_SESSION_ID = '0198c0de-0000-7000-8000-00000000f001';

export const runId = z.string().min(1).max(128).describe('`task_id` of a paper session.');

export const fault = z
  .strictObject({
    seq: z.int(),
    fault: z.enum(['missing', 'altered', 'not_linked', 'beyond_head', 'wrong_snapshot']),
  })
  .nullable()
  .describe('The first fault in the log; null if it is intact.');

const ReplayRequest = z
  .strictObject({
    until_seq: z.int().min(1).optional(),
    until: optionalTime,
    run_id: runId.optional(),
  })
  .refine(({ until_seq, until }) => until_seq === undefined || until === undefined, {
    error: 'excludes until_seq',
    path: ['until'],
  })
  .refine(
    ({ until_seq, until, run_id }) =>
      run_id === undefined || (until_seq === undefined && until === undefined),
    { error: 'excludes until_seq and until', path: ['run_id'] },
  )
  .openapi('ReplayRequest', {
    description:
      'The moment up to which events are read, by default the last event; or a run to repeat.',
  });

const BotReplay = z
  .strictObject({
    seq: z.int().describe('Sequence number of the last valid event; 0 if the first is invalid.'),
    hash: sha256.describe('Hash of that event.'),
    state: z.union([State, z.null()]),
    state_hash: stateHash.nullable(),
    archived_seq: z
      .int()
      .describe(
        'The last archived event, from which the state was taken; 0 if no event is archived. Only `events verify` reads archived events.',
      ),
    verified: z.boolean().describe('Whether every hash up to there is valid.'),
    fault,
  })
  .openapi('BotReplay');

export type BotReplay = z.infer<typeof BotReplay>;

export const session = {
  run_id: z.string(),
  bot_id: z.string(),
  version: z.int().describe('Version of the bot that the session runs.'),
};

export const eventSeq = z
  .int()
  .nullable()
  .describe('Sequence number of the recorded event in the log of the bot.');

export const orderEvent = z
  .record(z.string(), z.unknown())
  .nullable()
  .describe(
    'An order event in the format of `events.ndjson` of a backtest; null if that side has ended.',
  );

const RunReplay = z
  .strictObject({
    ...session,
    matches: z.boolean(),
    bars: z.int().describe('Number of recorded bars of all instruments.'),
    events: z.int().describe('Number of recorded order events.'),
    events_hash: sha256
      .nullable()
      .describe('Hash of the events of the re-run, computed like `hashes.events` of a backtest.'),
    first_difference: z
      .strictObject({ seq: eventSeq, recorded: orderEvent, replayed: orderEvent })
      .nullable(),
    fault,
  })
  .openapi('RunReplay');

export type RunReplay = z.infer<typeof RunReplay>;

export const replayBot = defineRoute({
  ...reading,
  method: 'post',
  path: '/bots/{bot_ref}/replay',
  operationId: 'replayBot',
  summary: 'Rebuild the state of a bot from its events, or re-run one of its paper sessions',
  description:
    'Reads every event that is not archived and ignores snapshots. At an event that was changed, it stops and returns `fault`. With `run_id`, it runs the strategy of that session again over the recorded bars and returns the first order event that differs. Nothing is changed.',
  request: {
    params: botPath,
    body: jsonBody(ReplayRequest, {
      all: {},
      part: { until_seq: 2 },
      run: { run_id: EXAMPLE_SESSION_ID },
    }),
  },
  responses: {
    200: jsonResponse(
      'The state after the last valid event, or the result of the re-run.',
      z.union([BotReplay, RunReplay]),
    ),
  },
  errors: ['not_found', 'archived', 'conflict', 'overloaded'],
});

const ParityRequest = z
  .strictObject({
    run_id: runId.optional(),
    version: z.int().min(1).optional().describe('By default the version of the session.'),
    params: z
      .record(z.string(), z.union([z.number(), z.boolean(), z.string()]))
      .optional()
      .describe('Parameters that replace those of the session.'),
  })
  .openapi('ParityRequest', {
    description: 'By default the newest paper session and its version and parameters.',
  });

const side = z
  .record(z.string(), z.unknown())
  .nullable()
  .describe('A bar or an order event; null if that side has ended.');

const BotParity = z
  .strictObject({
    ...session,
    running: z
      .boolean()
      .describe('Whether the session is still running; it is compared up to now.'),
    against: z
      .enum(['catalogue', 'recorded_bars'])
      .describe(
        'Bars used for the backtest. For a session of a live market, only recorded bars exist.',
      ),
    equal: z.boolean(),
    bars: z.int().describe('Number of bars of all instruments before the first difference.'),
    events: z.int().describe('Number of order events before the first difference.'),
    first_difference: z
      .strictObject({
        cause: z
          .enum(PARITY_CAUSES)
          .describe(
            '`data`: a bar differs; `gap`: a bar exists on one side only; `version`, `params`, `engine`: the backtest used another one; `halt`, `stop`, `failure`: one side ended earlier; `fill`, `order`: a fill or an order differs over the same bars.',
          ),
        time: time.describe('Time of the bars at the first difference.'),
        detail: z.string(),
        seq: eventSeq,
        recorded: side,
        backtest: side,
      })
      .nullable(),
    fault,
  })
  .openapi('BotParity');

export type BotParity = z.infer<typeof BotParity>;

export const compareBot = defineRoute({
  ...reading,
  method: 'post',
  path: '/bots/{bot_ref}/parity',
  operationId: 'compareBot',
  summary: 'Compare a paper session with a backtest of the same window',
  description:
    'Runs a backtest of the same version, parameters and window over the current bars of the catalogue, and returns the first difference and its cause. If an event was changed, nothing is compared and `fault` describes it.',
  request: {
    params: botPath,
    body: jsonBody(ParityRequest, {
      newest: {},
      other: { run_id: EXAMPLE_SESSION_ID, params: { fast: 12 } },
    }),
  },
  responses: { 200: jsonResponse('The comparison, with the first difference.', BotParity) },
  errors: ['not_found', 'archived', 'conflict', 'invalid_spec', 'overloaded'],
});
