/** The table of tasks, for all bots or one bot: filter, sort, selection of runs to compare. */
import { LISTED_STATUSES, type ListedStatus } from '../../base/task-statuses.ts';
import { html } from 'hono/html';
import {
  TASK_KINDS,
  TASK_ORDERS,
  type listTasks,
  type ListedTask,
  type Task,
  type TaskOrder,
} from '../../api/tasks.ts';
import { readBotNames, type BotNames } from './bot-names.ts';
import {
  botPath,
  COMPARE_PATH,
  endPath,
  endVerb,
  metricColumns,
  select,
  shortId,
  status,
  taskPath,
  taskProgress,
  withQuery,
} from './bot-parts.ts';
import type { Child, Html } from './html.ts';
import { csrfField } from './layout.ts';
import { field, pager, table, time, type Column } from './parts.ts';
import type { Visit } from './pages.ts';

const PAGE = 50;
const COMPARABLE: ReadonlySet<Task['kind']> = new Set(['backtest', 'paper']);
const COMPARE_FORM = 'compare';

interface RunList {
  /** Page of the list. */
  readonly path: string;
  /** Id of the only bot of the list; by default, the reader chooses. */
  readonly bot?: string;
  /** Shown if nothing has run yet. */
  readonly none: Child;
}

/** Renders the list that the query of the page selects. */
export async function runList(visit: Visit, { path, bot, none }: RunList): Promise<Html> {
  const { call, query } = visit;
  const asked = readQuery(visit);
  const filter = { ...asked, ...(bot !== undefined && { bot }) };
  const cursor = query('cursor');
  const { items, next_cursor } = await call<typeof listTasks>('get', '/tasks', {
    query: { ...filter, ...daysOf(filter), cursor, limit: PAGE },
  });
  const names =
    bot === undefined
      ? await readBotNames(
          call,
          items.map(({ bot_id }) => bot_id),
        )
      : undefined;
  const { sort: _, ...narrowed } = asked;
  const isFiltered = Object.values(narrowed).some((value) => value !== undefined);
  const columns = columnsOf(visit, { path, asked, names });
  return html`${(items.length > 0 || isFiltered) && filterForm(path, asked, bot === undefined, isFiltered)}
  ${
    items.length > 0
      ? html`<form id="${COMPARE_FORM}" method="get" action="${COMPARE_PATH}" class="actions">
            <button data-compare>Compare the selected runs</button>
            <span class="note">Select two to eight finished backtests or paper sessions.</span>
          </form>
          <div id="tasks">${table('Runs', columns, items)}</div>`
      : isFiltered
        ? html`<p>No run matches the filter.</p>`
        : none
  }
  ${pager(path, { ...asked, cursor }, next_cursor)}`;
}

interface Query {
  readonly bot: string | undefined;
  readonly kind: Task['kind'] | undefined;
  readonly status: ListedStatus | undefined;
  /** First and last day, such as `2026-01-31`. */
  readonly since: string | undefined;
  readonly until: string | undefined;
  readonly sort: TaskOrder | undefined;
}

function readQuery({ query }: Visit): Query {
  const one = <T extends string>(options: readonly T[], name: string): T | undefined =>
    options.find((option) => option === query(name));
  return {
    bot: query('bot'),
    kind: one(TASK_KINDS, 'kind'),
    status: one(LISTED_STATUSES, 'status'),
    since: dayOf(query('since')),
    until: dayOf(query('until')),
    sort: one(TASK_ORDERS, 'sort'),
  };
}

function dayOf(text: string | undefined): string | undefined {
  const at = Date.parse(`${text}T00:00:00Z`);
  return Number.isNaN(at) ? undefined : text;
}

/** Includes the last day. */
function daysOf({ since, until }: Pick<Query, 'since' | 'until'>) {
  const start = (day: string | undefined, later = 0): string | undefined =>
    day && new Date(Date.parse(`${day}T00:00:00Z`) + later).toISOString();
  return { since: start(since), until: start(until, 86_400_000) };
}

