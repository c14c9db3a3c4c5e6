import { HALT_FAULTS } from '../base/halt-faults.ts';
import { z } from '@hono/zod-openapi';
import {
  actorName,
  administrator,
  botPath,
  defineRoute,
  jsonBody,
  jsonResponse,
  page,
  pageQuery,
  searchText,
  time,
} from './http.ts';

const halting = { tags: ['Bots'], security: administrator('halt') };
const trading = { tags: ['Bots'], security: administrator('trade') };

const HaltInput = z
  .strictObject({
    // Hidden characters are accepted: the kill switch must not fail because of a pasted reason.
    reason: searchText(500).describe('Reason; it is stored with the halt and in the logs.'),
  })
  .openapi('HaltInput');

const slug = z.string().nullable().describe('Current slug of the bot, if it can be read.');

const halt = {
  halt_id: z.string(),
  scope: z.enum(['bot', 'all']),
  bot_id: z.string().nullable().describe('Null for all bots.'),
  bot_slug: slug,
  reason: z.string(),
  requested_by: z.string().openapi({ example: 'administrator:ada' }),
  requested_at: time,
};

export const Halt = z
  .strictObject({
    ...halt,
    requested_by_name: actorName,
    lifted_at: time.nullable().describe('Null while the halt is in force.'),
    lifted_by: z.string().nullable(),
    lifted_by_name: actorName,
    lift_reason: z.string().nullable(),
    deployments: z.int().describe('Number of deployments that the halt ended.'),
  })
  .openapi('Halt');

export type Halt = z.infer<typeof Halt>;

const HaltedDeployment = z
  .strictObject({
    deployment_id: z.string(),
    bot_id: z.string(),
    bot_slug: slug,
    target: z.enum(['backtest', 'paper', 'k8s', 'test']),
    task_id: z.string(),
    status: z.enum(['pending', 'running', 'success', 'failed', 'halted']),
    verified: z.boolean(),
    faults: z
      .array(z.enum(HALT_FAULTS))
      .describe('Why the deployment is not verified; empty if it is.'),
    orders: z
      .array(
        z.strictObject({
          order: z.int(),
          symbol: z.string(),
          verified: z
            .boolean()
            .describe(
              'Whether the order is no longer working and its cancellation is in the log of the bot; in production, whether the venue has reported that it ended.',
            ),
        }),
      )
      .describe('Orders that were working at the time of the halt.'),
  })
  .openapi('HaltedDeployment');

export const HaltReport = z
  .strictObject({
    ...halt,
    verified: z
      .boolean()
      .describe(
        'Whether the halt is in force and each deployment is verified. True with status 200.',
      ),
    in_force: z.boolean().describe('Whether the halt was read back from the database.'),
    latched_ms: z.int().describe('Milliseconds until nothing could start or continue trading.'),
    verified_ms: z.int().describe('Milliseconds until everything had been read back.'),
    deployments: z
      .array(HaltedDeployment)
      .describe(
        'Deployments that this halt ended, now or earlier, and deployments that it could not end.',
      ),
  })
  .openapi('HaltReport');

export type HaltReport = z.infer<typeof HaltReport>;

const reports = {
  200: jsonResponse('Everything is halted, as read back from the database.', HaltReport),
  207: jsonResponse('The halt is in force, but part of it could not be verified.', HaltReport),
};

const WHAT_IT_DOES =
  'From then on, no session starts until a resume. The server cancels working orders and ends running sessions, without their cooperation. Then it reads everything back: 200 only if each deployment and each order is verified, else 207. A halt that is in force is not changed: requesting it again ends all remaining trading, and verifies again. Backtests are not halted. In production, the runner cancels its orders and reads them back from the venue before its pod is removed. If the runner of a simulated venue no longer reports, its pod is removed anyway, and its orders are not verified. The `reason` of a failure with status 500 or above states whether the halt is in force: `halt_not_in_force` or `halt_unknown`.';

