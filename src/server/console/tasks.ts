import { html } from 'hono/html';
import type { BotEvent, listBotEvents } from '../../api/bot-state.ts';
import type { cancelTask, getTask, getTaskResult, listTaskFiles, Task } from '../../api/tasks.ts';
import { formatActor } from '../../base/format.ts';
import { TASK, TASKS } from './assets.ts';
import { readBotNames, type BotNames } from './bot-names.ts';
import { DEPLOY_KINDS } from './bot-events.ts';
import { botPath, eventDetails, taskProgress, status, taskPath, TASKS_PATH } from './bot-parts.ts';
import { deploymentFacts, deploymentOf } from './bot-production.ts';
import type { Child, Html } from './html.ts';
import { sentence, type Content } from './layout.ts';
import { emptyState, facts, table, time, who } from './parts.ts';
import type { Pages, Visit } from './pages.ts';
import { serveReport } from './report.ts';
import { endButton, runList } from './run-list.ts';
import { resultFigures } from './result-figures.ts';
import { taskLog } from './task-log.ts';
import { readTrades } from './task-trades.ts';
import { testFigures } from './test-figures.ts';
import { tradeFragment } from './trade-table.ts';

const REPORT = 'report.html';
const TRADES = 'trades.csv';
const LOG_KINDS = [
  'run.queued,run.started,run.requeued,run.stop_requested,run.cancel_requested,run.ended',
  ...DEPLOY_KINDS,
].join(',');
const TITLES = {
  backtest: 'Backtest',
  paper: 'Paper session',
  production: 'Deployment',
  conformance: 'Conformance test',
  stress: 'Stress test',
  sweep: 'Sweep',
  walk_forward: 'Walk-forward analysis',
  robustness: 'Robustness test',
} as const satisfies Record<Task['kind'], string>;

export function addTaskPages(pages: Pages): void {
  pages.get(TASKS_PATH, showTasks);
  pages.get(`${TASKS_PATH}/:task_id`, showTask);
  pages.post(
    `${TASKS_PATH}/:task_id/cancel`,
    async ({ call, param }) => {
      const task_id = param('task_id');
      const path = '/tasks/{task_id}/cancel';
      const task = await call<typeof cancelTask>('post', path, { params: { task_id } });
      const isOver = task.ended_at !== null;
      return {
        goTo: taskPath(task_id),
        message: isOver
          ? `The task had already ended: ${task.status}.`
          : 'The task is being canceled. It ends within seconds.',
      };
    },
    showTask,
  );
  pages.other(`${TASKS_PATH}/:task_id/report`, ({ c, file, param }) =>
    serveReport(c, () =>
      file('/tasks/{task_id}/files/{name}', { task_id: param('task_id'), name: REPORT }),
    ),
  );
}

async function showTasks(visit: Visit): Promise<Content> {
  return {
    title: 'Tasks',
    scripts: [TASKS],
    body: await runList(visit, {
      path: TASKS_PATH,
      none: emptyState('Nothing has run yet. Start a backtest:', 'service-local bots backtest BOT'),
    }),
  };
}

function botLink(bot_id: string, names: BotNames): Html {
  const { slug, name } = names.get(bot_id) ?? { slug: bot_id, name: bot_id };
  return html`<a href="${botPath(slug)}">${name}</a>`;
}

async function showTask(visit: Visit): Promise<Content> {
  const { call, param, session } = visit;
  const task_id = param('task_id');
  const params = { task_id };
  const task = await call<typeof getTask>('get', '/tasks/{task_id}', { params });
  const isProduction = task.kind === 'production';
  const [names, log, result] = await Promise.all([
    readBotNames(call, [task.bot_id]),
    logOf(call, task),
    isProduction
      ? deploymentOf({ call }, task.bot_id, task.deployment_id).then(deploymentFacts)
      : task.status === 'success'
        ? resultOf(visit, task_id)
        : task.status === 'failed'
          ? visit.part('The log', () => taskLog(visit, task_id))
          : undefined,
  ]);
  const { kind, bot_id, version, created_at, started_at, ended_at, attempts } = task;
  const name = names.get(bot_id)?.name ?? bot_id;
  return {
    title: `${TITLES[kind]} of ${name}`,
    scripts: [TASK],
    body: html`<div class="heading">
        <p><a href="${TASKS_PATH}">Tasks</a> / <code>${task_id}</code></p>
        <div class="actions">
          ${ended_at === null && endButton(task, name, session)}
          ${(kind === 'paper' || isProduction) && ended_at === null && html`<a class="button" href="${botPath(names.get(bot_id)?.slug ?? bot_id)}">Watch it</a>`}
        </div>
      </div>
      <div id="task" data-task="${task_id}" ${ended_at === null && html`data-open`}>
        <p>
          <span data-status>${status(task.ended_by_halt === null ? task.status : 'halted')}</span>
          <span data-progress>${taskProgress(task)}</span>
        </p>
      </div>
      ${task.error !== null && failure(task.error)}
      ${facts(
        ['Bot', html`${botLink(bot_id, names)}, version ${version}`],
        ['Requested by', who(task.created_by, task.created_by_name)],
        ['Queued', time(created_at)],
        ['Started', started_at === null ? 'not yet' : time(started_at)],
        ['Ended', ended_at === null ? 'not yet' : time(ended_at)],
        ['Attempts', attempts],
        ['Input', html`<code>${JSON.stringify(task.input)}</code>`],
      )}
      ${result}
      <section>
        <h2 id="log">Events</h2>
        ${log.length === 0 ? html`<p>The event log of the bot has no entry for this task.</p>` : logTable(log, actorNames(task, session))}
        <p class="note">
          From the command line: <code>service-local tasks get ${task_id}</code>,
          <code
            >service-local bots events ${names.get(bot_id)?.slug ?? bot_id} --run ${task_id}</code
          >
        </p>
      </section>`,
  };
}

