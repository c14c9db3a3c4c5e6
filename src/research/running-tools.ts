import { z } from 'zod';
import { at } from './call-api.ts';
import { OWN_TASK, resultOf, withCancelableRuns, type TaskAnswer } from './runs.ts';
import { startSweep, sweepTable } from './parameter-sweep.ts';
import { MOST_COMBINATIONS } from './sweep-trials.ts';
import { defineTool, taskId, version, type Reach, type Tool } from './tool.ts';

/** Longest time that a tool waits for a run before it returns the unfinished task. */
const MOST_WAIT_SECONDS = 60;

/** Most values of a parameter in a grid. */
const MOST_VALUES = 1000;

const oneValue = z.union([z.number(), z.boolean(), z.string()]);

const days = {
  from: z.string().max(40).optional().describe('First day of the data to use, such as 2000-01-31.'),
  to: z.string().max(40).optional().describe('Last day of the data to use.'),
};

const values = {
  ...days,
  params: z
    .record(z.string(), oneValue)
    .optional()
    .describe('Parameters of the strategy that replace those of the spec.'),
};

/** Cancels a run that the tool itself started. */
const CANCEL: Reach = 'POST /tasks/{task_id}/cancel';

/** Operations that read the results of runs. */
const OF_RUNS: readonly Reach[] = [
  'GET /tasks/{task_id}/result',
  'GET /tasks/{task_id}/files/{name}',
];

const metric = z
  .string()
  .max(100)
  .default('risk.sharpe')
  .describe(
    'Figure of the result by which the table is sorted, best first, such as returns.total.',
  );

/** Tools that run backtests, and propose versions with their backtests. */
export const RUNNING_TOOLS: readonly Tool[] = [
  defineTool({
    name: 'run_backtest',
    title: 'Run a backtest',
    description:
      'Runs a backtest of a version of the bot (by default the current one), optionally with other parameters or days, and waits for the result. It does not change the bot.',
    scope: 'write',
    bot: 'required',
    reaches: [
      'POST /bots/{bot_ref}/backtest',
      'GET /tasks/{task_id}',
      'GET /tasks/{task_id}/result',
      CANCEL,
    ],
    input: z.strictObject({
      version: version.optional(),
      ...values,
      wait_seconds: z.number().min(0).max(MOST_WAIT_SECONDS).default(30),
    }),
    run(call) {
      const { ask, bot, signal, watch } = call;
      const { wait_seconds, ...asked } = call.args;
      return withCancelableRuns(call, async (begin) => {
        const { task_id } = await begin<TaskAnswer>(at`/bots/${bot!}/backtest`, asked);
        return resultOf(ask, task_id, wait_seconds, signal, watch.onProgress);
      });
    },
  }),
  defineTool({
    name: 'run_sweep',
    title: 'Sweep parameters',
    description: `Runs a backtest of a version of the bot for every combination of the given values, or for a random sample of a large grid (at most ${MOST_COMBINATIONS} runs), and waits for the results. Returns a table with the best run first, and the deflated Sharpe ratio of the run with the highest Sharpe ratio, which accounts for all trials of the strategy on these data that the server has counted, by any user or agent. There is no guided search and no pruning. It does not change the bot.`,
    scope: 'write',
    bot: 'required',
    reaches: ['POST /bots/{bot_ref}/backtest', CANCEL, ...OWN_TASK, ...OF_RUNS],
    input: z.strictObject({
      grid: z
        .record(z.string(), z.array(oneValue).min(1).max(MOST_VALUES))
        .refine((grid) => Object.keys(grid).length > 0, 'must have at least one parameter')
        .refine((grid) => Object.keys(grid).length <= 5, 'must have at most five parameters')
        .describe(
          'Values to try for each parameter, such as {"fast": [5, 10], "slow": [50, 100]}.',
        ),
      sample: z
        .strictObject({
          trials: z.int().min(1).max(MOST_COMBINATIONS),
          seed: z.int().min(0).default(1),
        })
        .optional()
        .describe(
          'Runs this many combinations of the grid, chosen at random; the same seed chooses the same ones. By default, all run.',
        ),
      version: version.optional(),
      ...days,
      metric,
      wait_seconds: z.number().min(0).max(MOST_WAIT_SECONDS).default(MOST_WAIT_SECONDS),
    }),
    run(call) {
      const { grid, sample, metric: by, wait_seconds, ...asked } = call.args;
      return withCancelableRuns(call, async (begin) => {
        const path = at`/bots/${call.bot!}/backtest`;
        const { task_ids, refused } = await startSweep(grid, sample, async (params) => {
          const { task_id } = await begin<TaskAnswer>(path, { ...asked, params });
          return task_id;
        });
        const until = performance.now() + wait_seconds * 1000;
        const { source, data } = await sweepTable(call, { task_ids, by, until });
        return { source, data: { ...data, refused } };
      });
    },
  }),
  defineTool({
    name: 'read_sweep',
    title: 'Read a sweep',
    description:
      'Returns the table of run_sweep again, for the task_ids that it returned: after an unfinished sweep, or to sort by another metric. The deflated Sharpe ratio is that of the best of the given runs, and accounts for the trials that the server had counted when the last of them started.',
    scope: 'read',
    bot: 'optional',
    reaches: [...OWN_TASK, ...OF_RUNS],
    input: z.strictObject({ task_ids: z.array(taskId).min(1).max(MOST_COMBINATIONS), metric }),
    run: (call) =>
      sweepTable(call, { task_ids: call.args.task_ids, by: call.args.metric, until: 0 }),
  }),
  defineTool({
    name: 'propose_version',
    title: 'Propose a version',
    description:
      'Proposes a new version of the bot to a person, with a rationale, and waits for the result of its backtest. The bot does not change: only a person can accept the proposal, with the command in `apply_with`. Give that person the command, the changes and the result of the backtest. A proposal cannot raise or remove a risk limit, nor change slug, kind, attribution or deployment.',
    scope: 'write',
    bot: 'required',
    reaches: [
      'POST /bots/{bot_ref}/proposals',
      'GET /tasks/{task_id}',
      'GET /tasks/{task_id}/result',
      CANCEL,
    ],
    input: z.strictObject({
      ...values,
      patch: z
        .record(z.string(), z.unknown())
        .optional()
        .describe(
          'JSON merge patch (RFC 7396) of the document that read_bot returns, such as {"spec": {"engine": {"units": "whole"}}}, for changes beyond params, from and to. It replaces lists as a whole; null removes a field.',
        ),
      rationale: z
        .string()
        .min(1)
        .max(2000)
        .describe('Reason for the change, for the person who decides.'),
      wait_seconds: z.number().min(0).max(MOST_WAIT_SECONDS).default(30),
    }),
    run(call) {
      const { ask, bot, signal, watch } = call;
      const { wait_seconds, ...asked } = call.args;
      return withCancelableRuns(call, async (begin) => {
        const path = at`/bots/${bot!}/proposals`;
        const proposal = await begin<{ readonly task: TaskAnswer }>(path, asked);
        const { task_id } = proposal.task;
        const { source, data } = await resultOf(
          ask,
          task_id,
          wait_seconds,
          signal,
          watch.onProgress,
        );
        return { source, data: { proposal, backtest: data } };
      });
    },
  }),
];
