import { z } from '@hono/zod-openapi';
import { optionalTime, sha256, State, stateHash } from './bots.ts';
import { administrator, answer, defineRoute, id, json, time } from './http.ts';

const reading = { tags: ['Bots'], security: administrator('read') };

const botPath = z.strictObject({ bot_ref: id('sma-crossover') });

export const EXAMPLE_SESSION_ID = '0198c0de-0000-7000-8000-00000000f001';

const runId = z.string().min(1).max(128).openapi({ description: '`task_id` of a paper session.' });

const fault = z
  .strictObject({
    seq: z.int(),
    fault: z.enum(['missing', 'altered', 'not_linked', 'beyond_head', 'wrong_snapshot']),
  })
  .nullable()
  .openapi({ description: 'The first event that is not as it was written.' });

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
    description: 'To which moment; without one, to the last event. Or a run that is made again.',
  });

const BotReplay = z
  .strictObject({
    seq: z.int().openapi({ description: 'The last event that is good; 0 for none.' }),
    hash: sha256.openapi({ description: 'Of that event.' }),
    state: State.nullable(),
    state_hash: stateHash.nullable(),
    verified: z.boolean().openapi({ description: 'Whether every hash on the way holds.' }),
    fault,
  })
  .openapi('BotReplay');

export type BotReplay = z.infer<typeof BotReplay>;

const session = {
  run_id: z.string(),
  bot_id: z.string(),
  version: z.int().openapi({ description: 'Of the session.' }),
};

const eventSeq = z
  .int()
  .nullable()
  .openapi({ description: 'Of the recorded event in the log of the bot.' });

const orderEvent = z.record(z.string(), z.unknown()).nullable().openapi({
  description: 'As a line of `events.ndjson` of a backtest; null where there is none.',
});

const RunReplay = z
  .strictObject({
    ...session,
    matches: z.boolean(),
    bars: z.int().openapi({ description: 'Recorded ones, of all instruments.' }),
    events: z.int().openapi({ description: 'Recorded order events.' }),
    events_hash: sha256.nullable().openapi({
      description: 'Of the events that the rerun made, as `hashes.events` of a backtest.',
    }),
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
  summary: 'Make the state of a bot, or what one of its paper sessions did, anew from its events',
  description:
    'Reads every event from the first and trusts no snapshot. Where an event is not as it was written, it stops before it and says so in `fault`. With `run_id`, it reads the events from the first of that session, runs its strategy over the recorded bars again and tells the first order event that is another. Nothing is changed.',
  request: {
    params: botPath,
    body: json(ReplayRequest, {
      all: {},
      part: { until_seq: 2 },
      run: { run_id: EXAMPLE_SESSION_ID },
    }),
  },
  responses: {
    200: answer(
      'The state after the last event that is good; or whether the session did the same again.',
      z.union([BotReplay, RunReplay]),
    ),
  },
  errors: ['not_found', 'conflict', 'overloaded'],
});

const ParityRequest = z
  .strictObject({
    run_id: runId.optional(),
    version: z.int().min(1).optional().openapi({ description: 'By default that of the session.' }),
    params: z
      .record(z.string(), z.union([z.number(), z.boolean(), z.string()]))
      .optional()
      .openapi({ description: 'In place of those of the session.' }),
  })
  .openapi('ParityRequest', {
    description: 'By default the newest paper session, and a backtest of the same.',
  });

const side = z
  .record(z.string(), z.unknown())
  .nullable()
  .openapi({ description: 'A bar, or an order event; null where there is none.' });

const BotParity = z
  .strictObject({
    ...session,
    running: z
      .boolean()
      .openapi({ description: 'The session goes on; it is compared as far as it has come.' }),
    against: z.enum(['catalogue', 'recorded_bars']).openapi({
      description:
        'What the backtest went over. Of a live market there are no bars but those recorded.',
    }),
    equal: z.boolean(),
    bars: z.int().openapi({ description: 'Of all instruments, before the first difference.' }),
    events: z.int().openapi({ description: 'Order events before the first difference.' }),
    first_difference: z
      .strictObject({
        cause: z
          .enum([
            'data',
            'gap',
            'version',
            'params',
            'engine',
            'halt',
            'stop',
            'failure',
            'fill',
            'order',
          ])
          .openapi({
            description:
              '`data`: a bar is another; `gap`: a bar is there on one side only; `version`, `params`, `engine`: the backtest is of others; `halt`, `stop`, `failure`: one of them ended earlier; `fill`, `order`: the same bars, and yet another fill, or another order.',
          }),
        time: time.openapi({ description: 'Of the bars at which the two part.' }),
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
    'The backtest is of the same version, parameters and window, over the bars that the catalogue has now. Tells the first difference and its cause. Where an event is not as it was written, `fault` says so and nothing is compared.',
  request: {
    params: botPath,
    body: json(ParityRequest, {
      newest: {},
      other: { run_id: EXAMPLE_SESSION_ID, params: { fast: 12 } },
    }),
  },
  responses: { 200: answer('What is equal, and where they part.', BotParity) },
  errors: ['not_found', 'conflict', 'invalid_spec', 'overloaded'],
});
