import { sql } from 'kysely';
import type { ListedStatus } from '../../base/task-statuses.ts';
import {
  readNumberedPage,
  readRowsPage,
  type Page,
  type PageRequest,
} from '../../storage/paging.ts';
import type { Storage } from '../../storage/storage.ts';
import { getBotId } from '../registry/bots.ts';
import { TASK_FIELDS, type BotDeployment, type Task } from './tasks.ts';

/** Times are milliseconds since the Unix epoch. */
interface TaskFilter {
  readonly bot?: string | undefined;
  readonly status?: ListedStatus | undefined;
  readonly kinds?: readonly Task['kind'][] | undefined;
  /** Queued at this time or later. */
  readonly since?: number | undefined;
  /** Queued before this time. */
  readonly until?: number | undefined;
}

interface TaskListRequest extends PageRequest {
  /** A list by a figure begins with the best run, and ends with tasks without a result. */
  readonly sort: 'newest' | 'oldest' | 'total_return' | 'sharpe' | 'max_drawdown';
}

/** A task with the short form of its result, as JSON. */
type ListedTask = Task & Pick<BotDeployment, 'result_summary'>;

/** @throws ServiceError `not_found` for the bot */
export async function listTasks(
  { read, kind: database }: Pick<Storage, 'read' | 'kind'>,
  { bot, status, kinds, since, until }: TaskFilter,
  { sort, ...page }: TaskListRequest,
): Promise<Page<ListedTask>> {
  const bot_id = bot === undefined ? undefined : await getBotId(read, bot);
  let query = read
    .selectFrom('tasks')
    .innerJoin('bot_deployments', 'bot_deployments.task_id', 'tasks.task_id')
    .select(TASK_FIELDS.map((name) => `tasks.${name}` as const))
    .select('bot_deployments.result_summary');
  if (bot_id !== undefined) query = query.where('tasks.bot_id', '=', bot_id);
  if (status === 'halted') {
    query = query
      .where('tasks.status', '=', 'canceled')
      .where('bot_deployments.deployment_id', 'in', (is) =>
        is.selectFrom('halted_deployments').select('deployment_id'),
      );
  } else if (status !== undefined) query = query.where('tasks.status', '=', status);
  if (kinds !== undefined) query = query.where('tasks.kind', 'in', kinds);
  if (since !== undefined) query = query.where('tasks.created_at', '>=', since);
  if (until !== undefined) query = query.where('tasks.created_at', '<', until);
  const filter = [bot_id, status, kinds?.join(), String(since), String(until)];
  const list = ['tasks', ...filter, sort] as const;
  if (sort === 'newest' || sort === 'oldest') {
    const id = { name: 'task_id', column: 'tasks.task_id' } as const;
    return readRowsPage(list, page, query, id, sort === 'newest' ? 'desc' : 'asc');
  }
  const summary = sql.ref<string>('bot_deployments.result_summary');
  // Without parameters, so that it is the expression of an index.
  const by =
    database === 'sqlite'
      ? sql<number | null>`json_extract(${summary}, ${sql.lit(`$.metrics.${sort}`)})`
      : sql<
          number | null
        >`(${summary}::json #>> ${sql.lit(`{metrics,${sort}}`)})::double precision`;
  // A higher value is better in each of these figures.
  const id = { name: 'task_id', column: 'bot_deployments.task_id' } as const;
  return readNumberedPage(list, page, query, id, by);
}
