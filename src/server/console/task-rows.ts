import { html } from 'hono/html';
import { ServiceError } from '../../base/errors.ts';
import { parseCsv } from '../../research/parse-csv.ts';
import { shortId, taskPath, TASKS_PATH } from './bot-parts.ts';
import { rowsPath, tradePath } from './chat-sources.ts';
import type { Content } from './layout.ts';
import type { Pages, Visit } from './pages.ts';

/** Rows shown before and after the named one. */
const AROUND = 10;

/** Registers the page that citations of trades and of points of the equity curve open. */
export function addTaskRows(pages: Pages): void {
  pages.get(`${TASKS_PATH}/:task_id/rows/:name`, showRows);
}

/** Rows are numbered from 1, including the header, as in citations (RFC 7111). */
async function showRows({ file, param, query }: Visit): Promise<Content> {
  const [task_id, name] = [param('task_id'), param('name')];
  if (!name.endsWith('.csv')) {
    throw new ServiceError('not_found', `${name} is not a table of the run`, {
      remedy: 'Open the page of the run, which lists its files.',
    });
  }
  const text = await file('/tasks/{task_id}/files/{name}', { task_id, name });
  const [header = '', ...lines] = text.trimEnd().split('\n');
  const last = lines.length + 1;
  const asked = Number(query('row') ?? 2);
  if (!Number.isInteger(asked) || asked < 2 || asked > last) {
    throw new ServiceError('not_found', `${name} has the rows 2 to ${last}`, {
      remedy: 'Open the page of the run, which lists its files.',
    });
  }
  const first = Math.max(2, asked - AROUND);
  const shown = lines.slice(first - 2, asked - 1 + AROUND);
  const rows = parseCsv([header, ...shown].join('\n'));
  const names = Object.keys(parseCsv(`${header}\n`.repeat(2))[0] ?? {});
  const what = name === 'trades.csv' ? 'Trade' : 'Row';
  return {
    title: `${what} ${asked - 1} of ${name}`,
    body: html`<p>
        <a href="${TASKS_PATH}">Tasks</a> / <a href="${taskPath(task_id)}">${shortId(task_id)}</a> /
        <code>${name}</code>
      </p>
      <div class="scroll rows" role="region" aria-label="Rows of ${name}" tabindex="0">
        <table>
          <caption>
            ${lines.length} ${lines.length === 1 ? 'row' : 'rows'}, of which these are ${first - 1}
            to ${first - 2 + rows.length}
          </caption>
          <thead>
            <tr>
              <th scope="col">Row</th>
              ${names.map((one) => html`<th scope="col">${one.replaceAll('_', ' ')}</th>`)}
            </tr>
          </thead>
          <tbody>
            ${rows.map((row, i) => {
              const isNamed = first + i === asked;
              return html`<tr ${isNamed && html`id="row" aria-current="true"`}>
                <th scope="row">${first + i - 1}</th>
                ${names.map((one) => html`<td>${row[one]}</td>`)}
              </tr> `;
            })}
          </tbody>
        </table>
      </div>
      <nav class="pager" aria-label="Pages">
        ${first > 2 && html`<a class="button" href="${rowsPath(task_id, name, String(Math.max(2, asked - 2 * AROUND)))}">Earlier rows</a>`}
        ${first - 2 + shown.length < lines.length && html`<a class="button" href="${rowsPath(task_id, name, String(Math.min(last, asked + 2 * AROUND)))}">Later rows</a>`}
        ${name === 'trades.csv' && html`<a class="button" href="${tradePath(task_id, asked)}">This trade on the chart</a>`}
        <a class="button" href="${taskPath(task_id)}">The run, with its report</a>
      </nav>`,
  };
}
