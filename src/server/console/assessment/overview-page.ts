import { html } from 'hono/html';
import type { freezeValidationReport, ValidationReport } from '../../../api/validation-reports.ts';
import { formatCount } from '../../../base/format.ts';
import { ASSESSMENTS, ATTESTING_ROLES } from '../../../base/validation-report-fields.ts';
import { describeReportStatus } from '../../../base/validation-report-status.ts';
import { botFrame } from '../bot-frame.ts';
import { botPath, figures, withQuery } from '../bot-parts.ts';
import type { Child, Html } from '../html.ts';
import { csrfField, type Content } from '../layout.ts';
import { facts, table, time } from '../parts.ts';
import type { Form, GoTo, Pages, Visit } from '../pages.ts';
import { nameAssessment } from './answer-field.ts';
import {
  ASSESSMENT_PATH,
  pathOf,
  readDraftPage,
  readFrozen,
  REPORT_PATH,
  type DraftPage,
  type ReportVersion,
} from './draft-page.ts';
import { FIRM_PATH } from './firm-page.ts';
import { fieldsOf } from './section-page.ts';
import { isIn, SECTIONS, type AssessmentSection } from './sections.ts';

/** Lengths of the lists, so that the summary fits on one printed page. */
const MOST_PARAGRAPHS = 8;
const MOST_GAPS = 8;
const MOST_DEFICIENCIES = 5;

/** Registers the summary of an assessment, which leads to its form and freezes it. */
export function addAssessmentOverview(pages: Pages): void {
  pages.get(ASSESSMENT_PATH, showOverview);
  pages.post(ASSESSMENT_PATH, freeze, showOverview);
}

async function freeze(visit: Visit, form: Form): Promise<GoTo> {
  const draft = await readDraftPage(visit);
  const supersedes = Number(form.get('supersedes')) || null;
  const { number } = await visit.call<typeof freezeValidationReport>('post', REPORT_PATH, {
    params: { bot_ref: draft.bot.id },
    headers: {},
    body: {
      year: draft.report.period.year,
      supersedes,
      revision: Number(form.get('revision')),
    },
  });
  return { goTo: pathOf(draft), message: `The report is frozen as version ${number!.version}.` };
}

async function showOverview(visit: Visit): Promise<Content> {
  const draft = await readDraftPage(visit);
  const { bot, report } = draft;
  const { year } = report.period;
  const { newest, frozen } = await readFrozen(visit, draft);
  return {
    title: bot.name,
    body: botFrame(
      bot,
      'rts6',
      html`<div class="assessment">
        <div class="heading">
          <h2>RTS 6 self-assessment in ${year}</h2>
          ${yearForm(draft)}
        </div>
        ${standing(draft, newest, frozen)} ${shortfalls(draft)} ${gapsPart(draft)}
        ${deficienciesPart(draft)} ${progress(draft)} ${freezePart(visit, draft, newest)}
      </div>`,
    ),
  };
}

function yearForm({ bot, report }: DraftPage): Html {
  const first = new Date(bot.created_at).getUTCFullYear();
  const last = Math.max(report.period.year, new Date(report.as_of).getUTCFullYear());
  const years = Array.from({ length: last - first + 1 }, (_, i) => last - i);
  return html`<div class="actions screen">
    ${
      years.length > 1 &&
      html`<form method="get" action="${botPath(bot.slug, 'rts6')}" class="filter">
        <label for="year">Year</label>
        <select id="year" name="year">
          ${years.map((year) => html`<option ${year === report.period.year && html`selected`}>${year}</option>`)}
        </select>
        <button>Show</button>
      </form>`
    }
    <button type="button" data-print hidden>Print this summary</button>
    <a
      class="button"
      href="${withQuery(`/bots/${bot.slug}/risk/validation-report`, { year: report.period.year, format: 'html' })}"
      >RTS 6 report</a
    >
    <a class="button" href="${withQuery(FIRM_PATH, { year: report.period.year })}">All bots</a>
  </div>`;
}

function standing(
  { report }: DraftPage,
  newest: ReportVersion | undefined,
  frozen: ValidationReport | undefined,
): Html {
  const { articles, summary, generated_by, deficiencies } = report;
  const { gaps } = generated_by;
  const count = (status: (typeof ASSESSMENTS)[number]): number =>
    articles.filter((one) => one.status === status).length;
  const assessed = articles.length - count('not_assessed');
  const today = report.as_of.slice(0, 10);
  const isFrozen = frozen !== undefined && frozen.content_hash === report.content_hash;
  const status =
    newest === undefined
      ? 'Draft, not frozen'
      : `Version ${newest.version}: ${describeReportStatus(newest.status, newest.signed_with_open, newest.attested)}${isFrozen ? '' : '; the draft differs'}`;
  return html`${figures(
    ['Assessed', `${assessed} of ${articles.length}`],
    ['Compliant', count('compliant')],
    ['Partly compliant', count('partly')],
    ['Not compliant', count('non_compliant')],
    ['Not applicable', count('n_a')],
    ['Gaps', gaps.length],
    [
      'Gaps without owner or due date',
      gaps.filter(({ owner, due }) => !owner?.value || !due?.value).length,
    ],
    ['Gaps overdue', gaps.filter(({ due }) => (due?.value ?? '9') < today).length],
    ['Open deficiencies', deficiencies.filter(({ closed }) => closed === null).length],
  )}
  ${facts(
    ['Report', status],
    ['As of', time(report.as_of)],
    ['Statement of compliance', summary.statement_of_compliance.value ?? 'empty'],
    ['Overall opinion', summary.overall_opinion.value ?? 'empty'],
    [
      'Attested by',
      ATTESTING_ROLES.flatMap((role) => frozen?.attestations[role]?.name ?? []).join(', ') ||
        'no one',
    ],
  )}`;
}