function failure({ detail, remedy, reason, code, errors = [] }: NonNullable<Task['error']>): Html {
  return html`<div class="message failure">
    <p>
      <strong>${sentence(detail)}</strong> ${remedy && sentence(remedy)}
      <code>${code}${reason && `, ${reason}`}</code>
    </p>
    ${
      errors.length > 0 &&
      html`<ul>
        ${errors.map((one) => html`<li>${one.pointer && html`<code>${one.pointer}</code> `}${one.detail}</li>`)}
      </ul>`
    }
  </div>`;
}

/** Events of a task in the log of its bot, oldest first. */
async function logOf(call: Visit['call'], { bot_id, task_id }: Task): Promise<readonly BotEvent[]> {
  const { items } = await call<typeof listBotEvents>('get', '/bots/{bot_ref}/state/events', {
    params: { bot_ref: bot_id },
    query: { run_id: task_id, kind: LOG_KINDS, last: 'true', limit: 1000 },
  });
  return items;
}

/** Names of the administrators whom events of the task most often name: its creator and the visitor. */
function actorNames(
  { created_by, created_by_name }: Task,
  { caller, name }: Visit['session'],
): ReadonlyMap<string, string> {
  const creator = formatActor(created_by, created_by_name);
  return new Map([
    [created_by, creator],
    [`administrator:${caller.administrator_id}`, name],
  ]);
}

function logTable(events: readonly BotEvent[], names: ReadonlyMap<string, string>): Html {
  return html`<div class="events">
    ${table<BotEvent>(
      'Events of this task',
      [
        { title: 'Recorded', cell: ({ recorded_at }) => time(recorded_at) },
        {
          title: 'Event',
          isHeader: true,
          cell: ({ kind }) => kind.replace('run.', '').replace('deploy.', '').replace('_', ' '),
        },
        eventDetails(names),
      ],
      events,
    )}
  </div>`;
}

async function resultOf(visit: Visit, task_id: string): Promise<Child> {
  const { call } = visit;
  const params = { task_id };
  const [summary, { files }] = await Promise.all([
    call<typeof getTaskResult>('get', '/tasks/{task_id}/result', { params }),
    call<typeof listTaskFiles>('get', '/tasks/{task_id}/files', { params }),
  ]);
  const row = Number(visit.query('row'));
  const trade =
    row > 1 && files.includes(TRADES)
      ? (await readTrades(visit, task_id)).rows[row - 2]
      : undefined;
  const at = Date.parse(visit.query('at') ?? '');
  const api = `/tasks/${encodeURIComponent(task_id)}/files`;
  // The report of a search begins with its own figures.
  const hasFigures = !/\/(sweep|robustness)\//.test(String(summary['schema']));
  return html`${testFigures(summary) ?? (hasFigures && resultFigures(summary))}
  ${await visit.part('The log', () => taskLog(visit, task_id))}
  ${
    files.includes(REPORT) &&
    html`<section aria-labelledby="report">
      <div class="heading">
        <h2 id="report">Report</h2>
        <p class="actions">
          ${files.includes(TRADES) && html`<a class="button" href="${taskPath(task_id)}/trades">Trades</a>`}
          <a class="button" href="${taskPath(task_id)}/report">Open separately</a>
        </p>
      </div>
      ${trade && html`<p>The chart shows trade ${trade.text('id')}.</p>`}
      ${Number.isFinite(at) && html`<p>The equity curve shows ${time(new Date(at).toISOString())}.</p>`}
      <iframe
        class="report"
        src="${taskPath(task_id)}/report${trade ? tradeFragment(trade) : pointFragment(at)}"
        sandbox="allow-scripts"
        loading="lazy"
        title="Report of the run"
      ></iframe>
    </section>`
  }
  ${
    files.length > 0 &&
    html`<section aria-labelledby="files">
      <h2 id="files">Files</h2>
      <p class="actions">
        ${files.map((name) => html`<a class="button" href="${api}/${encodeURIComponent(name)}" download="${name}">${name}</a>`)}
      </p>
      <p class="note">
        From the command line:
        <code>service-local tasks result ${task_id} --out ./result</code>
      </p>
    </section>`
  }`;
}

/** Fragment with which a report shows a point of its equity curve; empty for NaN. */
function pointFragment(ms: number): string {
  return Number.isFinite(ms) ? `#at=${Math.floor(ms / 1000)}` : '';
}
