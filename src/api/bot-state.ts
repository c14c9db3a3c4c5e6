import { z } from '@hono/zod-openapi';
import { BotKind, BotStatus } from './bots.ts';
import {
  administrator,
  botPath,
  defineRoute,
  jsonResponse,
  pageQuery,
  sha256,
  time,
} from './http.ts';

const reading = { tags: ['Bots'], security: administrator('read') };

export const RiskState = z
  .strictObject({
    peak_equity: z.number().describe('Highest equity at the close of a bar.'),
    day_start_equity: z.number().describe('Equity at the last close before `day`.'),
    day: z.string().nullable().describe('UTC date; null before the first bars.'),
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
      .describe(
        'Times of recent executions, in milliseconds since the Unix epoch, if `repeated_execution` is limited.',
      ),
  })
  .openapi('RiskState', {
    description: 'State of the loss limits and of `repeated_execution` of a session.',
  });

export const Carry = z
  .strictObject({
    marks: z.record(z.string(), z.number()).describe('Valuation prices of positions, by symbol.'),
    risk: RiskState,
  })
  .optional()
  .describe(
    'State that the next session of this account inherits. Absent in sessions recorded by version 0.1.0.',
  );

const Session = z
  .strictObject({
    deployment_id: z.string(),
    version: z.int(),
    status: z.enum(['running', 'halted', 'failed', 'ruined']),
    time: time.nullable().describe('Opening time of the newest bars; null before the first bars.'),
    seq: z.int().describe('Sequence number of the newest order event.'),
    cash: z.number(),
    equity: z.number().describe('Valued at the newest closes.'),
    positions: z.record(z.string(), z.number()).describe('Units, by symbol.'),
    working: z
      .array(
        z.strictObject({
          order: z.int(),
          symbol: z.string(),
          side: z.enum(['buy', 'sell']),
          type: z.enum(['market', 'limit', 'stop', 'stop_limit', 'trailing_stop']),
          time_in_force: z.enum(['gtc', 'day', 'ioc', 'fok']),
          quantity: z.number().optional(),
          weight: z.number().optional().describe('Target share of equity.'),
          limit: z.number().optional(),
          stop: z.number().optional(),
          filled: z.number(),
          triggered: z.boolean(),
          client_order_id: z.string().optional().describe('Id of the order at the exchange.'),
          pending_cancel: z.literal(true).optional(),
        }),
      )
      .describe('Orders that may still be filled, oldest first.'),
    messages: z
      .int()
      .optional()
      .describe(
        'Number of orders and cancels in the newest second of bar time; absent if there were none.',
      ),
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
    kind: BotKind,
    status: BotStatus,
    version: z.int(),
    created_at: time,
    updated_at: time,
    versions: z.array(sha256).describe('Hash of each version, from version 1.'),
    sessions: z
      .record(z.string(), Session)
      .describe('Paper and production sessions that have not ended, by `task_id`.'),
    halted: z
      .strictObject({ halt_id: z.string(), by: z.string(), reason: z.string(), at: time })
      .nullable()
      .describe('The halt of this bot in force; null if the bot is not halted.'),
  })
  .openapi('BotState', { description: 'State of a bot, computed from its events.' });

export type BotState = z.infer<typeof State>;

export const stateHash = sha256.describe('SHA-256 of the state in canonical JSON (RFC 8785).');

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
        at: optionalTime.describe('State recorded by this time.'),
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
          seq: z.int().describe('The last event included in the state.'),
          head_seq: z.int().describe('Sequence number of the newest event in the log.'),
          in_doubt: z
            .strictObject({ first_seq: z.int(), last_seq: z.int() })
            .optional()
            .describe(
              'Only with `at`, if a clock was wrong: events whose times do not show whether they were recorded before `at`. The state includes events up to `seq`. Use `at_seq` for an exact answer.',
            ),
          state: State,
          state_hash: stateHash,
        })
        .openapi('BotSnapshot'),
    ),
  },
  errors: ['not_found', 'archived'],
});

export const BotEvent = z
  .strictObject({
    bot_id: z.string(),
    seq: z
      .int()
      .describe('Starts at 1 for each bot, without gaps, and alone defines the order of events.'),
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
  after_seq: seq.min(0).default(0).describe('Only events after this sequence number.'),
  kind: z
    .string()
    .regex(/^[a-z_.]+(,[a-z_.]+){0,99}$/, 'must be kinds such as bot.created, joined by commas')
    .optional()
    .describe('Only events of these kinds, joined by commas.'),
  run_id: z
    .string()
    .min(1)
    .max(128)
    .optional()
    .describe(
      'Only events of this run: the `task_id` of a backtest, session or other task of the bot.',
    ),
};

export const listBotEvents = defineRoute({
  ...reading,
  method: 'get',
  path: '/bots/{bot_ref}/state/events',
  operationId: 'listBotEvents',
  summary: 'Read the events of a bot',
  description:
    'Returns events in the order in which they were recorded. Following `next_after_seq` returns every event exactly once, even while events are being added. A range that begins with archived events fails with `archived`.',
  request: {
    params: botPath,
    query: z.strictObject({
      ...eventsQuery,
      until_seq: seq.min(0).optional().describe('Only events up to this sequence number.'),
      last: z
        .enum(['true', 'false'])
        .optional()
        .describe('`true` returns the last events instead of the first, in the same order.'),
      limit: pageQuery.limit,
    }),
  },
  responses: {
    200: jsonResponse(
      'The events.',
      z
        .strictObject({
          items: z.array(BotEvent),
          head_seq: z.int().describe('Sequence number of the newest event in the log.'),
          archived_seq: z
            .int()
            .describe(
              'With `last`: the last archived event, if the answer lacks events up to it. Otherwise 0.',
            ),
          next_after_seq: z.int().describe('`after_seq` of the next request.'),
        })
        .openapi('BotEvents'),
    ),
  },
  errors: ['not_found', 'archived'],
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
        .describe('Sequence number of the last event received; overrides `after_seq`.'),
    }),
  },
  responses: {
    200: {
      description: 'Events as they are recorded.',
      content: { 'text/event-stream': { schema: z.string() } },
    },
  },
  errors: ['not_found', 'archived', 'rate_limited'],
});
