import { z } from '@hono/zod-openapi';
import {
  CHANNEL_TYPES,
  DELIVERY_STATUSES,
  NOTIFICATION_CONDITIONS,
} from '../base/notifications.ts';
import {
  actorName,
  administrator,
  defineRoute,
  id,
  jsonBody,
  jsonResponse,
  page,
  pageQuery,
  time,
} from './http.ts';

export const EXAMPLE_CHANNEL = 'operations';
export const EXAMPLE_RULE = 'halts';

const reading = {
  tags: ['Notifications'],
  // `doctor --server` needs the scope admin only.
  security: [...administrator('read'), ...administrator('admin')],
};
const changing = { tags: ['Notifications'], security: administrator('admin') };

const name = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, {
  error: 'must have 1 to 64 letters, digits or . _ - and begin with a letter or digit',
});

const Channel = z
  .strictObject({
    name: z.string(),
    type: z
      .enum(CHANNEL_TYPES)
      .nullable()
      .describe('Null for a channel that rules use but this server does not have.'),
    fault: z
      .string()
      .nullable()
      .describe('Why the channel cannot send, such as a missing secret; null if it can.'),
  })
  .openapi('NotificationChannel');

export type Channel = z.infer<typeof Channel>;

const condition = z.enum(NOTIFICATION_CONDITIONS);

const Rule = z
  .strictObject({
    rule_id: z.string(),
    name: z.string(),
    condition,
    amount: z.number().nullable(),
    bots: z
      .array(z.strictObject({ id: z.string(), slug: z.string().nullable() }))
      .nullable()
      .describe('Null for all bots.'),
    channel: z.string(),
    created_by: z.string().openapi({ example: 'administrator:ada' }),
    created_by_name: actorName,
    created_at: time,
  })
  .openapi('NotificationRule');

export type Rule = z.infer<typeof Rule>;

export const listNotificationRules = defineRoute({
  ...reading,
  method: 'get',
  path: '/notifications',
  operationId: 'listNotificationRules',
  summary: 'List the rules for notifications, and the channels of this server',
  description:
    'Lists the channels in the `notifications_file` of the server, then the channels that rules use but the file does not contain.',
  responses: {
    200: jsonResponse(
      'The rules and channels, by name.',
      z
        .strictObject({
          channels: z.array(Channel),
          rules: z.array(Rule),
          pending: z.int().describe('Number of deliveries that are not sent yet.'),
          failed: z
            .int()
            .describe('Number of deliveries that failed within a day, without tests of channels.'),
        })
        .openapi('Notifications'),
    ),
  },
});

const AddedRule = z
  .strictObject({
    ...Rule.shape,
    channel_fault: z
      .string()
      .nullable()
      .describe(
        'Why the channel of the rule cannot send, such as a missing secret; null if it can.',
      ),
  })
  .openapi('AddedNotificationRule');

export const addNotificationRule = defineRoute({
  ...changing,
  method: 'post',
  path: '/notifications/rules',
  operationId: 'addNotificationRule',
  summary: 'Add a rule for notifications',
  description:
    'Notifies the channel once of each occurrence. Of more than ten at the same time, all but ten are grouped in one notification. `halted`: a bot or all bots are halted. `error`: a trading session fails, or raises a critical alert other than of a halt; the same alert of a bot is sent at most once in each hour of the clock. `drawdown`: a session has lost the fraction `amount` of its highest equity. `no_bars`: a session records nothing for `amount` seconds, not counting the time in which the exchange of `universe.calendar` is closed. `lease`: the lease of an installation or of this server expires within `amount` hours and is not renewed. `halted` and `error` cover only what happens after the rule was added; the others also what is already the case.',
  idempotent: true,
  request: {
    body: jsonBody(
      z
        .strictObject({
          name,
          condition,
          amount: z
            .number()
            .optional()
            .describe(
              'A fraction for `drawdown`, hours for `lease`, seconds for `no_bars`; absent for other conditions.',
            ),
          bots: z
            .array(z.string().min(1).max(128))
            .min(1)
            .max(1000)
            .optional()
            .describe('Ids or slugs; by default all bots.'),
          channel: z.string().min(1).max(64),
        })
        .openapi('NotificationRuleInput'),
      {
        drawdown: {
          name: 'big-loss',
          condition: 'drawdown',
          amount: 0.1,
          bots: ['sma-crossover'],
          channel: EXAMPLE_CHANNEL,
        },
      },
    ),
  },
  responses: { 201: jsonResponse('The rule, and why its channel cannot send, if so.', AddedRule) },
  errors: ['not_found', 'conflict'],
});

export const removeNotificationRule = defineRoute({
  ...changing,
  method: 'delete',
  path: '/notifications/rules/{name}',
  operationId: 'removeNotificationRule',
  summary: 'Remove a rule for notifications',
  description: 'Notifications that the rule has caused are still sent.',
  request: { params: z.strictObject({ name: id(EXAMPLE_RULE) }) },
  responses: { 204: { description: 'The rule is removed.' } },
  errors: ['not_found'],
});

const deliveryStatus = z.enum(DELIVERY_STATUSES);

const Delivery = z
  .strictObject({
    delivery_id: z.string().describe('All attempts send the same id.'),
    rule: z.string().describe('Name of the rule, or `test`.'),
    channel: z.string(),
    summary: z.string(),
    status: deliveryStatus.describe(
      '`grouped`: it is part of another notification, with others of the same time.',
    ),
    attempts: z.int().describe('Number of attempts that have begun.'),
    error: z.string().nullable().describe('Why the last attempt failed.'),
    created_at: time,
    ended_at: time.nullable(),
  })
  .openapi('NotificationDelivery');

export type Delivery = z.infer<typeof Delivery>;

const Test = z
  .strictObject({
    ...Delivery.shape,
    refused_status: z
      .int()
      .nullable()
      .describe(
        'HTTP status with which the receiver refused the test; null if the test was sent, or if `error` states the cause.',
      ),
  })
  .openapi('NotificationTest');

export const testNotificationChannel = defineRoute({
  ...changing,
  method: 'post',
  path: '/notifications/channels/{channel}/test',
  operationId: 'testNotificationChannel',
  summary: 'Send a test to a channel',
  description: 'Makes one attempt, and returns its outcome.',
  request: { params: z.strictObject({ channel: id(EXAMPLE_CHANNEL) }) },
  responses: { 200: jsonResponse('The delivery, which is sent or failed.', Test) },
  errors: ['conflict'],
});

export const listNotificationDeliveries = defineRoute({
  ...reading,
  method: 'get',
  path: '/notifications/deliveries',
  operationId: 'listNotificationDeliveries',
  summary: 'List notifications and whether they were sent, newest first',
  description:
    'The server makes up to twelve attempts, usually within three hours. Deliveries are deleted 30 days after their end.',
  request: {
    query: z.strictObject({
      ...pageQuery,
      status: deliveryStatus.optional(),
    }),
  },
  responses: {
    200: jsonResponse('A page of deliveries.', page(Delivery).openapi('NotificationDeliveryPage')),
  },
});
