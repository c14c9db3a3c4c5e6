import { Readable } from 'node:stream';
import type { Context } from 'hono';
import { formatInstant, formatInstantOrNull } from '../api/http.ts';
import * as api from '../api/tasks.ts';
import { addStaleness } from '../compliance/tests/staleness.ts';
import { ServiceError } from '../base/errors.ts';
import { withSlugs, type WithSlug } from '../fleet/registry/bot-slugs.ts';
import { getBotId, type BotRegistry } from '../fleet/registry/bots.ts';
import { withNames, type WithNames } from '../identity/actor-names.ts';
import { listFiles, readFile } from '../fleet/tasks/task-files.ts';
import { findEndingHalt, findHalted, type KnownHalt } from '../fleet/tasks/halt-in-force.ts';
import { listTasks } from '../fleet/tasks/task-list.ts';
import type { Db } from '../storage/tables.ts';
import type { ErrorData } from '../base/error-data.ts';
import {
  cancelTask,
  getResult,
  getTask,
  listDeployments,
  startBacktest,
  type BotDeployment,
  type Task,
  type TaskService,
} from '../fleet/tasks/tasks.ts';
import { actorOf } from './authentication.ts';
import { streamEvents } from './event-stream.ts';
import { createOnce } from './idempotency.ts';
import { serializePage } from './serialize-page.ts';
import { serializeProblems } from './problem.ts';
import type { App, AppEnv, Services } from './services.ts';

type Times = [since: number | undefined, until: number | undefined];

export function addTasks(app: App, services: Services): void {
  const { tasks } = services;
  const { read } = tasks.storage;

  app.openapi(api.startBacktest, async (c) => {
    const { bot_ref } = c.req.valid('param');
    const start = (service: TaskService) =>
      startBacktest(service, actorOf(c), bot_ref, c.req.valid('json'));
    return c.json(await startOnce(c, tasks.wake, tasks, start), 202);
  });
  app.openapi(api.listBotDeployments, async (c) => {
    const { bot_ref } = c.req.valid('param');
    const page = await listDeployments(read, bot_ref, c.req.valid('query'));
    return c.json(serializePage(page, serializeDeployment), 200);
  });

  app.openapi(api.listTasks, async (c) => {
    const { limit, cursor, sort, bot, status, ...query } = c.req.valid('query');
    const kinds = query.kind?.split(',') as api.Task['kind'][] | undefined;
    const [since, until] = [query.since, query.until].map((at) => at && Date.parse(at)) as Times;
    const filter = { bot, status, kinds, since, until };
    const page = await listTasks(tasks.storage, filter, { limit, cursor, sort });
    const items = await withSlugs(read, await withNames(read, page.items, 'created_by'));
    const canceled = items.filter((task) => task.status === 'canceled');
    const halted = await findHalted(read, canceled);
    const serialize = ({ result_summary, ...task }: (typeof items)[number]) => ({
      ...serializeTask(task),
      halted: halted.has(task.deployment_id),
      result_summary: parseSummary(result_summary),
    });
    return c.json(serializePage({ ...page, items }, serialize), 200);
  });
  app.openapi(api.getTask, async (c) => {
    const task = await getTask(read, c.req.valid('param').task_id);
    const halt = task.status === 'canceled' ? await findEndingHalt(read, task) : undefined;
    const ended_by_halt = await serializeEffectiveHalt(read, halt);
    return c.json({ ...(await serializeNamedTask(read, task)), ended_by_halt }, 200);
  });
  app.openapi(api.streamTask, async (c) => {
    const { task_id } = c.req.valid('param');
    await getTask(read, task_id);
    const last = c.req.valid('header')['last-event-id'];
    return streamEvents(c, services, `task ${task_id}`, () => followTask(services, task_id, last));
  });
  app.openapi(api.cancelTask, async (c) => {
    const task = await cancelTask(tasks, actorOf(c), c.req.valid('param').task_id);
    tasks.wake();
    return c.json(await serializeNamedTask(read, task), 200);
  });
  app.openapi(api.getTaskResult, async (c) => {
    const { task_id } = c.req.valid('param');
    const result = JSON.parse(await getResult(read, task_id)) as Record<string, unknown>;
    return c.json(await addStaleness(tasks, task_id, result), 200);
  });
  app.openapi(api.listTaskFiles, async (c) => {
    return c.json({ files: await listFiles(read, c.req.valid('param').task_id) }, 200);
  });
  app.openapi(api.getTaskFile, async (c) => {
    const { task_id, name } = c.req.valid('param');
    const file = await readFile(read, task_id, name);
    // Always a download: the file must never be shown as a page of this server.
    return c.body(Readable.toWeb(file) as ReadableStream<Uint8Array>, 200, {
      'Content-Type': 'application/octet-stream',
      'Content-Disposition': 'attachment',
    });
  });
}

