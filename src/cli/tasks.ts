import type {
  EffectiveHalt,
  getTask,
  getTaskResult,
  ListedTask,
  streamTask,
  Task,
  TaskOrder,
  TaskProgress,
} from '../api/tasks.ts';
import type { Summary } from '../backtest/summary.ts';
import type { Client } from '../client/client.ts';
import { errorFromProblem } from '../client/problem.ts';
import type { AnswerOf } from '../client/route.ts';
import { ServiceError } from '../base/errors.ts';
import { formatActor } from '../base/format.ts';
import { connect } from './connect.ts';
import { followStream } from './follow-stream.ts';
import { gateFailure } from './gate-failure.ts';
import type { Columns } from './show-items.ts';
import type { Answer, Context } from './verb.ts';

export const TASK_ARGUMENT = { description: 'id of the task; see tasks list' } as const;

export const TASK_ORDERS = [
  'newest',
  'oldest',
  'total_return',
  'sharpe',
  'max_drawdown',
] as const satisfies readonly TaskOrder[];

export const TASK_COLUMNS: Columns<Omit<ListedTask, 'result_summary'>> = {
  task: ({ task_id }) => task_id,
  kind: ({ kind }) => kind,
  bot: ({ bot_id, bot_slug, version, input: { bundle_hash } }) =>
    `${bot_slug ?? bot_id} v${version}${bundle_hash === undefined ? '' : ', unsaved code'}`,
  status: ({ status, halted }) => (halted ? 'halted' : status),
  progress: ({ ended_at, progress: { done, total } }) =>
    ended_at !== null || total === null ? '' : `${Math.floor((100 * done) / total)} %`,
  created: ({ created_at }) => created_at,
  ended: ({ ended_at }) => ended_at ?? '',
};

export function formatEndingHalt({ scope, at, by, by_name, reason }: EffectiveHalt): string {
  return `${formatActor(by, by_name)} halted ${scope === 'all' ? 'all bots' : 'the bot'} at ${at}: ${reason}`;
}

/** Error of a task that failed or was canceled; undefined for any other task. */
export async function taskFailure(
  server: Client,
  task_id: string,
  { status, error }: Pick<TaskProgress, 'status' | 'error'>,
): Promise<ServiceError | undefined> {
  if (status === 'canceled') {
    const { ended_by_halt: halt } = await findTask(server, task_id);
    const why = halt === null ? '' : `: ${formatEndingHalt(halt)}`;
    return new ServiceError('failure', `the task was canceled${why}`);
  }
  return error === null ? undefined : errorFromProblem(error);
}

const STOP_VERBS = {
  backtest: 'tasks cancel',
  paper: 'bots paper stop',
  production: 'bots deploy stop',
  conformance: 'tasks cancel',
  stress: 'tasks cancel',
  sweep: 'tasks cancel',
  walk_forward: 'tasks cancel',
  robustness: 'tasks cancel',
} as const;

/**
 * Waits until a task has ended and shows its progress. Ctrl-C stops only the waiting.
 * @throws ServiceError `interrupted`; the error of a failed task
 */
export async function waitForTask(
  context: Context,
  task_id: string,
  kind: Task['kind'] = 'backtest',
): Promise<void> {
  const { signal } = context;
  context.message(`waiting for task ${task_id}; Ctrl-C leaves it running`);
  try {
    const server = await connect(context, signal);
    const last = await followTask(server, context, task_id, kind);
    const failure = await taskFailure(server, task_id, last);
    if (failure !== undefined) throw failure;
  } catch (error) {
    if (!signal.aborted) throw error;
    throw new ServiceError('interrupted', `stopped waiting; task ${task_id} continues`, {
      remedy: `Wait again with \`service-local tasks result ${task_id} --wait\`, or end the task with \`service-local ${STOP_VERBS[kind]} ${task_id}\`.`,
      cause: error,
    });
  }
}

/** Follows the events of a task until it has ended. */
async function followTask(
  server: Client,
  context: Context,
  task_id: string,
  kind: Task['kind'],
): Promise<TaskProgress> {
  const stream = followStream(
    (headers) =>
      server.stream<typeof streamTask>('/tasks/{task_id}/events', { params: { task_id }, headers }),
    context,
    context.signal,
  );
  let bar: ReturnType<Context['progress']> | undefined;
  let task: TaskProgress | undefined;
  try {
    for await (const data of stream) {
      task = JSON.parse(data) as TaskProgress;
      const { done, total } = task.progress;
      if (total !== null) (bar ??= context.progress(kind, total)).update(done);
      if (task.status !== 'queued' && task.status !== 'running') break;
    }
    return task!;
  } finally {
    bar?.stop();
  }
}

export function findTask(server: Client, task_id: string): Promise<AnswerOf<typeof getTask>> {
  return server.call<typeof getTask>('get', '/tasks/{task_id}', { params: { task_id } });
}

/** Answer of a verb that does not wait for its task; `next` is the command that shows more. */
export function startedAnswer(task: Pick<Task, 'task_id' | 'status'>, next?: string): Answer {
  return answerWithNext(task, task.status, next);
}

export function stopAnswer(task: Task, next?: string): Answer {
  if (task.ended_at === null) return answerWithNext(task, 'stopping', next);
  return { data: task, show: (out) => out.line(`task ${task.task_id} is ${task.status}`) };
}

function answerWithNext(
  task: Pick<Task, 'task_id'>,
  state: string,
  next = `tasks result ${task.task_id} --wait`,
): Answer {
  return {
    data: task,
    show(out) {
      out.line(`task ${task.task_id} is ${state}`);
      out.line(`See \`service-local ${next}\`.`);
    },
  };
}

/** Result of a task: of a test, of a deployment, or a summary as `backtest` prints it. */
export async function resultAnswer(server: Client, task_id: string): Promise<Answer> {
  const { showSummary } = await import('./show-backtest.ts');
  const path = '/tasks/{task_id}/result';
  const result = await server.call<typeof getTaskResult>('get', path, { params: { task_id } });
  const { testResultAnswer } = await import('./show-tests.ts');
  const test = testResultAnswer(result);
  if (test !== undefined) return test;
  const { analysisAnswer } = await import('./show-analyses.ts');
  const analysis = analysisAnswer(result);
  if (analysis !== undefined) return analysis;
  // A production deployment has no statistics.
  if (!Object.hasOwn(result, 'hashes')) {
    return { data: result, show: (out) => out.line(JSON.stringify(result, undefined, 2)) };
  }
  const summary = result as unknown as Summary;
  return {
    data: summary,
    show: (out) => showSummary(out, summary),
    failure: gateFailure(summary),
  };
}
