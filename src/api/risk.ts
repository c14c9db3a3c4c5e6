import { z } from '@hono/zod-openapi';
import {
  actorName,
  administrator,
  answer,
  defineRoute,
  id,
  json,
  page,
  pageQuery,
  searchText,
  text,
  time,
} from './http.ts';
import { OVERRIDABLE_LIMITS } from '../base/overridable-limits.ts';

/** Of the examples. */
export const EXAMPLE_OVERRIDE_ID = '0198c0de-0000-7000-8000-0000000000f1';

const tags = ['Risk'];

const amount = z.number().gt(0).max(1e15).optional();

const Limits = z
  .strictObject({
    max_order_value: amount.openapi({ description: 'Account currency per order.' }),
    max_order_qty: amount.openapi({ description: 'Units per order; of instruments alone.' }),
    max_gross_exposure: amount.openapi({
      description:
        'Account currency: positions, long and short, once what works is filled. Divided among sessions.',
    }),
    max_daily_loss: amount.openapi({
      description:
        'Account currency, since the last close of the UTC day before. Divided among sessions; not of instruments.',
    }),
    max_messages_per_second: amount.openapi({
      description: 'Orders and cancels. Divided among sessions; not of instruments.',
    }),
  })
  .openapi('ThresholdLimits');

const level = z.enum(['client', 'instrument', 'trader', 'desk', 'firm']);
const currency = z.string().regex(/^[A-Z][A-Z0-9]{1,9}$/, 'must be a currency code such as USD');

