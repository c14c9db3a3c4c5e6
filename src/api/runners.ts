import { z } from '@hono/zod-openapi';
import { unpackColumns } from '../base/packed-columns.ts';
import {
  RUNNER_PROTOCOL,
  RUNNER_PROTOCOL_HEADER,
  RUNNER_VERSION_HEADER,
} from '../base/runner-protocol.ts';
import { Carry } from './bot-state.ts';
import { defineRoute, id, jsonBody, jsonResponse, searchText, time } from './http.ts';

export const EXAMPLE_DEPLOYMENT_ID = '0198c0de-0000-7000-8000-0000000000dd';

export const deploymentPath = z.strictObject({ deployment_id: id(EXAMPLE_DEPLOYMENT_ID) });

export const RunnerStatus = z.enum([
  'starting',
  'trading',
  'denying',
  'halting',
  'stopping',
  'ended',
]);

/** Symbols must be well-formed Unicode, because states are hashed as canonical JSON. */
const symbol = z
  .string()
  .min(1)
  .max(100)
  .refine((name) => name.isWellFormed(), 'must be Unicode');

export const endedOrders = z
  .array(
    z.strictObject({
      order: z.int(),
      symbol,
      verified: z.boolean().describe('Whether the venue reports that the order has ended.'),
    }),
  )
  .max(10_000);

/** Event kinds that a runner may add to the log of its bot; servers record all other kinds. */
const EVENT_KIND =
  /^(order|account|data|venue|clock)(\.[a-z_]+)+$|^strategy\.log$|^control\.(denying|halted|latch_lifted|epoch_set)$|^risk\.(thresholds_set|override_(granted|ended|used))$/;

/** Range of RFC 3339 times. */
const [FIRST_TIME, LAST_TIME] = [Date.parse('0001-01-01'), Date.parse('9999-12-31')];

const candle = z.tuple([z.number(), z.number(), z.number(), z.number(), z.number()]);
/** Bars are checked strictly, because re-runs of a session read them. */
const barsPayload = z.strictObject({ time, bars: z.record(symbol, candle) });
const timedCandle = z.tuple([z.number(), ...candle.def.items]);
/** Format of older runners. */
const warmUpRows = z.strictObject({ bars: z.record(symbol, z.array(timedCandle)) });
/** Number of columns of a bar, and maximum number of bars in an event. */
const [BAR_COLUMNS, MOST_WARM_UP_BARS] = [timedCandle.def.items.length, 4000];
/** `columns` are unpacked only in a batch of few events, see `refuseUnreadable`. Empty ones discard earlier bars. */
const warmUpColumns = z.strictObject({
  columns: z
    .record(symbol, z.string())
    .refine((columns) => Object.keys(columns).length <= 1, 'must have at most one symbol'),
  timeframe: z
    .string()
    .max(8)
    .regex(/^\d+(m|h|d|w|mo)$/)
    .optional(),
  continues: z.literal(true).optional(),
});
const warmUpPayload = z.union([warmUpRows, warmUpColumns]);

const WARM_UP_FAULT =
  'must be bars by symbol, each with time, open, high, low, close and volume; columns must be of at most one symbol';

/** Adds the first event whose columns cannot be unpacked. */
function refuseUnreadable(
  events: readonly z.infer<typeof SessionEvent>[],
  context: z.RefinementCtx,
): void {
  const at = events.findIndex(
    ({ kind, payload }) => kind === 'data.warm_up' && !isReadable(payload),
  );
  if (at === -1) return;
  context.addIssue({ code: 'custom', message: WARM_UP_FAULT, path: [at, 'payload'] });
}

function isReadable({ columns = {} }: { readonly columns?: unknown }): boolean {
  return Object.values(columns as Readonly<Record<string, string>>).every(isColumns);
}

function isColumns(text: string): boolean {
  try {
    unpackColumns(text, BAR_COLUMNS, MOST_WARM_UP_BARS);
    return true;
  } catch {
    return false;
  }
}

/** Accepts at least what a strategy can log at a bar. Pages and commands rely on this shape. */
const linesPayload = z.strictObject({ lines: z.array(z.string().max(500)).max(100) });

