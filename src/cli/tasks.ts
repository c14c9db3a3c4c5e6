/** What the verbs that have to do with tasks have in common. */
import { setTimeout as wait } from 'node:timers/promises';
import type {
  EffectiveHalt,
  getTask,
  getTaskResult,
  streamTask,
  Task,
  TaskProgress,
} from '../api/tasks.ts';
import type { Summary } from '../backtest/summary.ts';
import type { Client } from '../client/client.ts';
import type { AnswerOf } from '../client/route.ts';
import { ServiceError } from '../base/errors.ts';
import { formatActor } from '../base/format.ts';
import { connect } from './connect.ts';
import { gateFailure } from './gate-failure.ts';
import type { Columns } from './show-items.ts';
import type { Answer, Context } from './verb.ts';

export const TASK_ARGUMENT = { description: 'id of the task, as tasks list shows it' } as const;

export const TASK_STATUSES = [
  'queued',
  'running',
  'success',
  'failed',
  'canceled',
] as const satisfies readonly Task['status'][];

export const TASK_COLUMNS: Columns<Task> = {
  task: ({ task_id }) => task_id,
  kind: ({ kind }) => kind,
  bot: ({ bot_id, version }) => `${bot_id} v${version}`,
  status: ({ status }) => status,
  progress: ({ progress: { done, total } }) =>
    total === null ? '' : `${Math.floor((100 * done) / total)} %`,
  created: ({ created_at }) => created_at,
  ended: ({ ended_at }) => ended_at ?? '',
};

/** Who ended it, when, and why. */
export function formatEndingHalt({ scope, at, by, by_name, reason }: EffectiveHalt): string {
  return `${formatActor(by, by_name)} halted ${scope === 'all' ? 'all bots' : 'the bot'} at ${at}: ${reason}`;
}

/** Why a task failed, as a verb fails with it. */
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
  if (error === null) return undefined;
  const { code, detail, reason, remedy, errors = [] } = error;
  return new ServiceError(code, detail, {
    ...(reason !== undefined && { reason }),
    ...(remedy !== undefined && { remedy }),
    problems: errors.map(({ detail: message, code: what, pointer, suggestion }) => ({
      code: what,
      message,
      ...(pointer !== undefined && { pointer }),
      ...(suggestion !== undefined && { suggestion }),
    })),
  });
}

const LOOK_AGAIN_MS = 1000;

/** How each is ended by hand. */
const END = {
  backtest: 'tasks cancel',
  paper: 'bots paper stop',
  production: 'bots deploy stop',
  conformance: 'tasks cancel',
  stress: 'tasks cancel',
} as const;

/**
 * Waits for the end of a task, with its progress on the terminal. Ctrl-C ends the waiting alone.
 * @throws ServiceError `interrupted`; why the task failed, when it did.
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
    throw new ServiceError('interrupted', `the task goes on without you: ${task_id}`, {
      remedy: `Come back with \`service-local tasks result ${task_id} --wait\`, or end it with \`service-local ${END[kind]} ${task_id}\`.`,
      cause: error,
    });
  }
}

/** Goes on, each time the server ends the stream or cannot be reached, until the task has ended. */
async function followTask(
  server: Client,
  context: Context,
  task_id: string,
  kind: Task['kind'],
): Promise<TaskProgress> {
  let bar: ReturnType<Context['progress']> | undefined;
  let last: string | undefined;
  let isLost = false;
  try {
    for (;;) {
      try {
        const events = server.stream<typeof streamTask>('/tasks/{task_id}/events', {
          params: { task_id },
          headers: last === undefined ? {} : { 'last-event-id': last },
        });
        for await (const { id, data } of events) {
          isLost = false;
          last = id;
          const task = JSON.parse(data) as TaskProgress;
          const { done, total } = task.progress;
          if (total !== null) (bar ??= context.progress(kind, total)).update(done);
          if (task.status !== 'queued' && task.status !== 'running') return task;
        }
      } catch (error) {
        if (!(error instanceof ServiceError && error.retryable)) throw error;
        if (!isLost) context.message(`${error.message}; it is asked again until it answers`);
        isLost = true;
      }
      await wait(LOOK_AGAIN_MS, undefined, { signal: context.signal });
    }
  } finally {
    bar?.stop();
  }
}

export function findTask(server: Client, task_id: string): Promise<AnswerOf<typeof getTask>> {
  return server.call<typeof getTask>('get', '/tasks/{task_id}', { params: { task_id } });
}

/** Undefined for what there is not. */
export async function findOptional<T>(found: Promise<T>): Promise<T | undefined> {
  try {
    return await found;
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'not_found') return undefined;
    throw error;
  }
}

/** What came of a backtest, as that on this machine answers it; of a test what it has shown; of a deployment, its account. */
export async function resultAnswer(server: Client, task_id: string): Promise<Answer> {
  const { showSummary } = await import('./show-backtest.ts');
  const path = '/tasks/{task_id}/result';
  const result = await server.call<typeof getTaskResult>('get', path, { params: { task_id } });
  const { testResultAnswer } = await import('./show-tests.ts');
  const test = testResultAnswer(result);
  if (test !== undefined) return test;
  // Of a production deployment, which has no statistics.
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