const Threshold = z
  .strictObject({
    level,
    subject: z.string(),
    currency,
    version: z.int().openapi({ description: 'From 1 for each subject and currency.' }),
    limits: Limits.nullable().openapi({ description: 'Null: there is none any more.' }),
    rationale: z.string(),
    set_by: z.string().openapi({ example: 'administrator:ada' }),
    set_by_name: actorName,
    set_at: time,
    sessions: z
      .strictObject({ paper: z.int(), production: z.int() })
      .openapi({ description: 'How many it holds for now, each kind dividing it by itself.' }),
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
  description: 'Those in force, or with `history` all that ever were, oldest version first.',
  request: {
    query: z.strictObject({ history: z.enum(['true', 'false']).default('false') }),
  },
  responses: {
    200: answer(
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
    'RTS 6 Article 15(5). The limits are all that the subject then has in the currency; null removes them. They are checked before every order of each session that trades for the subject (`attribution` of the spec), beside the limits of the bot and of the other levels: the tightest wins. Exposure, loss and messages are divided equally among these sessions, those on paper and those in production each by themselves, so that they stay within it together without asking each other. Sessions on paper heed it within two seconds, in production with their next report; working orders that break it are canceled then. A production session that cannot report denies orders after 20 seconds. No currency is converted: it holds for accounts in its own. While there is one of a trader, desk or client, no bot with such an account starts that names nobody at that level, and its sessions that run are denied new orders.',
  request: {
    body: json(
      z
        .strictObject({
          level,
          subject: searchText(100).openapi({ description: '`firm` for the firm.' }),
          currency,
          limits: Limits.nullable(),
          rationale: text(2000).openapi({ description: 'Why so; it is kept with the threshold.' }),
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
  responses: { 200: answer('The threshold.', Threshold) },
  errors: ['not_found'],
});

const control = z.enum(OVERRIDABLE_LIMITS);

const asked = {
  symbol: z.string().min(1).max(64),
  side: z.enum(['buy', 'sell']),
  max_quantity: z.number().gt(0).openapi({ description: 'Units; the order may be for fewer.' }),
};

const Override = z
  .strictObject({
    override_id: z.string(),
    bot_id: z.string(),
    run_id: z.string().openapi({ description: 'Task of the session.' }),
    ...asked,
    worst_price: z.number().nullable(),
    controls: z.array(control),
    status: z.enum(['requested', 'verified', 'authorised', 'used', 'expired']),
    reason: z.string(),
    requested_by: z.string(),
    requested_at: time,
    expires_at: time,
    verified_by: z.string().nullable(),
    verified_at: time.nullable(),
    verify_reason: z.string().nullable(),
    authorised_by: z.string().nullable(),
    authorised_at: time.nullable(),
    authorise_reason: z.string().nullable(),
    used_at: time.nullable(),
    used_order: z.int().nullable().openapi({ description: 'Its number in the session.' }),
  })
  .openapi('Override');

export type Override = z.infer<typeof Override>;

const botPath = z.strictObject({ bot_ref: id('sma-crossover') });

export const requestOverride = defineRoute({
  tags,
  security: administrator('trade'),
  method: 'post',
  path: '/bots/{bot_ref}/overrides',
  operationId: 'requestOverride',
  summary: 'Ask that one order may pass a limit',
  description:
    'RTS 6 Article 15(6). Nothing passes by asking: risk has to verify it, and another person to authorise it; all three are different. Then the next order of the session that is as it says, and that one of `controls` denies, passes: once, until it expires, with no limit changed. Only limits of price and size can be passed so: no halt, latch, lease, permission, daily loss, drawdown or rate of messages.',
  idempotent: true,
  request: {
    params: botPath,
    body: json(
      z
        .strictObject({
          run_id: z.string().max(128).optional().openapi({
            description: 'Task of the session; the only one of the bot by default.',
          }),
          ...asked,
          worst_price: z.number().gt(0).nullable().default(null).openapi({
            description:
              'The highest of a purchase, the lowest of a sale: of its limit or stop, else of the last close; an order without a limit is filled at no worse one.',
          }),
          controls: z.array(control).min(1).openapi({ description: 'Those that it may pass.' }),
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
  responses: { 201: answer('The override, which nothing can use yet.', Override) },
  errors: ['not_found', 'conflict'],
});

export const listOverrides = defineRoute({
  tags,
  security: administrator('read'),
  method: 'get',
  path: '/bots/{bot_ref}/overrides',
  operationId: 'listOverrides',
  summary: 'List the overrides of a bot',
  description: 'The newest first.',
  request: { params: botPath, query: z.strictObject(pageQuery) },
  responses: { 200: answer('Part of the overrides.', page(Override).openapi('OverridePage')) },
  errors: ['not_found'],
});

const overridePath = z.strictObject({ override_id: id(EXAMPLE_OVERRIDE_ID) });
const Decision = z
  .strictObject({ reason: text(500).openapi({ description: 'Why; it is kept with it.' }) })
  .openapi('OverrideDecision');

export const verifyOverride = defineRoute({
  tags,
  security: administrator('admin'),
  method: 'post',
  path: '/overrides/{override_id}/verify',
  operationId: 'verifyOverride',
  summary: 'Verify an override, as risk',
  description:
    'Not by whoever asked for it; and by whoever authorises it neither. Whose task risk is, the scope `admin` says.',
  request: {
    params: overridePath,
    body: json(Decision, { decision: { reason: 'the position is known, and hedged' } }),
  },
  responses: { 200: answer('The override, which nothing can use yet.', Override) },
  errors: ['not_found', 'conflict'],
});

export const authoriseOverride = defineRoute({
  tags,
  security: administrator('admin'),
  method: 'post',
  path: '/overrides/{override_id}/authorise',
  operationId: 'authoriseOverride',
  summary: 'Authorise an override that risk has verified',
  description:
    'By a person who is designated for that, which here is who holds the scope `admin`: neither whoever asked for it nor whoever verified it. From then on one order may pass.',
  request: {
    params: overridePath,
    body: json(Decision, { decision: { reason: 'agreed by telephone with the desk' } }),
  },
  responses: { 200: answer('The override, which one order may use.', Override) },
  errors: ['not_found', 'conflict'],
});