const SessionEvent = z
  .strictObject({
    kind: z.string().max(64).regex(EVENT_KIND, 'must be a kind of event that runners report'),
    occurred_at: z
      .int()
      .min(FIRST_TIME)
      .max(LAST_TIME)
      .describe('Milliseconds since the Unix epoch.'),
    payload: z.record(z.string(), z.unknown()),
  })
  .refine(({ kind, payload }) => kind !== 'control.halted' || !('scope' in payload), {
    error: 'must not have a scope, because a runner can only halt itself',
    path: ['payload'],
  })
  .refine(
    ({ kind, payload }) => kind !== 'strategy.log' || linesPayload.safeParse(payload).success,
    { error: 'must be lines: at most 100 texts of at most 500 characters', path: ['payload'] },
  )
  .refine(({ kind, payload }) => kind !== 'data.bars' || barsPayload.safeParse(payload).success, {
    error: 'must be bars: a time, and open, high, low, close and volume by symbol',
    path: ['payload'],
  })
  .refine(
    ({ kind, payload }) => kind !== 'data.warm_up' || warmUpPayload.safeParse(payload).success,
    { error: WARM_UP_FAULT, path: ['payload'], abort: true },
  );

const optional = z.number().optional();

const WorkingOrder = z.object({
  order: z.int(),
  symbol,
  side: z.enum(['buy', 'sell']),
  type: z.enum(['market', 'limit', 'stop', 'stop_limit', 'trailing_stop']),
  time_in_force: z.enum(['gtc', 'day', 'ioc', 'fok']),
  quantity: optional,
  weight: optional,
  limit: optional,
  stop: optional,
  filled: z.number(),
  triggered: z.boolean(),
  client_order_id: z
    .string()
    .max(64)
    .regex(/^[\w-]+$/)
    .optional(),
  pending_cancel: z.literal(true).optional(),
});

/** A `SessionState`. Unknown fields, which newer runners may send, are dropped. */
const SessionState = z
  .object({
    status: z.enum(['running', 'halted', 'failed', 'ruined']),
    time: time.nullable(),
    seq: z.int().min(0),
    cash: z.number(),
    equity: z.number(),
    positions: z.record(symbol, z.number()),
    working: z.array(WorkingOrder),
    messages: z.int().min(0).optional(),
    carry: Carry,
  })
  .openapi('ReportedSessionState');

const Batch = z
  .object({
    number: z
      .int()
      .min(1)
      .describe('Starts at 1 for each deployment. A batch that is already recorded is ignored.'),
    events: z.array(SessionEvent).max(512, { abort: true }).superRefine(refuseUnreadable),
    made_at: z
      .int()
      .optional()
      .describe(
        'Time when the first event was written to disk, in milliseconds since the Unix epoch.',
      ),
    state: SessionState,
    steps: z.int().min(0).describe('Total number of steps, each with the bars of one time.'),
  })
  .openapi('RunnerBatch');

/** Unknown fields of a report or its batch, which newer runners may send, are dropped. */
const RunnerReport = z
  .object({
    instance_id: z.uuid().describe('Identifies the process; made when it starts.'),
    epoch: z
      .int()
      .min(1)
      .nullable()
      .describe('The claim that the runner holds; null requests a claim.'),
    status: RunnerStatus,
    denying: searchText(500).nullable(),
    database_epoch: z
      .int()
      .min(1)
      .optional()
      .describe(
        "The newest epoch of the server's database that the runner knows; 1 by default. A server with an older epoch stops trading until its database is adopted.",
      ),
    batch: Batch.nullable(),
    venue: z.object({
      connected: z.boolean(),
      open_orders: z.int().min(0).nullable(),
      checked_at: time.nullable(),
    }),
    ended: z
      .object({
        outcome: z.enum(['stopped', 'halted', 'failed']),
        verified: z
          .boolean()
          .describe(
            'Whether the runner read the open orders back from the venue, and there were none.',
          ),
        orders: endedOrders.describe('Orders that were working when the end was requested.'),
        error: z
          .strictObject({
            code: z.string().max(64),
            message: z.string().max(2000),
            reason: z.string().max(100).optional(),
            remedy: z.string().max(2000).optional(),
          })
          .nullable(),
      })
      .nullable()
      .describe(
        'Present only in the last report, which releases the claim. Later reports of the instance change nothing in the deployment. `failed` ends the deployment.',
      ),
  })
  .openapi('RunnerReport');

export type RunnerReport = z.infer<typeof RunnerReport>;

