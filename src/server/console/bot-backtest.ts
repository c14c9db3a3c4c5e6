import { html } from 'hono/html';
import type { getTask, getTaskResult, Task } from '../../api/tasks.ts';
import { status, taskPath, taskProgress } from './bot-parts.ts';
import type { Child, Html } from './html.ts';
import { sentence } from './layout.ts';
import type { Visit } from './pages.ts';
import { resultFigures } from './result-figures.ts';
import { taskLog } from './task-log.ts';

/** Place of the backtest of an editor; a script follows the task while it is open. */
export async function backtestPart(
  visit: Pick<Visit, 'call' | 'file' | 'part'>,
  task_id: string | undefined,
): Promise<Html> {
  if (task_id === undefined) return html`<div id="backtest"></div>`;
  const { call } = visit;
  const params = { task_id };
  const task = await call<typeof getTask>('get', '/tasks/{task_id}', { params });
  const result =
    task.status === 'success'
      ? await call<typeof getTaskResult>('get', '/tasks/{task_id}/result', { params })
      : undefined;
  return html`<div
    id="backtest"
    data-task="${task_id}"
    ${task.ended_at === null && html`data-open`}
  >
    <p>
      Backtest ${status(task.status)}
      <span data-progress>${taskProgress(task)}</span>
      <a href="${taskPath(task_id)}">All details</a>
    </p>
    ${failure(task)} ${result && resultFigures(result)}
    ${task.ended_at !== null && (await visit.part('The log', () => taskLog(visit, task_id)))}
  </div>`;
}

function failure({ error }: Task): Child {
  if (error === null) return undefined;
  const { detail, remedy } = error;
  return html`<p class="failure">${sentence(detail)} ${remedy && sentence(remedy)}</p>`;
}