function filterForm(
  path: string,
  { bot, kind, status: of, since, until, sort }: Query,
  hasBots: boolean,
  isFiltered: boolean,
): Html {
  return html`<form method="get" action="${path}" class="filter" role="search">
    ${hasBots && field('Bot', 'bot', { type: 'search', value: bot ?? '', maxlength: 128, placeholder: 'slug or id', autocapitalize: 'none' })}
    ${select('Kind', 'kind', TASK_KINDS, kind)} ${select('Status', 'status', LISTED_STATUSES, of)}
    ${field('From', 'since', { type: 'date', value: since ?? '' })}
    ${field('To', 'until', { type: 'date', value: until ?? '' })}
    ${sort && html`<input type="hidden" name="sort" value="${sort}" />`}
    <button>Filter</button>
    ${isFiltered && html`<a class="button" href="${path}">Show all</a>`}
  </form>`;
}

function columnsOf(
  { session }: Visit,
  {
    path,
    asked,
    names,
  }: { readonly path: string; readonly asked: Query; readonly names: BotNames | undefined },
): Column<ListedTask>[] {
  const { sort = 'newest' } = asked;
  const sorted = (title: string, to: TaskOrder): Pick<Column<ListedTask>, 'title' | 'sorted'> => ({
    title: html`<a class="sort" href="${withQuery(path, { ...asked, sort: to })}">${title}</a>`,
    ...(sort === to && { sorted: to === 'oldest' ? 'ascending' : 'descending' }),
  });
  const nameOf = (bot_id: string): string => names?.get(bot_id)?.name ?? bot_id;
  return [
    { title: html`<span class="unseen">Compare</span>`, cell: compareBox },
    {
      title: 'Run',
      isHeader: true,
      cell: ({ task_id, kind }) =>
        html`<a href="${taskPath(task_id)}" id="run-${task_id}">${kind.replace('_', '-')}</a
          ><span class="sub">${shortId(task_id)}</span>`,
    },
    {
      title: names === undefined ? 'Version' : 'Bot',
      cell: ({ bot_id, version, input }) => {
        const run = input.bundle_hash === undefined ? version : `${version}, unsaved code`;
        return names === undefined
          ? run
          : html`<a href="${botPath(names.get(bot_id)?.slug ?? bot_id)}">${nameOf(bot_id)}</a
              ><span class="sub">version ${run}</span>`;
      },
    },
    {
      title: 'Status',
      cell: (task) =>
        html`<span data-status="${task.status}"
            >${status(task.halted ? 'halted' : task.status)}</span
          ><span class="sub">${taskProgress(task)}</span>`,
    },
    ...metricColumns<ListedTask>((run) => run).map((column) => ({
      ...column,
      ...sorted(column.title, column.name),
    })),
    {
      ...(sort === 'oldest' ? sorted('Queued', 'oldest') : sorted('Queued', 'newest')),
      title: html`<a
        class="sort"
        href="${withQuery(path, { ...asked, sort: sort === 'newest' ? 'oldest' : 'newest' })}"
        >Queued</a
      >`,
      cell: ({ created_at, ended_at }) =>
        html`${time(created_at)}${ended_at !== null && html`<span class="sub">ended ${time(ended_at)}</span>`}`,
    },
    {
      title: html`<span class="unseen">End</span>`,
      cell: (task) => {
        const name = names === undefined ? task.created_at : nameOf(task.bot_id);
        return task.ended_at === null && endButton(task, name, session);
      },
    },
  ];
}

function compareBox({ task_id, kind, status: of }: ListedTask): Html | false {
  if (!COMPARABLE.has(kind) || of !== 'success') return false;
  return html`<input
    type="checkbox"
    name="id"
    value="${task_id}"
    id="pick-${task_id}"
    form="${COMPARE_FORM}"
    aria-label="Compare the ${kind} ${shortId(task_id)}"
  />`;
}

/** A button that cancels or stops a task. */
export function endButton(
  { task_id, kind, bot_id, cancel_requested_at }: Task,
  name: string,
  session: Visit['session'],
): Html | string {
  if (cancel_requested_at !== null) return 'ending';
  const word = endVerb(kind);
  return html`<form method="post" action="${endPath(bot_id, task_id, kind)}">
    ${csrfField(session)}<button id="end-${task_id}" aria-label="${word} the ${kind} of ${name}">
      ${word}
    </button>
  </form>`;
}