const share = z
  .strictObject({
    value: z.number(),
    level: z.enum(['client', 'instrument', 'trader', 'desk', 'firm']),
    subject: z
      .string()
      .describe(
        'Empty if the session names no subject at that level; it may then place no orders.',
      ),
    version: z.int(),
    sessions: z.int().describe('Number of sessions that share the threshold.'),
  })
  .optional();

const Permit = z.strictObject({
  override_id: z.string(),
  symbol,
  side: z.enum(['buy', 'sell']),
  max_quantity: z.number(),
  worst_price: z.number().nullable(),
  controls: z.array(z.string()),
  expires_at: z.int().describe('Milliseconds since the Unix epoch.'),
});

const RunnerControls = z
  .strictObject({
    thresholds: z.strictObject({
      max_order_value: share,
      max_gross_exposure: share,
      max_daily_loss: share,
      max_messages_per_second: share,
      instruments: z
        .record(
          symbol,
          z.strictObject({
            max_order_value: share,
            max_order_qty: share,
            max_gross_exposure: share,
          }),
        )
        .optional(),
    }),
    permits: z.array(Permit).describe('Overrides that may still be used.'),
    latches_lifted: z.int().describe('Number of latches of the session that people have lifted.'),
    database_epoch: z
      .int()
      .optional()
      .describe("Epoch of the server's database, used in the ids of new orders; 1 by default."),
  })
  .openapi('RunnerControls', {
    description: 'Thresholds, overrides and lifted latches of the session.',
  });

const RunnerAnswer = z
  .strictObject({
    epoch: z.int().describe('The claim, to be sent with the next report.'),
    claim_seconds: z
      .int()
      .describe(
        'Validity of the claim from this report. After two thirds of that time without a response, a runner places no new orders.',
      ),
    report_seconds: z.int().describe('Interval between reports.'),
    command: z.enum(['trade', 'halt', 'stop']),
    halt: z
      .strictObject({
        halt_id: z.string(),
        scope: z.enum(['bot', 'all']),
        reason: z.string(),
        by: z.string(),
      })
      .nullable(),
    recorded: z.int().describe('Number of the last recorded batch.'),
    controls: RunnerControls,
    traceparent: z
      .string()
      .optional()
      .describe(
        'Trace of the request that deployed the bot (W3C Trace Context), if the server exports traces.',
      ),
  })
  .openapi('RunnerAnswer');

export type RunnerAnswer = z.infer<typeof RunnerAnswer>;

/** Path of runner reports, which may have larger bodies than other requests. */
export const RUNNER_PATH = /^\/deployments\/[^/]+\/runner$/;

export const reportRunner = defineRoute({
  tags: ['Production'],
  security: [{ runner: [] }],
  method: 'post',
  path: '/deployments/{deployment_id}/runner',
  operationId: 'reportRunner',
  summary: 'Report as the runner of a deployment, and receive commands',
  description:
    'Only the instance with the claim may trade. If another instance has it, the report fails with `conflict`, reason `fenced`, and `Retry-After` states for how long. Batches are recorded even while the bot is halted, so that the end of each order is known. For a deployment that has ended, the response is `not_found`; the runner then cancels its orders and exits. A runner whose protocol the server does not know may not trade: its report fails with `incompatible_version`, unless it must halt or stop.',
  request: {
    params: deploymentPath,
    headers: z.object({
      [RUNNER_VERSION_HEADER]: z
        .string()
        .max(64)
        .regex(/^[\w.+-]+$/)
        .optional()
        .openapi({ description: 'Version of service-local of the runner.', example: '0.1.0' }),
      [RUNNER_PROTOCOL_HEADER]: z.coerce
        .number()
        .int()
        .min(1)
        .default(1)
        .openapi({
          description: `Protocol of the runner. This server accepts ${RUNNER_PROTOCOL.oldest} to ${RUNNER_PROTOCOL.newest}.`,
          example: RUNNER_PROTOCOL.newest,
        }),
    }),
    body: jsonBody(RunnerReport, {
      runner: {
        instance_id: '0198c0de-0000-4000-8000-000000000001',
        epoch: null,
        status: 'starting',
        denying: null,
        batch: null,
        venue: { connected: true, open_orders: 0, checked_at: '2026-01-02T03:04:05Z' },
        ended: null,
      },
    }),
  },
  responses: { 200: jsonResponse('Commands for the runner.', RunnerAnswer) },
  errors: [
    'not_authenticated',
    'not_found',
    'conflict',
    'database_not_adopted',
    'incompatible_version',
  ],
});