export const haltBot = defineRoute({
  ...halting,
  method: 'post',
  path: '/bots/{bot_ref}/halt',
  operationId: 'haltBot',
  summary: 'Halt a bot',
  description: WHAT_IT_DOES,
  request: { params: botPath, body: jsonBody(HaltInput, { halt: { reason: 'it buys too much' } }) },
  responses: reports,
  errors: ['not_found'],
});

export const haltAllBots = defineRoute({
  ...halting,
  method: 'post',
  path: '/bots/halt-all',
  operationId: 'haltAllBots',
  summary: 'Halt all bots',
  description: `The kill switch. ${WHAT_IT_DOES}`,
  request: { body: jsonBody(HaltInput, { halt: { reason: 'the feed is wrong' } }) },
  responses: reports,
});

export const resumeBot = defineRoute({
  ...trading,
  method: 'post',
  path: '/bots/{bot_ref}/resume',
  operationId: 'resumeBot',
  summary: 'Lift the halt of a bot',
  description:
    'Starts no session. Fails while all bots are halted, and until everything that the halt covers has ended.',
  request: { params: botPath, body: jsonBody(HaltInput, { resume: { reason: 'it is mended' } }) },
  responses: { 200: jsonResponse('The lifted halt.', Halt) },
  errors: ['not_found', 'conflict'],
});

export const resumeAllBots = defineRoute({
  ...trading,
  method: 'post',
  path: '/bots/resume-all',
  operationId: 'resumeAllBots',
  summary: 'Lift the halt of all bots',
  description:
    'Starts no session, and does not lift halts of individual bots. Fails until everything that the halt covers has ended.',
  request: { body: jsonBody(HaltInput, { resume: { reason: 'the feed is right again' } }) },
  responses: { 200: jsonResponse('The lifted halt.', Halt) },
  errors: ['conflict'],
});

const ReEnabled = z
  .strictObject({
    bot_id: z.string(),
    latches: z
      .array(
        z.strictObject({
          event_seq: z
            .int()
            .describe('Sequence number of the event `account.latched` in the log of the bot.'),
          run_id: z.string().describe('Task of the session.'),
          latched_at: time,
          control: z.enum(['repeated_execution', 'reconciliation']),
          symbol: z.string().nullable().describe('Null for `reconciliation`.'),
          side: z.enum(['buy', 'sell']).nullable(),
          count: z.int().nullable().describe('Number of orders executed within `seconds`.'),
          seconds: z.number().nullable(),
          active: z.boolean().describe('Whether the session has not ended.'),
        }),
      )
      .describe('Latches that kept the bot from starting, oldest first.'),
    re_enabled_at: time,
    re_enabled_by: z.string().openapi({ example: 'administrator:ada' }),
    re_enabled_by_name: actorName,
  })
  .openapi('ReEnabled');

export const reEnableBot = defineRoute({
  ...trading,
  method: 'post',
  path: '/bots/{bot_ref}/re-enable',
  operationId: 'reEnableBot',
  summary: 'Re-enable a bot after it was latched',
  description:
    'A session is latched once it has executed as many orders of one instrument and side as `repeated_execution` of its risk limits allows, or once more than 1 % of the equity is missing from its account at an exchange. It then denies every order, even after a restart, and no other session of the bot starts, until a person re-enables the bot here. This request starts no session. A latched session that has not ended accepts orders again within two seconds on paper, or with its next report in production; the log then records `control.latch_lifted`.',
  request: {
    params: botPath,
    body: jsonBody(HaltInput, { re_enable: { reason: 'the feed repeated a price; it is mended' } }),
  },
  responses: { 200: jsonResponse('The bot may be started again.', ReEnabled) },
  errors: ['not_found', 'conflict'],
});

export const listHalts = defineRoute({
  tags: ['Bots'],
  // An administrator who may halt bots must also see what is halted.
  security: [...administrator('read'), ...administrator('halt')],
  method: 'get',
  path: '/halts',
  operationId: 'listHalts',
  summary: 'List the halts',
  description: 'Returns halts in force, newest first, then lifted halts.',
  request: { query: z.strictObject(pageQuery) },
  responses: { 200: jsonResponse('A page of halts.', page(Halt).openapi('HaltPage')) },
});
