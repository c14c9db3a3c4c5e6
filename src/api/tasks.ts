import { LISTED_STATUSES, TASK_STATUSES } from '../base/task-statuses.ts';
import { z } from '@hono/zod-openapi';
import { analysis } from './analysis-fields.ts';
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
  Problem,
  sha256,
  time,
} from './http.ts';

const reading = { tags: ['Tasks'], security: administrator('read') };
const writing = { tags: ['Tasks'], security: administrator('write') };

export const TASK_KINDS = [
  'backtest',
  'paper',
  'production',
  'conformance',
  'stress',
  'sweep',
  'walk_forward',
  'robustness',
] as const;
const ANY_KIND = TASK_KINDS.join('|');

const TaskStatus = z.enum(TASK_STATUSES);

export const changes = {
  from: z.string().optional().describe('First day used, for example 2020-01-31.'),
  to: z.string().optional().describe('Last day used.'),
  params: z
    .record(z.string(), z.union([z.number(), z.boolean(), z.string()]))
    .optional()
    .describe('Parameters of the strategy.'),
};

export const patch = z
  .record(z.string(), z.unknown())
  .optional()
  .describe('A JSON merge patch (RFC 7396) of the whole document; the other values override it.');

const locked = {
  verify_lock: z
    .boolean()
    .optional()
    .describe(
      'Fail with `lock_drift` if data, engine, strategy or seed differ from the first successful backtest of this version with these values. Unsaved `files` are compared with those of the version.',
    ),
};

const holdout = {
  open_holdout: z
    .boolean()
    .optional()
    .describe('Run over the holdout of the spec, too, and record that in the trial ledger.'),
};

export const speed = z
  .union([z.number().gt(0), z.literal('max')])
  .describe('Speed relative to the market; `max` replays as fast as possible.');

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
    bundle_hash: sha256
      .nullable()
      .optional()
      .describe(
        'Hash of the unsaved files of a backtest; null if it runs without files. Absent if it runs the files of the version.',
      ),
    ...locked,
    ...holdout,
    speed: speed.optional(),
    live: z.strictObject({ exchange: z.string() }).optional(),
    production: z.record(z.string(), z.unknown()).optional(),
    ...tests,
    analysis: z.strictObject(analysis).optional(),
  })
  .openapi('TaskInput', {
    description:
      'Values that replace those of the spec, and inputs of one kind of task. `speed` is for paper sessions, `live` for paper sessions that follow an exchange, `production` for deployments to a cluster, and `patch` for backtests with other values. `analysis` is for sweeps, walk-forward analyses and robustness tests. The remaining fields are for conformance and stress tests.',
  });

const BacktestRequest = z
  .strictObject({
    version: z.int().min(1).optional(),
    ...changes,
    patch,
    files: z
      .record(z.string(), z.string())
      .optional()
      .describe(
        'All files of the run, as in `BotInput`. They replace the files of the version, and the backtest does not save them in a version.',
      ),
    ...locked,
    ...holdout,
  })
  .openapi('BacktestRequest', {
    description:
      'A version, the current one by default, and values and files to use in place of its own.',
  });

const progress = z
  .strictObject({ done: z.int(), total: z.int().nullable() })
  .describe(
    'Progress in bars; for a conformance test in cases, for a stress test in steps, for a search of parameters in trials. `total` is null until the data are read, and if it is unknown.',
  );

const taskId = z.string().describe('Also the `run_id` of the events of the task.');

/** A halt as reported with the bot or task that it halted. */
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
    bot_slug: z.string().nullable().describe('Current slug of the bot.'),
    version: z.int(),
    deployment_id: z.string(),
    status: TaskStatus,
    input: TaskInput,
    progress,
    error: Problem.pick({ code: true, detail: true, reason: true, remedy: true, errors: true })
      .nullable()
      .describe('Cause of the failure.'),
    attempts: z.int(),
    created_by: z.string().openapi({ example: 'administrator:ada' }),
    created_by_name: actorName,
    created_at: time,
    started_at: time.nullable().describe('Start of the last attempt.'),
    cancel_requested_at: time.nullable(),
    ended_at: time.nullable(),
  })
  .openapi('Task');

export type Task = z.infer<typeof Task>;

const TaskDetail = z
  .strictObject({
    ...Task.shape,
    ended_by_halt: EffectiveHalt.nullable().describe(
      'The halt that ended the task; null if no halt did.',
    ),
  })
  .openapi('TaskDetail');

export type TaskDetail = z.infer<typeof TaskDetail>;

export const TaskReference = z
  .strictObject({ task_id: taskId, status: TaskStatus })
  .openapi('TaskReference');

export const TASK_LOCATION = {
  Location: { description: 'URL of the task.', schema: { type: 'string' as const } },
};

/** Data of the events in a stream of a task. */
export interface TaskProgress extends Pick<Task, 'status' | 'progress' | 'error'> {}

const result_summary = z
  .record(z.string(), z.unknown())
  .nullable()
  .describe('Main figures and the hashes of the result.');

export const BotDeployment = z
  .strictObject({
    deployment_id: z.string(),
    bot_id: z.string(),
    version: z.int(),
    target: z
      .enum(['backtest', 'paper', 'k8s', 'test'])
      .describe('`test` is used for tests and searches of parameters, which never trade.'),
    status: z.enum(['pending', 'running', 'success', 'failed', 'halted']),
    task_id: z.string(),
    result_summary,
    created_at: time,
    ended_at: time.nullable(),
  })
  .openapi('BotDeployment');

