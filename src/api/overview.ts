import { z } from '@hono/zod-openapi';
import { administrator, defineRoute, jsonResponse, page, pageQuery, time } from './http.ts';

const reading = { tags: ['Bots'], security: administrator('read') };

const Overview = z
  .strictObject({
    bots: z.int(),
    running_bots: z.int().describe('Number of bots with a deployment that is pending or running.'),
    halts: z.strictObject({ bot: z.int(), all: z.int() }).describe('Halts in force, by scope.'),
    failed_tasks: z.int().describe('Number of tasks that failed within a day.'),
    alerts: z
      .strictObject({ critical: z.int(), warning: z.int() })
      .describe('Number of alerts within a day.'),
  })
  .openapi('Overview');

export type Overview = z.infer<typeof Overview>;

export const getOverview = defineRoute({
  ...reading,
  method: 'get',
  path: '/overview',
  operationId: 'getOverview',
  summary: 'Count what runs and what needs attention, over all bots',
  responses: { 200: jsonResponse('The counts.', Overview) },
});

const RaisedAlert = z
  .strictObject({
    bot_id: z.string(),
    bot_slug: z.string(),
    bot_name: z.string(),
    seq: z.int().describe('Sequence number of the event `alert.raised`.'),
    run_id: z.string().nullable(),
    recorded_at: time,
    severity: z.enum(['warning', 'critical']),
    control: z.string().describe('The limit in `risk`, or another cause.'),
    event_seq: z.int().describe('Sequence number of the event that caused the alert.'),
  })
  .openapi('RaisedAlert');

export type RaisedAlert = z.infer<typeof RaisedAlert>;

export const listAlerts = defineRoute({
  ...reading,
  method: 'get',
  path: '/alerts',
  operationId: 'listAlerts',
  summary: 'List the alerts of all bots, newest first',
  description: 'Archived alerts are not listed.',
  request: { query: z.strictObject(pageQuery) },
  responses: { 200: jsonResponse('A page of alerts.', page(RaisedAlert)) },
});
