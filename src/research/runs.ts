/** Finds and awaits runs for tools. */
import { setTimeout as wait } from 'node:timers/promises';
import { ServiceError } from '../base/errors.ts';
import { at, read, send, withQuery, type Ask } from './call-api.ts';
import type { Params } from './sweep-trials.ts';
import type { Reach, ToolAnswer, ToolCall, Watch } from './tool.ts';

// The fields of API responses that tools use.
export interface BotAnswer {
  readonly id: string;
  readonly document: { readonly spec: { readonly data: DataOfSpec } };
}

interface DataOfSpec {
  readonly source?: string;
  readonly sources?: Readonly<Record<string, string>>;
}

export interface TaskAnswer {
  readonly task_id: string;
  readonly bot_id: string;
  readonly status: string;
  readonly started_at: string | null;
  readonly ended_at: string | null;
  readonly progress?: { readonly done: number; readonly total: number | null };
  readonly input: {
    readonly params?: Params;
    readonly patch?: unknown;
    readonly bundle_hash?: unknown;
  };
}

export interface ListAnswer<T> {
  readonly items: readonly T[];
}

export type Result = Readonly<Record<string, unknown>>;

const POLL_MS = 250;

/** Operations that check whether a run belongs to the bot. */
export const OWN_TASK: readonly Reach[] = ['GET /tasks/{task_id}', 'GET /bots/{bot_ref}'];

/** Kinds of tasks that have figures and trades. */
const RUN_KINDS = 'backtest,paper';

/** Number of newest runs that are searched. */
const NEWEST_RUNS = 100;

/**
 * Checks that a run belongs to the bot. Without an id, chooses the newest successful run, preferring
 * runs without changed parameters.
 * @throws ServiceError `not_found`, also for a run of another bot.
 */
export async function chooseTask(
  ask: Ask,
  bot: string | undefined,
  asked: string | undefined,
  signal: AbortSignal,
): Promise<string> {
  if (asked === undefined) {
    const query = { bot, kind: RUN_KINDS, status: 'success', limit: NEWEST_RUNS };
    const path = withQuery('/tasks', query);
    const { items } = await read<ListAnswer<TaskAnswer>>(ask, path, signal);
    const isUnchanged = ({ input }: TaskAnswer): boolean =>
      [input.params, input.patch, input.bundle_hash].every((change) => change === undefined);
    const chosen = items.find(isUnchanged) ?? items[0];
    if (chosen !== undefined) return chosen.task_id;
    throw new ServiceError('not_found', 'no run has succeeded yet', {
      reason: 'no_result',
      remedy: 'Run a backtest first.',
    });
  }
  const { bot_id } = await read<TaskAnswer>(ask, at`/tasks/${asked}`, signal);
  if (bot === undefined || bot === bot_id) return asked;
  const { id } = await read<BotAnswer>(ask, at`/bots/${bot}`, signal);
  if (id === bot_id) return asked;
  throw new ServiceError('not_found', `the run ${asked} does not belong to this bot`, {
    reason: 'another_bot',
  });
}

/** Response to a request that starts a run, or one that starts it along with something else. */
type BegunRun = Pick<TaskAnswer, 'task_id'> | { readonly task: Pick<TaskAnswer, 'task_id'> };

type Begin = <A extends BegunRun>(path: string, body: unknown) => Promise<A>;

/** Runs a tool that starts runs, and cancels these runs if the caller cancels the call. */
export async function withCancelableRuns<T>(
  { ask, signal, watch }: Pick<ToolCall<unknown>, 'ask' | 'signal' | 'watch'>,
  work: (begin: Begin) => Promise<T>,
): Promise<T> {
  const begun: string[] = [];
  try {
    return await work(async (path, body) => {
      signal.throwIfAborted();
      // Sent without the signal: after an aborted request, the started run would be unknown.
      const begunWith = await send<BegunRun>(ask, path, body);
      begun.push('task' in begunWith ? begunWith.task.task_id : begunWith.task_id);
      return begunWith as never;
    });
  } catch (error) {
    if (signal.aborted && watch.isAbandoned?.() === true) {
      await Promise.allSettled(
        begun.map((task_id) => send(ask, at`/tasks/${task_id}/cancel`, undefined)),
      );
    }
    throw error;
  }
}

export async function resultOf(
  ask: Ask,
  task_id: string,
  seconds: number,
  signal: AbortSignal,
  onProgress?: Watch['onProgress'],
): Promise<ToolAnswer> {
  const { task, result } = await waitForTask(ask, task_id, seconds, signal, onProgress);
  return result === undefined
    ? { source: at`/tasks/${task_id}`, data: task }
    : { source: at`/tasks/${task_id}/result`, data: result };
}

/** Waits until a task ends, with its result if it succeeded, or returns the open task after `seconds`. */
export async function waitForTask(
  ask: Ask,
  task_id: string,
  seconds: number,
  signal: AbortSignal,
  onProgress?: Watch['onProgress'],
): Promise<{ readonly task: TaskAnswer; readonly result?: Result }> {
  const until = performance.now() + seconds * 1000;
  let bars = 0;
  for (;;) {
    const task = await read<TaskAnswer>(ask, at`/tasks/${task_id}`, signal);
    const { done, total } = task.progress ?? { done: 0, total: null };
    if (done > bars) {
      bars = done;
      onProgress?.({ done, total: total ?? undefined, message: `${done} bars done` });
    }
    if (task.status === 'success') {
      return { task, result: await read<Result>(ask, at`/tasks/${task_id}/result`, signal) };
    }
    if (!isOpen(task) || performance.now() >= until) return { task };
    await wait(POLL_MS, undefined, { signal });
  }
}

export const isOpen = ({ status }: Pick<TaskAnswer, 'status'>): boolean =>
  status === 'queued' || status === 'running';

/** Groups of a result whose figures are compared. */
const COMPARED = ['equity', 'returns', 'risk', 'trades', 'costs', 'exposure', 'orders'];

export function figuresOf(result: Result): Readonly<Record<string, number>> {
  const entries = COMPARED.flatMap((group) =>
    Object.entries(result[group] ?? {}).flatMap(([name, figure]) =>
      typeof figure === 'number' ? [[`${group}.${name}`, figure] as const] : [],
    ),
  );
  return Object.fromEntries(entries);
}
