/** Sweeps as tools run them: starts the runs of a grid and builds the table of results. */
import type { Summary } from '../backtest/summary.ts';
import { ServiceError } from '../base/errors.ts';
import { at } from './call-api.ts';
import { chooseTask, figuresOf, isOpen, waitForTask } from './runs.ts';
import {
  combinationsOf,
  deflatedSharpeOf,
  ranked,
  type Grid,
  type Params,
  type Sample,
  type Trial,
} from './sweep-trials.ts';
import type { ToolCall } from './tool.ts';

interface StartedSweep {
  readonly task_ids: readonly string[];
  /** Combinations that the strategy rejects, such as a fast average slower than the slow one. */
  readonly refused: readonly { readonly params: Params; readonly detail: string }[];
}

export async function startSweep(
  grid: Grid,
  sample: Sample | undefined,
  begin: (params: Params) => Promise<string>,
): Promise<StartedSweep> {
  const combinations = combinationsOf(grid, sample);
  const task_ids: string[] = [];
  const refused: StartedSweep['refused'][number][] = [];
  for (const params of combinations) {
    try {
      task_ids.push(await begin(params));
    } catch (error) {
      if (!(error instanceof ServiceError) || error.code !== 'invalid_spec') throw error;
      if (refused.length + 1 === combinations.length) throw error;
      refused.push({ params, detail: error.problems[0]?.message ?? error.message });
    }
  }
  return { task_ids, refused };
}

interface SweepTableRequest {
  readonly task_ids: readonly string[];
  /** Figure by which the table is sorted. */
  readonly by: string;
  /** Time of `performance.now()` at which the table is returned even if runs are open. */
  readonly until: number;
}

/** Columns of every sweep table, besides the figure by which it is sorted. */
const TABLE_FIGURES = ['risk.sharpe', 'returns.total', 'risk.max_drawdown', 'trades.count'];

/** Builds the table of a sweep once its runs have ended or the time is over. */
export async function sweepTable(
  { ask, bot, signal, watch }: Omit<ToolCall<unknown>, 'args'>,
  { task_ids, by, until }: SweepTableRequest,
): Promise<{ readonly source: string; readonly data: Readonly<Record<string, unknown>> }> {
  const trials: Trial[] = [];
  for (const task_id of task_ids) {
    await chooseTask(ask, bot, task_id, signal);
    const left = Math.max(0, until - performance.now()) / 1000;
    const { task, result } = await waitForTask(ask, task_id, left, signal);
    const figures = result && figuresOf(result);
    trials.push({
      task_id,
      params: task.input.params ?? {},
      status: task.status,
      started_at: task.started_at,
      ended_at: task.ended_at,
      earlier: (result as Pick<Summary, 'lock'> | undefined)?.lock.trials,
      ...(figures && { figures }),
    });
    const done = trials.filter((trial) => !isOpen(trial)).length;
    const message = `${done} of ${task_ids.length} runs have ended`;
    watch.onProgress?.({ done, total: task_ids.length, message });
  }
  const open = trials.filter(isOpen).length;
  const names = [...new Set([by, ...TABLE_FIGURES])];
  const table = ranked(trials, by).map(({ task_id, params, status, figures }) => {
    const columns = names.map((name) => [name, figures?.[name] ?? null] as const);
    return { task_id, params, ...(figures ? Object.fromEntries(columns) : { status }) };
  });
  return {
    source: task_ids.map((task_id) => at`/tasks/${task_id}/result`).join(' '),
    data: {
      trials: trials.length,
      not_ended: open,
      sorted_by: by,
      deflated_sharpe: open > 0 ? null : await deflatedSharpeOf(ask, trials, signal),
      table,
    },
  };
}