/** A list that is cut so that the summary fits on a page. */
function shortened<T>(all: readonly T[], most: number, show: (rows: readonly T[]) => Html): Html {
  const more = all.length - most;
  return html`${show(all.slice(0, most))}
  ${more > 0 && html`<p class="note">${formatCount(more)} more in the report.</p>`}`;
}

function shortfalls({ report }: DraftPage): Html | '' {
  const found = report.articles.filter(
    ({ status }) => status === 'partly' || status === 'non_compliant',
  );
  if (found.length === 0) return '';
  return html`<section>
    <h2>Paragraphs not met in full</h2>
    ${shortened(found, MOST_PARAGRAPHS, (rows) =>
      table<ValidationReport['articles'][number]>(
        'Paragraphs not met in full',
        [
          { title: 'Paragraph', isHeader: true, cell: ({ id }) => id },
          { title: 'Assessment', cell: ({ status }) => nameAssessment(status) },
          { title: 'Narrative', cell: ({ narrative }) => excerpt(narrative.value) },
        ],
        rows,
      ),
    )}
  </section>`;
}

function excerpt(text: string | null): string {
  if (text === null) return '';
  return text.length > 160 ? `${text.slice(0, 159)}…` : text;
}

function gapsPart(draft: DraftPage): Html | '' {
  const { gaps } = draft.report.generated_by;
  if (gaps.length === 0) return '';
  const dueOf = ({ due }: (typeof gaps)[number]): string => due?.value ?? '9';
  const ordered = gaps.toSorted((a, b) => (dueOf(a) < dueOf(b) ? -1 : dueOf(a) > dueOf(b) ? 1 : 0));
  return html`<section>
    <div class="heading">
      <h2>Gaps due next</h2>
      <a class="screen" href="${pathOf(draft, 'gaps')}">Owners and due dates</a>
    </div>
    ${shortened(ordered, MOST_GAPS, (rows) =>
      table<(typeof gaps)[number]>(
        'Gaps due next',
        [
          { title: 'Missing', isHeader: true, cell: ({ missing }) => excerpt(missing) },
          { title: 'Paragraphs', cell: ({ articles }) => articles.join(', ') },
          { title: 'Owner', cell: ({ owner }) => owner?.value ?? 'none' },
          { title: 'Due', cell: ({ due }) => due?.value ?? 'no date' },
        ],
        rows,
      ),
    )}
  </section>`;
}

function deficienciesPart(draft: DraftPage): Html {
  const open = draft.report.deficiencies
    .filter(({ closed }) => closed === null)
    .toSorted((a, b) => (a.due < b.due ? -1 : 1));
  return html`<section>
    <div class="heading">
      <h2>Open deficiencies</h2>
      <a class="screen" href="${pathOf(draft, 'deficiencies')}">Edit the deficiencies</a>
    </div>
    ${
      open.length === 0
        ? html`<p>No open deficiency has been entered, which does not mean that there is none.</p>`
        : shortened(open, MOST_DEFICIENCIES, (rows) =>
            table<(typeof open)[number]>(
              'Open deficiencies',
              [
                { title: 'Paragraph', isHeader: true, cell: ({ article }) => article },
                { title: 'Finding', cell: ({ finding }) => excerpt(finding) },
                { title: 'Severity', cell: ({ severity }) => severity },
                { title: 'Owner', cell: ({ owner }) => owner },
                { title: 'Due', cell: ({ due }) => due },
              ],
              rows,
            ),
          )
    }
  </section>`;
}

function progress(draft: DraftPage): Html {
  const fields = (section: AssessmentSection): Child => {
    const all = fieldsOf(section, draft);
    return `${all.filter(({ field }) => field.value !== null).length} of ${all.length}`;
  };
  const assessed = (section: AssessmentSection): Child => {
    const all = draft.report.articles.filter(({ id }) => isIn(section, `/articles/${id}/final`));
    if (all.length === 0) return '';
    return `${all.filter(({ status }) => status !== 'not_assessed').length} of ${all.length}`;
  };
  return html`<section class="screen">
    <h2>Fill in the assessment</h2>
    ${table<AssessmentSection>(
      'Pages of the form',
      [
        {
          title: 'Page',
          isHeader: true,
          cell: ({ id, title }) => html`<a href="${pathOf(draft, id)}">${title}</a>`,
        },
        { title: 'Assessed', isNumber: true, cell: assessed },
        { title: 'Answered', isNumber: true, cell: fields },
      ],
      SECTIONS,
    )}
  </section>`;
}

function freezePart({ session }: Visit, draft: DraftPage, newest: ReportVersion | undefined): Html {
  const { bot, report } = draft;
  const { year } = report.period;
  return html`<section class="screen">
    <h2>Freeze the report</h2>
    <p>
      A frozen version never changes, and people
      ${newest === undefined ? 'attest' : html`<a href="${pathOf(draft, 'attest')}">attest</a>`} it
      with their second factor. A new version must be attested again.
    </p>
    <form method="post" action="${pathOf(draft)}">
      ${csrfField(session)}
      <input type="hidden" name="revision" value="${report.revision ?? 0}" />
      <input type="hidden" name="supersedes" value="${newest?.version ?? ''}" />
      <button>Freeze as the next version</button>
    </form>
    <p class="note">
      From the command line:
      <code
        >service-local bots validation-report freeze ${bot.slug} --year
        ${year}${newest && ` --supersedes ${newest.version}`}</code
      >
    </p>
  </section>`;
}
