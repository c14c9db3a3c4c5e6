import { html } from 'hono/html';
import type { listTaskFiles } from '../../api/tasks.ts';
import type { Child } from './html.ts';
import type { Visit } from './pages.ts';

const LOG = 'log.txt';
/** Number of first lines that are shown. */
const SHOWN = 200;

/** The first lines that the strategy of an ended run logged; undefined if it logged none. */
export async function taskLog(
  { call, file }: Pick<Visit, 'call' | 'file'>,
  task_id: string,
): Promise<Child> {
  const params = { task_id };
  const { files } = await call<typeof listTaskFiles>('get', '/tasks/{task_id}/files', { params });
  if (!files.includes(LOG)) return undefined;
  const path = '/tasks/{task_id}/files/{name}';
  // One line more than shown, to detect a longer log.
  const text = await file(path, { task_id, name: LOG }, {}, SHOWN + 1);
  const lines = text.trimEnd().split('\n');
  return html`<section>
    <h2 id="run-log">Log of the strategy</h2>
    <pre class="scroll stream" role="region" aria-labelledby="run-log" tabindex="0">
${lines.slice(0, SHOWN).join('\n')}</pre>
    ${
      lines.length > SHOWN &&
      html`<p class="note">
        The first ${SHOWN} lines.
        <a href="/tasks/${encodeURIComponent(task_id)}/files/${LOG}" download="${LOG}">All lines</a>
      </p>`
    }
  </section>`;
}
