import { html } from 'hono/html';
import type { BotDetail, BotVersion, diffBotVersions, listBotVersions } from '../../api/bots.ts';
import type { listValidationReports, ValidationReports } from '../../api/validation-reports.ts';
import { describeReportStatus } from '../../base/validation-report-status.ts';
import { botFrame, readBot } from './bot-frame.ts';
import { botPath } from './bot-parts.ts';
import type { Child, Html } from './html.ts';
import type { Content } from './layout.ts';
import { emptyState, field, pager, table, time, who } from './parts.ts';
import type { Pages, Visit } from './pages.ts';

const PAGE = 50;

export function addBotVersions(pages: Pages): void {
  pages.get('/console/bots/:bot_ref/versions', showVersions);
}

async function showVersions(visit: Visit): Promise<Content> {
  const { call, query } = visit;
  const bot = await readBot(visit);
  const cursor = query('cursor');
  const { items, next_cursor } = await call<typeof listBotVersions>(
    'get',
    '/bots/{bot_ref}/versions',
    { params: { bot_ref: bot.id }, query: { cursor, limit: PAGE } },
  );
  const { versions: reports } = await call<typeof listValidationReports>(
    'get',
    '/bots/{bot_ref}/risk/validation-reports',
    { params: { bot_ref: bot.id } },
  );
  const [from, to] = [query('from'), query('to')];
  return {
    title: bot.name,
    body: botFrame(
      bot,
      'versions',
      html`<section>
          <h2 id="versions">Versions</h2>
          ${table<BotVersion>('Versions', columnsOf(bot), items)}
          ${pager(botPath(bot.slug, 'versions'), { cursor }, next_cursor)}
        </section>
        <section aria-labelledby="diff">
          <h2 id="diff">Compare versions</h2>
          <form method="get" action="${botPath(bot.slug, 'versions')}#diff" class="filter">
            ${field('From version', 'from', { type: 'number', min: 1, required: true, value: from ?? String(Math.max(1, bot.current_version - 1)) })}
            ${field('To version', 'to', { type: 'number', min: 1, required: true, value: to ?? String(bot.current_version) })}
            <button>Compare</button>
          </form>
          ${
            from !== undefined && to !== undefined
              ? await diff(visit, bot, from, to)
              : html`<p class="note">
                  From the command line:
                  <code>service-local bots diff ${bot.slug} --from 1 --to 2</code>
                </p>`
          }
        </section>
        ${reports.length > 0 && reportsSection(bot, reports)}
        <section aria-labelledby="document">
          <h2 id="document">Current version</h2>
          <details>
            <summary>Document</summary>
            <pre tabindex="0">${JSON.stringify(bot.document, null, 2)}</pre>
          </details>
        </section>`,
    ),
  };
}

function reportsSection({ slug }: BotDetail, reports: ValidationReports['versions']): Html {
  return html`<section>
    <h2 id="reports">Frozen validation reports</h2>
    ${table<(typeof reports)[number]>(
      'Frozen validation reports',
      [
        {
          title: 'Report',
          isHeader: true,
          cell: ({ version }) =>
            html`<a href="/bots/${slug}/risk/validation-report?version=${version}&format=html"
              >${version}</a
            >`,
        },
        { title: 'Year', cell: ({ year }) => year },
        {
          title: 'Status',
          cell: (one) => describeReportStatus(one.status, one.signed_with_open, one.attested),
        },
        { title: 'Frozen', cell: ({ frozen_at }) => time(frozen_at) },
        { title: 'Hash', cell: ({ hash }) => html`<code>${hash.slice(0, 16)}…</code>` },
      ],
      reports,
    )}
  </section>`;
}

function columnsOf(bot: BotDetail): Parameters<typeof table<BotVersion>>[1] {
  return [
    { title: 'Version', isHeader: true, cell: ({ version }) => version },
    {
      title: 'Changes',
      cell: ({ version }) =>
        version === 1
          ? 'first version'
          : html`<a href="${botPath(bot.slug, 'versions')}?from=${version - 1}&to=${version}#diff"
              >since version ${version - 1}</a
            >`,
    },
    { title: 'Created', cell: ({ created_at }) => time(created_at) },
    { title: 'By', cell: ({ created_by, created_by_name }) => who(created_by, created_by_name) },
    { title: 'Code', cell: ({ bundle_hash }) => (bundle_hash === null ? 'built in' : 'custom') },
    { title: 'Hash', cell: ({ hash }) => html`<code>${hash.slice(0, 16)}…</code>` },
  ];
}

async function diff({ call }: Visit, bot: BotDetail, from: string, to: string): Promise<Html> {
  const path = '/bots/{bot_ref}/versions/{version}/diff';
  const { changes, files } = await call<typeof diffBotVersions>('get', path, {
    params: { bot_ref: bot.id, version: from },
    query: { to },
  });
  if (changes.length === 0 && files.length === 0) {
    return emptyState(
      `Versions ${from} and ${to} are identical.`,
      `service-local bots diff ${bot.slug} --from ${from} --to ${to}`,
    );
  }
  // Files of custom code are compared by their hashes.
  const all = [
    ...changes.map(({ pointer, ...rest }) => ({ ...rest, where: pointer })),
    ...files.map(({ file, ...rest }) => ({ ...rest, where: file })),
  ];
  const label = `Differences between versions ${from} and ${to}`;
  return diffTable(label, [`Version ${from}`, `Version ${to}`], all);
}

export interface Difference {
  /** A file, or the JSON pointer of a field. */
  readonly where: string;
  readonly kind: string;
  readonly from?: unknown;
  readonly to?: unknown;
}

/** @param sides titles of the columns with the old and the new values. */
export function diffTable(
  label: string,
  sides: readonly [from: string, to: string],
  differences: readonly Difference[],
): Html {
  const value = (given: unknown): Child =>
    given === undefined ? '' : html`<code>${JSON.stringify(given)}</code>`;
  return html`<div class="diff">
    ${table<Difference>(
      label,
      [
        {
          title: 'Field or file',
          isHeader: true,
          cell: ({ where }) => html`<code>${where}</code>`,
        },
        { title: 'Change', cell: ({ kind }) => kind },
        { title: sides[0], cell: (one) => html`<del>${value(one.from)}</del>` },
        { title: sides[1], cell: (one) => html`<ins>${value(one.to)}</ins>` },
      ],
      differences,
    )}
  </div>`;
}
