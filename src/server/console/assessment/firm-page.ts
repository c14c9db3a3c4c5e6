import { html } from 'hono/html';
import type { FirmReport, getFirmReport } from '../../../api/validation-drafts.ts';
import { formatCount } from '../../../base/format.ts';
import { ASSESSMENTS } from '../../../base/validation-report-fields.ts';
import { botPath, figures, withQuery } from '../bot-parts.ts';
import type { Child, Html } from '../html.ts';
import type { Content } from '../layout.ts';
import { badge, emptyState, field, table, time, type Column } from '../parts.ts';
import type { Pages, Visit } from '../pages.ts';
import { nameAssessment } from './answer-field.ts';

export const FIRM_PATH = '/console/rts6';

type Bot = FirmReport['bots']['items'][number];
type Gap = FirmReport['gaps']['items'][number];
type Deficiency = FirmReport['deficiencies']['items'][number];
type Paragraph = FirmReport['paragraphs'][number];

/** Registers the report over all bots. */
export function addFirmPage(pages: Pages): void {
  pages.get(FIRM_PATH, showFirm);
}

async function showFirm({ call, query }: Visit): Promise<Content> {
  const year = query('year');
  const report = await call<typeof getFirmReport>('get', '/risk/validation-report', {
    query: year === undefined ? {} : { year },
  });
  return {
    title: `RTS 6 of all bots in ${report.year}`,
    body: html`<div class="assessment firm">
      <div class="heading">
        <p class="note">As of ${time(report.as_of)}</p>
        <div class="actions screen">
          <form method="get" action="${FIRM_PATH}" class="filter">
            ${field('Year', 'year', { type: 'number', min: 1970, max: 9999, value: report.year })}
            <button>Show</button>
          </form>
          <button type="button" data-print hidden>Print</button>
        </div>
      </div>
      <p class="note">${report.notice}</p>
      ${
        report.bots.total === 0
          ? emptyState(
              `No trading bot existed in ${report.year}. To create one:`,
              'service-local bots create --file bot.yaml',
            )
          : parts(report)
      }
      <p class="note screen">
        From the command line:
        <code>service-local bots validation-report firm --year ${report.year} --json</code>
      </p>
    </div>`,
  };
}

function parts(report: FirmReport): Html {
  const { statuses, gaps, deficiencies, bots } = report;
  const open = deficiencies.items.filter(({ closed }) => closed === null).length;
  return html`${figures(
      ['Trading bots', formatCount(bots.total)],
      ['Signed', statuses.signed],
      ['Frozen', statuses.frozen],
      ['Draft', statuses.draft],
      ['Not begun', statuses.not_begun],
      ['Gaps', formatCount(gaps.total)],
      ['Gaps overdue', gaps.items.filter(({ overdue }) => overdue).length],
      ['Open deficiencies', open],
    )}
    <section>
      <h2>Bots</h2>
      ${table<Bot>('Bots', botColumns(report.year), bots.items)} ${rest(bots)}
    </section>
    <section>
      <h2>Gaps</h2>
      ${gaps.total === 0 ? html`<p>The reports that are begun have no gaps.</p>` : table<Gap>('Gaps', gapColumns(report.year), gaps.items)}
      ${rest(gaps)}
    </section>
    <section>
      <h2>Deficiencies</h2>
      ${
        deficiencies.total === 0
          ? html`<p>No deficiency has been entered, which does not mean that there is none.</p>`
          : table<Deficiency>('Deficiencies', deficiencyColumns(report.year), deficiencies.items)
      }
      ${rest(deficiencies)}
    </section>
    <section>
      <h2>Paragraph by paragraph</h2>
      <p class="note">Number of bots with each assessment.</p>
      ${table<Paragraph>('Paragraph by paragraph', paragraphColumns(), report.paragraphs)}
    </section>`;
}

