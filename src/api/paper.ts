import { z } from '@hono/zod-openapi';
import { administrator, botPath, defineRoute, id, jsonBody, jsonResponse, text } from './http.ts';
import { EXAMPLE_SESSION_ID } from './replay.ts';
import { changes, speed, Task, TaskReference, TASK_LOCATION } from './tasks.ts';

const trading = { tags: ['Bots'], security: administrator('trade') };

const live = z
  .strictObject({
    exchange: z
      .string()
      .min(1)
      .max(64)
      .optional()
      .describe(
        'Name of the exchange in `exchanges_file` of the server; by default the only one there.',
      ),
  })
  .describe('Trade live bars of an exchange instead of bars of the catalogue.');

const PaperRequest = z
  .strictObject({
    version: z.int().min(1).optional(),
    ...changes,
    speed: speed.optional(),
    live: live.optional(),
    reset_losses: text(500)
      .optional()
      .describe(
        'Reason to let the loss limits of a live session start from its own cash. By default, the session has used up the same share of them as the previous live session of the bot.',
      ),
  })
  .refine(({ live: isLive, speed: at, from, to }) => !isLive || !(at ?? from ?? to), {
    message: 'live sessions have no speed, from or to',
    path: ['live'],
  })
  .openapi('PaperRequest', {
    description:
      'A version, the current one by default; values that replace those of the spec; and either a replay speed or `live`.',
  });

const StartedPaper = z
  .strictObject({
    ...TaskReference.shape,
    other_sessions: z.int().describe('Number of other sessions of the bot that have not ended.'),
    pace: z
      .strictObject({ bar_seconds: z.number(), total_seconds: z.number() })
      .nullable()
      .describe('For a replay at a speed, the seconds between bars and the least total seconds.'),
  })
  .openapi('StartedPaper');

export type StartedPaper = z.infer<typeof StartedPaper>;

export const startPaper = defineRoute({
  ...trading,
  method: 'post',
  path: '/bots/{bot_ref}/paper/start',
  operationId: 'startPaper',
  summary: 'Start a paper session of a bot',
  description:
    'Trades a version of the bot on paper, with replayed data or with live bars of an exchange. Over the same bars, a session has the same events as a backtest, by their hash. A session continues after a restart of the server. It ends with its data, when it is stopped or canceled, and when the bot is halted. The spec must state each limit of `risk`, and the bot must be able to trade. A draft bot becomes active.',
  idempotent: true,
  request: {
    params: botPath,
    body: jsonBody(PaperRequest, {
      replay: { speed: 'max' },
      changed: { speed: 60, params: { fast: 12 } },
    }),
  },
  responses: {
    202: { ...jsonResponse('The session is queued.', StartedPaper), headers: TASK_LOCATION },
  },
  errors: ['not_found', 'conflict', 'database_not_adopted', 'invalid_spec', 'exchange_unavailable'],
});

export const stopPaper = defineRoute({
  ...trading,
  method: 'post',
  path: '/bots/{bot_ref}/paper/stop/{task_id}',
  operationId: 'stopPaper',
  summary: 'Stop a paper session',
  description:
    'Cancels the working orders of the session, and computes its result from the bars seen so far, within seconds. A session that has seen no bars is canceled. A session that has ended does not change.',
  request: { params: z.strictObject({ ...botPath.shape, task_id: id(EXAMPLE_SESSION_ID) }) },
  responses: { 200: jsonResponse('The updated task.', Task) },
  errors: ['not_found', 'conflict'],
});