/**
 * Starts a task once for each idempotency key, and wakes the task runner.
 * @returns the response body; the URL of the task is in the response's headers.
 */
export async function startOnce<S extends BotRegistry, T extends { readonly task_id: string }>(
  c: Context<AppEnv>,
  wake: () => void,
  service: S,
  start: (service: S) => Promise<T>,
): Promise<T> {
  const task = await createOnce(c, service, start, (started) => started);
  wake();
  c.header('Location', `/tasks/${task.task_id}`);
  return task;
}

export async function requireTaskOfBot(
  db: Db,
  bot_ref: string,
  task_id: string,
  command: string,
): Promise<void> {
  const [bot_id, task] = await Promise.all([getBotId(db, bot_ref), getTask(db, task_id)]);
  if (task.bot_id === bot_id) return;
  throw new ServiceError('not_found', `task ${task_id} does not belong to bot ${bot_ref}`, {
    remedy: `Find its tasks with \`${command}\`.`,
  });
}

async function* followTask(
  { tasks }: Pick<Services, 'tasks'>,
  task_id: string,
  last: string | undefined,
): AsyncGenerator<string | undefined, void> {
  for (let before = last; ;) {
    const task = await getTask(tasks.storage.read, task_id);
    const unnamed = { created_by_name: null, bot_slug: null };
    const { status, progress, error, attempts } = serializeTask({ ...task, ...unnamed });
    // These values identify the event, because each combination occurs only once.
    const id = `${attempts}-${progress.done}-${status}`;
    const hasEnded = task.ended_at !== null;
    if (id !== before) {
      const data: api.TaskProgress = { status, progress, error };
      const event = hasEnded ? 'end' : 'progress';
      yield `id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
      before = id;
    }
    if (hasEnded) return;
    yield undefined;
  }
}

export async function serializeNamedTask(db: Db, row: Task): Promise<api.Task> {
  const [task] = await withSlugs(db, await withNames(db, [row], 'created_by'));
  return serializeTask(task!);
}

function serializeTask(row: WithSlug<WithNames<Task, 'created_by'>>): api.Task {
  const { input, progress_done: done, progress_total: total, error, ...task } = row;
  return {
    ...task,
    input: JSON.parse(input) as api.Task['input'],
    progress: { done, total },
    error: error === null ? null : serializeError(JSON.parse(error) as ErrorData),
    created_at: formatInstant(task.created_at),
    started_at: formatInstantOrNull(task.started_at),
    cancel_requested_at: formatInstantOrNull(task.cancel_requested_at),
    ended_at: formatInstantOrNull(task.ended_at),
  };
}

function serializeError({ message, problems = [], ...rest }: ErrorData): api.Task['error'] {
  return { ...rest, detail: message, ...serializeProblems(problems) };
}

export async function serializeEffectiveHalt(
  db: Db,
  halt: KnownHalt | undefined,
): Promise<api.EffectiveHalt | null> {
  const [named] = await withNames(db, halt === undefined ? [] : [halt], 'requested_by');
  if (named === undefined) return null;
  const {
    halt_id,
    scope,
    requested_at,
    requested_by: by,
    requested_by_name: by_name,
    reason,
  } = named;
  return { halt_id, scope, at: formatInstant(requested_at), by, by_name, reason };
}

export function serializeDeployment(row: BotDeployment): api.BotDeployment {
  const { result_summary } = row;
  return {
    ...row,
    result_summary: parseSummary(result_summary),
    created_at: formatInstant(row.created_at),
    ended_at: formatInstantOrNull(row.ended_at),
  };
}

function parseSummary(text: string | null): api.BotDeployment['result_summary'] {
  return text === null ? null : (JSON.parse(text) as Record<string, unknown>);
}