export type BotDeployment = z.infer<typeof BotDeployment>;

const ListedTask = z
  .strictObject({
    ...Task.shape,
    halted: z.boolean().describe('Whether a halt ended the task, whose status is then `canceled`.'),
    result_summary,
  })
  .openapi('ListedTask');

export type ListedTask = z.infer<typeof ListedTask>;

export const TASK_ORDERS = ['newest', 'oldest', 'total_return', 'sharpe', 'max_drawdown'] as const;

export type TaskOrder = (typeof TASK_ORDERS)[number];

const taskFilter = {
  bot: id('sma-crossover').optional().describe('Id or slug of a bot.'),
  status: z
    .enum(LISTED_STATUSES)
    .optional()
    .describe('`halted` selects the canceled tasks that a halt ended.'),
  kind: z
    .string()
    .regex(
      new RegExp(`^(${ANY_KIND})(,(${ANY_KIND})){0,9}$`),
      `must be one or more of ${TASK_KINDS.join(', ')}, joined by commas`,
    )
    .optional()
    .openapi({
      description: 'Only tasks of these kinds, joined by commas.',
      example: 'backtest,paper',
    }),
  since: time.optional().describe('Only tasks queued at this time or later.'),
  until: time.optional().describe('Only tasks queued before this time.'),
  sort: z
    .enum(TASK_ORDERS)
    .default('newest')
    .describe(
      'Order of the list. In the order of a figure, the best run comes first, and tasks without a result come last.',
    ),
};

export const startBacktest = defineRoute({
  ...writing,
  method: 'post',
  path: '/bots/{bot_ref}/backtest',
  operationId: 'startBacktest',
  summary: 'Backtest a bot',
  description:
    'Runs a version of the bot over the data in the catalogue of the server. The result has the same events, by their hash, as `service-local backtest` of the same spec. A draft bot becomes active. If `files` differ from the files of the version, the result contains their hash as `unsaved_bundle`, and the versions of the bot do not change. The pointers of an `invalid_spec` error refer to the body if the error is there, else to the spec.',
  idempotent: true,
  request: {
    params: botPath,
    body: jsonBody(BacktestRequest, { current: {}, changed: { version: 1, params: { fast: 12 } } }),
  },
  responses: {
    202: {
      ...jsonResponse('The backtest is queued.', TaskReference),
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
  summary: 'List the deployments of a bot, newest first',
  request: { params: botPath, query: z.strictObject(pageQuery) },
  responses: { 200: jsonResponse('A page of deployments.', page(BotDeployment)) },
  errors: ['not_found'],
});

export const listTasks = defineRoute({
  ...reading,
  method: 'get',
  path: '/tasks',
  operationId: 'listTasks',
  summary: 'List the tasks',
  request: { query: z.strictObject({ ...pageQuery, ...taskFilter }) },
  responses: { 200: jsonResponse('A page of tasks.', page(ListedTask)) },
  errors: ['not_found'],
});

export const EXAMPLE_TASK_ID = '0198c0de-0000-7000-8000-00000000dddd';

const taskPath = z.strictObject({ task_id: id(EXAMPLE_TASK_ID) });

export const getTask = defineRoute({
  ...reading,
  method: 'get',
  path: '/tasks/{task_id}',
  operationId: 'getTask',
  summary: 'Show a task',
  request: { params: taskPath },
  responses: { 200: jsonResponse('The task.', TaskDetail) },
  errors: ['not_found'],
});

export const streamTask = defineRoute({
  ...reading,
  method: 'get',
  path: '/tasks/{task_id}/events',
  operationId: 'streamTask',
  summary: 'Follow a task',
  description:
    'A stream of server-sent events: `progress` after each change and finally `end`, each with `status`, `progress` and `error` of the task as JSON in `data`, and a comment every 15 seconds. The stream ends with the task, when the server stops, or when the token expires or is revoked. Resume with `Last-Event-ID`, which skips what was already sent. An administrator may have at most 100 streams open, of bots and tasks together.',
  request: {
    params: taskPath,
    headers: z.object({
      'last-event-id': z.string().max(64).optional().describe('Id of the last event received.'),
    }),
  },
  responses: {
    200: {
      description: 'Events as they occur.',
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
    'A queued task is canceled at once, a running task within seconds, when its worker receives the request. A task that has ended does not change.',
  request: { params: taskPath },
  responses: { 200: jsonResponse('The updated task.', Task) },
  errors: ['not_found'],
});

export const getTaskResult = defineRoute({
  ...reading,
  method: 'get',
  path: '/tasks/{task_id}/result',
  operationId: 'getTaskResult',
  summary: 'Show the result of a task',
  request: { params: taskPath },
  responses: {
    200: jsonResponse(
      'The `summary.json` of the task, which is the document that `service-local backtest --json` prints. The result of a paper session has the form of a backtest of the bars seen so far. The result of a conformance or stress test also says whether it is `stale`, and why (`stale_reasons`); both are computed with each request.',
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
  summary: 'List the result files of a task',
  request: { params: taskPath },
  responses: {
    200: jsonResponse(
      'Names of the files. A failed backtest has at most `log.txt`, the lines that its strategy logged. Other tasks have no files until they succeed.',
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
  summary: 'Read a result file of a task',
  request: { params: z.strictObject({ ...taskPath.shape, name: id('equity.csv') }) },
  responses: {
    200: {
      description: 'The file.',
      content: { 'application/octet-stream': { schema: z.string() } },
    },
  },
  errors: ['not_found'],
});
