import { z } from '@hono/zod-openapi';
import {
  actorName,
  administrator,
  botPath,
  defineRoute,
  id,
  jsonBody,
  jsonResponse,
  page,
  pageQuery,
  searchText,
  text,
  time,
} from './http.ts';
import { OVERRIDABLE_LIMITS } from '../base/risk-limits.ts';

export const EXAMPLE_OVERRIDE_ID = '0198c0de-0000-7000-8000-0000000000f1';

const tags = ['Risk'];

const amount = z.number().gt(0).max(1e15).optional();

const Limits = z
  .strictObject({
    max_order_value: amount.describe('Account currency per order.'),
    max_order_qty: amount.describe('Units per order; for instruments only.'),
    max_gross_exposure: amount.describe(
      'Sum of long and short positions in account currency, assuming that all working orders are filled. Divided among sessions.',
    ),
    max_daily_loss: amount.describe(
      'Loss in account currency since the last close of the previous day. A day is a UTC day, or a session of `universe.calendar` of the bot. Divided among sessions; not for instruments.',
    ),
    max_messages_per_second: amount.describe(
      'Orders and cancellations. Divided among sessions; not for instruments.',
    ),
  })
  .openapi('ThresholdLimits');

const level = z.enum(['client', 'instrument', 'trader', 'desk', 'firm']);
const currency = z.string().regex(/^[A-Z][A-Z0-9]{1,9}$/, 'must be a currency code such as USD');

const Threshold = z
  .strictObject({
    level,
    subject: z.string(),
    currency,
    version: z.int().describe('Starts at 1 for each subject and currency.'),
    limits: Limits.nullable().describe('Null if the threshold was removed.'),
    rationale: z.string(),
    set_by: z.string().openapi({ example: 'administrator:ada' }),
    set_by_name: actorName,
    set_at: time,
    sessions: z
      .strictObject({ paper: z.int(), production: z.int() })
      .describe(
        'Number of sessions that the threshold applies to now; paper and production sessions each divide it separately.',
      ),
  })
  .openapi('Threshold');

export type Threshold = z.infer<typeof Threshold>;

export const listThresholds = defineRoute({
  tags,
  security: administrator('read'),
  method: 'get',
  path: '/risk/thresholds',
  operationId: 'listThresholds',
  summary: 'List the thresholds',
  description: 'Returns the thresholds in force or, with `history`, all versions, oldest first.',
  request: {
    query: z.strictObject({ history: z.enum(['true', 'false']).default('false') }),
  },
  responses: {
    200: jsonResponse(
      'The thresholds.',
      z.strictObject({ thresholds: z.array(Threshold) }).openapi('Thresholds'),
    ),
  },
});

export const setThreshold = defineRoute({
  tags,
  security: administrator('admin'),
  method: 'put',
  path: '/risk/thresholds',
  operationId: 'setThreshold',
  summary: 'Set or remove the threshold of a client, instrument, trader, desk or the firm',
  description:
    'Thresholds of RTS 6 Article 15(5). The request replaces all limits of the subject in this currency; null removes them. They are checked before each order of each session that trades for the subject (`attribution` in the spec), together with the limits of the bot and of other levels: the strictest applies. Exposure, loss and messages are divided equally among these sessions, separately for paper and production, so that together they stay within the threshold without coordination. Paper sessions apply a change within two seconds, production sessions with their next report; working orders that exceed the new limits are then canceled. A production session that cannot report denies orders after 20 seconds. Amounts are not converted: a threshold applies only to accounts in its currency. While a trader, desk or client has a threshold, no bot with an account in that currency starts without naming a subject at that level; running sessions of such a bot are denied new orders.',
  request: {
    body: jsonBody(
      z
        .strictObject({
          level,
          subject: searchText(100).describe('Name of the subject; `firm` for the firm.'),
          currency,
          limits: Limits.nullable(),
          rationale: text(2000).describe('Reason; it is stored with the threshold.'),
        })
        .openapi('ThresholdInput'),
      {
        desk: {
          level: 'desk',
          subject: 'index',
          currency: 'USD',
          limits: { max_order_value: 50_000, max_gross_exposure: 1_000_000 },
          rationale: 'A tenth of the capital, decided by the risk committee in March.',
        },
      },
    ),
  },
  responses: { 200: jsonResponse('The threshold.', Threshold) },
  errors: ['not_found'],
});

const control = z.enum(OVERRIDABLE_LIMITS);

const asked = {
  symbol: z.string().min(1).max(64),
  side: z.enum(['buy', 'sell']),
  max_quantity: z.number().gt(0).describe('Maximum units of the order.'),
};

