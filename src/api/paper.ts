import { z } from '@hono/zod-openapi';
import { administrator, answer, defineRoute, id, json, text } from './http.ts';
import { EXAMPLE_SESSION_ID } from './replay.ts';
import { changes, speed, Task, TaskReference, TASK_LOCATION } from './tasks.ts';

const trading = { tags: ['Bots'], security: administrator('trade') };

const botPath = z.strictObject({ bot_ref: id('sma-crossover') });

const live = z
  .strictObject({
    exchange: z.string().min(1).max(64).optional().openapi({
      description: 'As `exchanges_file` of the server calls it; by default the only one there.',
    }),
  })
  .openapi({
    description: 'Bars of an exchange as they close, in place of those of the catalogue.',
  });

const PaperRequest = z
  .strictObject({
    version: z.int().min(1).optional(),
    ...changes,
    speed: speed.optional(),
    live: live.optional(),
    reset_losses: text(500).optional().openapi({
      description:
        'Reason to let the loss limits of a live session count from its own cash. By default, the session has used up the same share of them as the bot’s previous live session.',
    }),
  })
  .refine(({ live: isLive, speed: at, from, to }) => !isLive || !(at ?? from ?? to), {
    message: 'live bars come as they come: there is no speed, from or to',
    path: ['live'],
  })
  .openapi('PaperRequest', {
    description:
      "A version, by default the current one, what stands in place of the spec's own values, and how fast the data are replayed, or that they are `live`.",
  });

const StartedPaper = TaskReference.extend({
  other_sessions: z.int().openapi({ description: 'Of the bot, that have not ended either.' }),
  pace: z.strictObject({ bar_seconds: z.number(), total_seconds: z.number() }).nullable().openapi({
    description:
      'Of a replay at a speed: how far apart its bars are, and about how long all of them take.',
  }),
}).openapi('StartedPaper');

export type StartedPaper = z.infer<typeof StartedPaper>;

export const startPaper = defineRoute({
  ...trading,
  method: 'post',
  path: '/bots/{bot_ref}/paper/start',
  operationId: 'startPaper',
  summary: 'Start a paper session of a bot',
  description:
    'Trades a version of the bot on paper: its data come as though they came now, or are live ones of an exchange. Over the same bars a session comes to the same events as a backtest, by their hash. It goes on after a restart of the server, and ends with its data, when it is stopped or canceled, and when the bot is halted. Each limit of `risk` must be stated in the spec, and the bot must trade. A draft becomes active.',
  idempotent: true,
  request: {
    params: botPath,
    body: json(PaperRequest, {
      replay: { speed: 'max' },
      changed: { speed: 60, params: { fast: 12 } },
    }),
  },
  responses: { 202: { ...answer('It is queued.', StartedPaper), headers: TASK_LOCATION } },
  errors: ['not_found', 'conflict', 'database_not_adopted', 'invalid_spec', 'exchange_unavailable'],
});

export const stopPaper = defineRoute({
  ...trading,
  method: 'post',
  path: '/bots/{bot_ref}/paper/stop/{task_id}',
  operationId: 'stopPaper',
  summary: 'Stop a paper session',
  description:
    'Its working orders are canceled, and its result is that of the bars it has seen, within seconds; one that has seen none is canceled. What has ended stays as it ended.',
  request: { params: z.strictObject({ ...botPath.shape, task_id: id(EXAMPLE_SESSION_ID) }) },
  responses: { 200: answer('The task as it is now.', Task) },
  errors: ['not_found', 'conflict'],
});
