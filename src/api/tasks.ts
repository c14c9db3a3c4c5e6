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
  Problem,
  time,
} from './http.ts';

const reading = { tags: ['Tasks'], security: administrator('read') };
const writing = { tags: ['Tasks'], security: administrator('write') };

const TASK_KINDS = ['backtest', 'paper', 'production', 'conformance', 'stress'] as const;
const ANY_KIND = TASK_KINDS.join('|');

const TaskStatus = z.enum(['queued', 'running', 'success', 'failed', 'canceled']);

export const changes = {
  from: z.string().optional().openapi({ description: 'First day used, such as 2020-01-31.' }),
  to: z.string().optional().openapi({ description: 'Last day used.' }),
  params: z
    .record(z.string(), z.union([z.number(), z.boolean(), z.string()]))
    .optional()
    .openapi({ description: 'Parameters of the strategy.' }),
};

export const patch = z.record(z.string(), z.unknown()).optional().openapi({
  description: 'Of the whole document, under the other values: a JSON merge patch (RFC 7396).',
});

const locked = {
  verify_lock: z.boolean().optional().openapi({
    description:
      'Fail with `lock_drift` when data, engine, strategy or seed are not those of the first backtest of this version, with these values, that was a success.',
  }),
};

export const speed = z.union([z.number().gt(0), z.literal('max')]).openapi({
  description: 'How many times as fast as the market was; `max` is as fast as it goes.',
});

/** What is asked of conformance and stress tests. */
const tests = {
  seed: z.int().optional(),
  cases: z.array(z.string()).optional(),
  scope: z.enum(['bot', 'firm']).optional(),
  duration_s: z.int().optional(),
  multiplier: z.number().optional(),
  declared_peak: z.int().optional(),
};

const TaskInput = z
  .strictObject({
    ...changes,
    patch,
    ...locked,
    speed: speed.optional(),
    live: z.strictObject({ exchange: z.string() }).optional(),
    production: z.record(z.string(), z.unknown()).optional(),
    ...tests,
  })
  .openapi('TaskInput', {
    description:
      "What stands in place of the spec's own; `speed` is there for paper sessions, `live` for those that follow an exchange, and `production` for deployments to a cluster: what was asked for; `patch` is there for backtests of proposals; the others are those of conformance and stress tests.",
  });

const BacktestRequest = z
  .strictObject({ version: z.int().min(1).optional(), ...changes, ...locked })
  .openapi('BacktestRequest', {
    description:
      "A version, by default the current one, and what stands in place of the spec's own.",
  });

const progress = z.strictObject({ done: z.int(), total: z.int().nullable() }).openapi({
  description:
    'In bars; of a conformance test in cases, of a stress test in steps. `total` is null until the data are read, and where nobody knows it.',
});

const taskId = z.string().openapi({ description: 'Also the `run_id` of its events.' });

/** A halt, as it is told where something was halted. */
export const EffectiveHalt = z
  .strictObject({
    halt_id: z.string(),
    scope: z.enum(['bot', 'all']),
    at: time,
    by: z.string().openapi({ example: 'administrator:ada' }),
    by_name: actorName,
    reason: z.string(),
  })
  .openapi('EffectiveHalt');

export type EffectiveHalt = z.infer<typeof EffectiveHalt>;

export const Task = z
  .strictObject({
    task_id: taskId,
    kind: z.enum(TASK_KINDS),
    bot_id: z.string(),
    version: z.int(),
    deployment_id: z.string(),
    status: TaskStatus,
    input: TaskInput,
    progress,
    error: Problem.pick({ code: true, detail: true, reason: true, remedy: true, errors: true })
      .nullable()
      .openapi({ description: 'Why it failed.' }),
    attempts: z.int(),
    created_by: z.string().openapi({ example: 'administrator:ada' }),
    created_by_name: actorName,
    created_at: time,
    started_at: time.nullable().openapi({ description: 'When its last attempt began.' }),
    cancel_requested_at: time.nullable(),
    ended_at: time.nullable(),
  })
  .openapi('Task');

export type Task = z.infer<typeof Task>;

const TaskDetail = z
  .strictObject({
    ...Task.shape,
    ended_by_halt: EffectiveHalt.nullable().openapi({
      description: 'The halt that ended it; null where none did.',
    }),
  })
  .openapi('TaskDetail');

export type TaskDetail = z.infer<typeof TaskDetail>;

export const TaskReference = z
  .strictObject({ task_id: taskId, status: TaskStatus })
  .openapi('TaskReference');

export const TASK_LOCATION = {
  Location: { description: 'Of the task.', schema: { type: 'string' as const } },
};

/** What a stream tells of a task. */
export interface TaskProgress extends Pick<Task, 'status' | 'progress' | 'error'> {}

export const BotDeployment = z
  .strictObject({
    deployment_id: z.string(),
    bot_id: z.string(),
    version: z.int(),
    target: z.enum(['backtest', 'paper', 'k8s', 'test']).openapi({
      description: '`test` stands for conformance and stress tests, which never trade.',
    }),
    status: z.enum(['pending', 'running', 'success', 'failed', 'halted']),
    task_id: z.string(),
    result_summary: z
      .record(z.string(), z.unknown())
      .nullable()
      .openapi({ description: 'The figures that matter most, and the hashes of the result.' }),
    created_at: time,
    ended_at: time.nullable(),
  })
  .openapi('BotDeployment');

export type BotDeployment = z.infer<typeof BotDeployment>;

const botPath = z.strictObject({ bot_ref: id('sma-crossover') });