const Override = z
  .strictObject({
    override_id: z.string(),
    bot_id: z.string(),
    run_id: z.string().describe('Task of the session.'),
    ...asked,
    worst_price: z.number().nullable(),
    controls: z.array(control),
    status: z.enum(['requested', 'verified', 'authorized', 'used', 'expired']),
    reason: z.string(),
    requested_by: z.string(),
    requested_at: time,
    expires_at: time,
    verified_by: z.string().nullable(),
    verified_at: time.nullable(),
    verify_reason: z.string().nullable(),
    authorized_by: z.string().nullable(),
    authorized_at: time.nullable(),
    authorize_reason: z.string().nullable(),
    used_at: time.nullable(),
    used_order: z.int().nullable().describe('Number of the order in the session.'),
  })
  .openapi('Override');

export type Override = z.infer<typeof Override>;

export const requestOverride = defineRoute({
  tags,
  security: administrator('trade'),
  method: 'post',
  path: '/bots/{bot_ref}/overrides',
  operationId: 'requestOverride',
  summary: 'Request that one order may exceed a limit',
  description:
    'Overrides of RTS 6 Article 15(6). A request alone permits nothing: a risk manager must verify it and a third person must authorize it. Then the next matching order of the session that one of `controls` would deny is accepted, once and before the override expires; no limit changes. Overrides apply to limits of price and size only, never to halts, latches, leases, permissions, daily loss, drawdown or message rate.',
  idempotent: true,
  request: {
    params: botPath,
    body: jsonBody(
      z
        .strictObject({
          run_id: z
            .string()
            .max(128)
            .optional()
            .describe('Task of the session; by default the only session of the bot.'),
          ...asked,
          worst_price: z
            .number()
            .gt(0)
            .nullable()
            .default(null)
            .describe(
              'Highest price of a purchase or lowest price of a sale. It applies to the limit or stop price of the order, else to the last close. An order without a limit is not filled at a worse price.',
            ),
          controls: z.array(control).min(1).describe('Limits that the order may exceed.'),
          reason: text(500),
          valid_minutes: z.int().min(1).max(480).default(15),
        })
        .openapi('OverrideInput'),
      {
        override: {
          symbol: 'SPX',
          side: 'sell',
          max_quantity: 500,
          controls: ['max_order_qty'],
          reason: 'a client leaves at the close',
        },
      },
    ),
  },
  responses: { 201: jsonResponse('The override, which cannot be used yet.', Override) },
  errors: ['not_found', 'conflict'],
});

export const listOverrides = defineRoute({
  tags,
  security: administrator('read'),
  method: 'get',
  path: '/bots/{bot_ref}/overrides',
  operationId: 'listOverrides',
  summary: 'List the overrides of a bot',
  description: 'Returns the newest first.',
  request: { params: botPath, query: z.strictObject(pageQuery) },
  responses: { 200: jsonResponse('A page of overrides.', page(Override).openapi('OverridePage')) },
  errors: ['not_found'],
});

const overridePath = z.strictObject({ override_id: id(EXAMPLE_OVERRIDE_ID) });
const Decision = z
  .strictObject({
    reason: text(500).describe('Reason; it is stored with the override.'),
  })
  .openapi('OverrideDecision');

export const verifyOverride = defineRoute({
  tags,
  security: administrator('admin'),
  method: 'post',
  path: '/overrides/{override_id}/verify',
  operationId: 'verifyOverride',
  summary: 'Verify an override as risk manager',
  description:
    'The caller must differ from the person who requested the override and from the person who authorizes it. The scope `admin` identifies risk managers.',
  request: {
    params: overridePath,
    body: jsonBody(Decision, { decision: { reason: 'the position is known, and hedged' } }),
  },
  responses: { 200: jsonResponse('The override, which cannot be used yet.', Override) },
  errors: ['not_found', 'conflict'],
});

export const authorizeOverride = defineRoute({
  tags,
  security: administrator('admin'),
  method: 'post',
  path: '/overrides/{override_id}/authorize',
  operationId: 'authorizeOverride',
  summary: 'Authorize an override that was verified',
  description:
    'The caller must be designated for this, which the scope `admin` expresses, and must differ from the persons who requested and verified the override. From then on, one order may use it.',
  request: {
    params: overridePath,
    body: jsonBody(Decision, { decision: { reason: 'agreed by telephone with the desk' } }),
  },
  responses: { 200: jsonResponse('The override, which one order may use.', Override) },
  errors: ['not_found', 'conflict'],
});
