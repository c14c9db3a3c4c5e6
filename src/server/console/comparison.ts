import { html } from 'hono/html';
import { MOST_COMPARED_TASKS, type compareTasks } from '../../api/comparison.ts';
import { ServiceError } from '../../base/errors.ts';
import { COMPARE_PATH, shortId, taskPath, TASKS_PATH } from './bot-parts.ts';
import type { Content } from './layout.ts';
import { facts } from './parts.ts';
import type { Pages, Visit } from './pages.ts';
import { serveReport } from './report.ts';

/** The fields of the document that the page shows; its report has the others. */
interface Shown {
  readonly runs: readonly {
    readonly label: string;
    readonly directory: string;
    readonly bot: { readonly name: string };
    readonly params: Readonly<Record<string, unknown>> | null;
  }[];
}

/** Registers the page that compares runs. Its address names them, so it can be shared. */
export function addComparison(pages: Pages): void {
  pages.get(COMPARE_PATH, showComparison);
  pages.other(`${COMPARE_PATH}/report`, (visit) =>
    serveReport(visit.c, () =>
      visit.file('/tasks/comparison', {}, { ids: readIds(visit), format: 'html' }),
    ),
  );
}

/** @throws ServiceError `invalid_request` */
function readIds({ c }: Visit): string {
  const ids = [...new Set(c.req.queries('id') ?? [])];
  if (ids.length >= 2 && ids.length <= MOST_COMPARED_TASKS) return ids.join(',');
  throw new ServiceError('invalid_request', `${ids.length} runs are selected`, {
    remedy: `Go back, and select two to ${MOST_COMPARED_TASKS} runs.`,
  });
}

async function showComparison(visit: Visit): Promise<Content> {
  const ids = readIds(visit);
  const document = await visit.call<typeof compareTasks>('get', '/tasks/comparison', {
    query: { ids },
  });
  const { runs } = document as unknown as Shown;
  const report = `${COMPARE_PATH}/report?${new URLSearchParams(ids.split(',').map((one) => ['id', one]))}`;
  return {
    title: `Comparison of ${runs.length} runs`,
    body: html`<div class="heading">
        <p><a href="${TASKS_PATH}">Tasks</a> / comparison</p>
        <a class="button" href="${report}">Open separately</a>
      </div>
      ${facts(
        ...runs.map(
          ({ label, directory, bot, params }) =>
            [
              label,
              html`<a href="${taskPath(directory)}">${bot.name}</a>
                <span class="sub">${shortId(directory)}</span>
                <span class="note"
                  >${Object.entries(params ?? {})
                    .map(([name, value]) => `${name} ${String(value)}`)
                    .join(', ')}</span
                >`,
            ] as const,
        ),
      )}
      <iframe
        class="report tall"
        src="${report}"
        sandbox="allow-scripts"
        title="Curves, figures and differences of the runs"
      ></iframe>`,
  };
}