export const startBacktest = defineRoute({
  ...writing,
  method: 'post',
  path: '/bots/{bot_ref}/backtest',
  operationId: 'startBacktest',
  summary: 'Backtest a bot',
  description:
    'Runs a version of the bot, by default the current one, over the data of the catalogue of the server. The same as `service-local backtest` of the same spec: the same events, by their hash. A draft becomes active. The pointers of `invalid_spec` are into the body where that is at fault, else into the spec.',
  idempotent: true,
  request: {
    params: botPath,
    body: json(BacktestRequest, { current: {}, changed: { version: 1, params: { fast: 12 } } }),
  },
  responses: {
    202: {
      ...answer('It is queued.', TaskReference),
      headers: TASK_LOCATION,
    },
  },
  errors: ['not_found', 'conflict', 'invalid_spec'],
});

export const listBotDeployments = defineRoute({
  ...reading,
  method: 'get',
  path: '/bots/{bot_ref}/deployments',
  operationId: 'listBotDeployments',
  summary: 'List the deployments of a bot, the newest first',
  request: { params: botPath, query: z.strictObject(pageQuery) },
  responses: { 200: answer('A page of deployments.', page(BotDeployment)) },
  errors: ['not_found'],
});

export const listTasks = defineRoute({
  ...reading,
  method: 'get',
  path: '/tasks',
  operationId: 'listTasks',
  summary: 'List the tasks, the newest first',
  request: {
    query: z.strictObject({
      ...pageQuery,
      bot: id('sma-crossover').optional().openapi({ description: 'Id or slug of a bot.' }),
      status: TaskStatus.optional(),
      kind: z
        .string()
        .regex(
          new RegExp(`^(${ANY_KIND})(,(${ANY_KIND})){0,9}$`),
          `must be of ${TASK_KINDS.join(', ')}, joined by commas`,
        )
        .optional()
        .openapi({ description: 'Only these, joined by commas.', example: 'backtest,paper' }),
    }),
  },
  responses: { 200: answer('A page of tasks.', page(Task)) },
  errors: ['not_found'],
});

/** The task of the examples. */
export const EXAMPLE_TASK_ID = '0198c0de-0000-7000-8000-00000000dddd';

const taskPath = z.strictObject({ task_id: id(EXAMPLE_TASK_ID) });

export const getTask = defineRoute({
  ...reading,
  method: 'get',
  path: '/tasks/{task_id}',
  operationId: 'getTask',
  summary: 'Show a task',
  request: { params: taskPath },
  responses: { 200: answer('The task.', TaskDetail) },
  errors: ['not_found'],
});

export const streamTask = defineRoute({
  ...reading,
  method: 'get',
  path: '/tasks/{task_id}/events',
  operationId: 'streamTask',
  summary: 'Follow a task',
  description:
    'Server-sent events: `progress` whenever there is some and then `end`, each with `status`, `progress` and `error` of the task as JSON in `data`; a comment every 15 seconds. It ends with the task, when the server stops, or when the token does: go on with `Last-Event-ID`, and what has been told is not told again. An administrator may have 100 streams open, of bots and tasks together.',
  request: {
    params: taskPath,
    headers: z.object({
      'last-event-id': z
        .string()
        .max(64)
        .optional()
        .openapi({ description: 'The last event that was received.' }),
    }),
  },
  responses: {
    200: {
      description: 'Events, as they come.',
      content: { 'text/event-stream': { schema: z.string() } },
    },
  },
  errors: ['not_found', 'rate_limited'],
});

export const cancelTask = defineRoute({
  ...writing,
  method: 'post',
  path: '/tasks/{task_id}/cancel',
  operationId: 'cancelTask',
  summary: 'Cancel a task',
  description:
    'One that is queued is canceled at once; one that is running as soon as its worker hears of it, within seconds. What has ended stays as it ended.',
  request: { params: taskPath },
  responses: { 200: answer('The task as it is now.', Task) },
  errors: ['not_found'],
});

export const getTaskResult = defineRoute({
  ...reading,
  method: 'get',
  path: '/tasks/{task_id}/result',
  operationId: 'getTaskResult',
  summary: 'Show what came of a task',
  request: { params: taskPath },
  responses: {
    200: answer(
      'Its `summary.json`: the document that `service-local backtest --json` prints; of a paper session, that of a backtest of the bars it has seen. Of a conformance or a stress test what it has shown and, worked out whenever it is read, whether it is `stale` and why (`stale_reasons`).',
      z.record(z.string(), z.unknown()).openapi('TaskResult'),
    ),
  },
  errors: ['not_found', 'conflict', 'overloaded'],
});

export const listTaskFiles = defineRoute({
  ...reading,
  method: 'get',
  path: '/tasks/{task_id}/files',
  operationId: 'listTaskFiles',
  summary: 'List the files that a task made',
  request: { params: taskPath },
  responses: {
    200: answer(
      'Their names; none until the task is a success.',
      z.strictObject({ files: z.array(z.string()) }).openapi('TaskFiles'),
    ),
  },
  errors: ['not_found'],
});

export const getTaskFile = defineRoute({
  ...reading,
  method: 'get',
  path: '/tasks/{task_id}/files/{name}',
  operationId: 'getTaskFile',
  summary: 'Read a file that a task made',
  request: { params: z.strictObject({ ...taskPath.shape, name: id('equity.csv') }) },
  responses: {
    200: {
      description: 'The file.',
      content: { 'application/octet-stream': { schema: z.string() } },
    },
  },
  errors: ['not_found'],
});
