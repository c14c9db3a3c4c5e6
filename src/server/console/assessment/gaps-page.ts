import { html } from 'hono/html';
import type { ValidationReport } from '../../../api/validation-reports.ts';
import { toAnswerPointer } from '../../../base/validation-report-fields.ts';
import type { Html } from '../html.ts';
import type { Content } from '../layout.ts';
import type { Pages, Visit } from '../pages.ts';
import { answerField, fieldId, type AnswerField, type Typed } from './answer-field.ts';
import { submitAnswers } from './submit-answers.ts';
import {
  ASSESSMENT_PATH,
  draftForm,
  draftFrame,
  faultList,
  pathOf,
  readDraftPage,
  type DraftPage,
} from './draft-page.ts';

const PATH = `${ASSESSMENT_PATH}/gaps`;

/** Registers the form that gives each gap an owner and a due date. */
export function addGapsPage(pages: Pages): void {
  pages.get(PATH, async (visit) => showGaps(await readDraftPage(visit), visit));
  pages.post(PATH, (visit, form) =>
    submitAnswers(visit, form, {
      show: (draft, typed) => showGaps(draft, visit, typed),
      page: 'gaps',
      message: 'Owners and due dates are saved.',
    }),
  );
}

type Gap = ValidationReport['generated_by']['gaps'][number];

function fieldsOf({ id, owner, due }: Gap): (AnswerField & { readonly label: string })[] {
  const place = `/generated_by/gaps/${id}`;
  return [
    ...(owner === undefined ? [] : [{ place: `${place}/owner`, field: owner, label: 'Owner' }]),
    ...(due === undefined ? [] : [{ place: `${place}/due`, field: due, label: 'Due' }]),
  ];
}

function showGaps(draft: DraftPage, visit: Visit, typed?: Typed): Content {
  const { gaps } = draft.report.generated_by;
  const links = new Map(
    gaps.flatMap((gap) =>
      fieldsOf(gap).map(
        ({ place, label }) =>
          [
            toAnswerPointer(place),
            { id: fieldId(place), label: `${gap.missing}: ${label}` },
          ] as const,
      ),
    ),
  );
  return {
    title: draft.bot.name,
    body: draftFrame(
      draft,
      'Gaps',
      html`${typed && faultList(typed.faults, links)}
        <p class="note">
          A gap is a fact that the records do not contain, and that the report does not assume. It
          closes by itself once the records contain the fact.
        </p>
        ${
          gaps.length === 0
            ? html`<p>The draft has no gaps.</p>`
            : draftForm(
                visit,
                draft,
                pathOf(draft, 'gaps'),
                html`${gaps.map((gap) => gapRow(gap, typed))}
                  <div class="actions sticky"><button class="main">Save</button></div>`,
                typed?.faults,
              )
        }`,
    ),
  };
}

function gapRow(gap: Gap, typed: Typed | undefined): Html {
  const { missing, articles } = gap;
  return html`<fieldset>
    <legend>${missing}</legend>
    ${articles.length > 0 && html`<p class="note">Article ${articles.join(', ')}</p>`}
    <div class="pair two">
      ${fieldsOf(gap).map((one) => answerField(one, typed, one.label === 'Due' ? 'date' : 'line'))}
    </div>
  </fieldset>`;
}
