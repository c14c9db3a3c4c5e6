import { z } from '@hono/zod-openapi';
import { RUN_FIGURES, type FigureName } from '../base/run-figures.ts';
import {
  administrator,
  botPath,
  defineRoute,
  jsonBody,
  jsonResponse,
  sha256,
  time,
} from './http.ts';
import { eventSeq, EXAMPLE_SESSION_ID, fault, orderEvent, runId, session } from './replay.ts';

const value = z.union([z.number(), z.boolean(), z.string()]);

const ForkRequest = z
  .strictObject({
    run_id: runId.optional(),
    at_seq: z
      .int()
      .min(1)
      .describe('Sequence number of an event. The parameters change after the bars up to it.'),
    params: z
      .record(z.string(), value)
      .describe('Parameters that replace those of the session from the next bars on.'),
  })
  .openapi('ForkRequest', { description: 'By default, the newest paper session is forked.' });

const figures = z
  .array(
    z.strictObject({
      figure: z.enum(Object.keys(RUN_FIGURES) as [FigureName, ...FigureName[]]),
      values: z.array(z.number().nullable()).readonly(),
      best: z
        .array(z.int())
        .readonly()
        .describe('Indexes of the better values; empty if none is better.'),
    }),
  )
  .readonly()
  .describe('Values are those of the session and of the fork.');

const curve = z.array(z.array(z.number().nullable()).readonly()).readonly();

const Comparison = z
  .strictObject({
    at: z.strictObject({
      time: time.describe('Opening time of the last bars before the change.'),
      state_hash: sha256.describe('Hash of the state of the session after these bars.'),
      verified_seq: eventSeq.describe(
        'The newest recorded state up to there, which both runs reach; null if none was recorded.',
      ),
    }),
    params: z
      .array(z.strictObject({ name: z.string(), session: value, fork: value }))
      .readonly()
      .describe('All parameters of the strategy.'),
    simulates_fills: z
      .boolean()
      .describe(
        'Whether the session traded at an exchange. The fills of the fork after the change are then simulated from the bars.',
      ),
    steps: z
      .strictObject({ before: z.int(), after: z.int() })
      .describe('Number of bar times before and after the change.'),
    events: z
      .strictObject({ session: z.int(), fork: z.int() })
      .describe('Number of order events after the change.'),
    first_difference: z
      .strictObject({ session: orderEvent, fork: orderEvent })
      .nullable()
      .describe('The first order event that differs; null if all are equal.'),
    failure: z
      .string()
      .nullable()
      .describe('Why the strategy failed in the fork; null if it did not.'),
    figures: figures.describe('Figures over the whole session.'),
    after: figures.describe('Figures over the bars after the change.'),
    curves: z.strictObject({
      time: z.array(z.number()).readonly().describe('Seconds since the Unix epoch.'),
      growth: curve.describe('Growth of the session and of the fork, as a share.'),
      drawdown: curve.describe('Deepest drawdown since the previous time.'),
    }),
  })
  .openapi('ForkComparison');

const BotFork = z
  .strictObject({
    schema: z.literal('service-local/fork/v1'),
    ...session,
    at_seq: z.int(),
    running: z
      .boolean()
      .describe('Whether the session is still running; its bars so far are used.'),
    comparison: Comparison.nullable().describe('Null if the log has a fault.'),
    fault,
  })
  .openapi('BotFork');

export type BotFork = z.infer<typeof BotFork>;

export const forkBot = defineRoute({
  tags: ['Bots'],
  security: administrator('read'),
  method: 'post',
  path: '/bots/{bot_ref}/fork',
  operationId: 'forkBot',
  summary: 'Run a session again with other parameters after an event',
  description:
    'Runs the session again over its recorded bars, with its own parameters and with others after the bars up to `at_seq`, and compares both. The account and the working orders at the change are those of the session. Fills after the change are simulated from the bars. Nothing is changed or recorded.',
  request: {
    params: botPath,
    body: jsonBody(ForkRequest, {
      fork: { run_id: EXAMPLE_SESSION_ID, at_seq: 6, params: { fast: 12 } },
    }),
  },
  responses: { 200: jsonResponse('The session and its fork.', BotFork) },
  errors: ['not_found', 'archived', 'conflict', 'invalid_spec', 'overloaded'],
});