function rest({
  total,
  items,
}: {
  readonly total: number;
  readonly items: readonly unknown[];
}): Child {
  const more = total - items.length;
  return more > 0 && html`<p class="note">${formatCount(more)} more are not listed.</p>`;
}

function botLink(slug: string, name: string, year: number, page = ''): Html {
  return html`<a href="${withQuery(botPath(slug, `rts6${page}`), { year })}">${name}</a>`;
}

const STATUSES = {
  not_begun: ['neutral', 'not begun'],
  draft: ['warning', 'draft'],
  frozen: ['warning', 'frozen'],
  signed: ['good', 'signed'],
} as const;

function botColumns(year: number): readonly Column<Bot>[] {
  return [
    {
      title: 'Bot',
      isHeader: true,
      cell: ({ bot_slug, bot_name }) => botLink(bot_slug, bot_name, year),
    },
    {
      title: 'Report',
      cell({ status, version, edited }) {
        const [kind, text] = STATUSES[status];
        return html`${badge(kind, text)}
        ${version !== null && html`<span class="sub">version ${version}${edited && ', edited since'}</span>`}`;
      },
    },
    ...ASSESSMENTS.map((name): Column<Bot> => ({
      title: nameAssessment(name),
      isNumber: true,
      cell: ({ assessments }) => assessments[name],
    })),
    { title: 'Gaps', isNumber: true, cell: ({ gaps }) => gaps?.total ?? 'unknown' },
    { title: 'Unassigned', isNumber: true, cell: ({ gaps }) => gaps?.unassigned ?? '' },
    { title: 'Overdue', isNumber: true, cell: ({ gaps }) => gaps?.overdue ?? '' },
    {
      title: 'Open deficiencies',
      isNumber: true,
      cell: ({ open_deficiencies }) => open_deficiencies,
    },
    {
      title: 'Saved',
      cell: ({ saved_at }) =>
        saved_at !== null && html`<time datetime="${saved_at}">${saved_at.slice(0, 10)}</time>`,
    },
  ];
}

function dueCell({
  due,
  overdue,
}: {
  readonly due: string | null;
  readonly overdue: boolean;
}): Child {
  if (due === null) return 'no date';
  return overdue ? badge('bad', `${due}, overdue`) : due;
}

function gapColumns(year: number): readonly Column<Gap>[] {
  return [
    { title: 'Missing', isHeader: true, cell: ({ missing }) => missing },
    { title: 'Bot', cell: ({ bot_slug, bot_name }) => botLink(bot_slug, bot_name, year, '/gaps') },
    { title: 'Paragraphs', cell: ({ articles }) => articles.join(', ') },
    { title: 'Owner', cell: ({ owner }) => owner ?? 'none' },
    { title: 'Due', cell: dueCell },
  ];
}

function deficiencyColumns(year: number): readonly Column<Deficiency>[] {
  return [
    { title: 'Finding', isHeader: true, cell: ({ finding }) => finding },
    {
      title: 'Bot',
      cell: ({ bot_slug, bot_name }) => botLink(bot_slug, bot_name, year, '/deficiencies'),
    },
    { title: 'Paragraph', cell: ({ article }) => article },
    { title: 'Severity', cell: ({ severity }) => severity },
    { title: 'Owner', cell: ({ owner }) => owner },
    {
      title: 'Due',
      cell: (one) => (one.closed === null ? dueCell(one) : `closed ${one.closed}`),
    },
  ];
}

function paragraphColumns(): readonly Column<Paragraph>[] {
  return [
    { title: 'Paragraph', isHeader: true, cell: ({ id }) => id },
    {
      title: 'Requirement, in our words',
      cell: ({ requirement }) => html`<span class="details">${requirement}</span>`,
    },
    ...ASSESSMENTS.map((name): Column<Paragraph> => ({
      title: nameAssessment(name),
      isNumber: true,
      cell: ({ assessments }) => assessments[name],
    })),
  ];
}
