import { html, raw } from 'hono/html';
import { ServiceError } from '../../../base/errors.ts';
import { RISK_LIMITS, type LimitName } from '../../../base/risk-limits.ts';
import { toAnswerPointer } from '../../../base/validation-report-fields.ts';
import { renderFields } from '../../../compliance/report/page-parts.ts';
import { fieldsIn, figuresIn } from '../../../compliance/report/report-fields.ts';
import type { Html } from '../html.ts';
import type { Content } from '../layout.ts';
import type { Form, GoTo, Pages, Visit } from '../pages.ts';
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
import { isIn, labelOf, SECTIONS, type AssessmentSection } from './sections.ts';

const PATH = `${ASSESSMENT_PATH}/:section`;

/** Registers the pages of the form, one for each section. */
export function addSectionPages(pages: Pages): void {
  pages.get(PATH, async (visit) =>
    showSection(sectionOf(visit), await readDraftPage(visit), visit),
  );
  pages.post(PATH, saveSection);
}

function sectionOf({ param }: Visit): AssessmentSection {
  const section = SECTIONS.find(({ id }) => id === param('section'));
  if (section !== undefined) return section;
  throw new ServiceError('not_found', 'the form of the assessment has no such page', {
    remedy: 'Open RTS 6 on the page of the bot, which lists the pages of the form.',
  });
}

async function saveSection(visit: Visit, form: Form): Promise<GoTo | Content> {
  const section = sectionOf(visit);
  const next = form.get('action') === 'next' ? nextOf(section) : undefined;
  return submitAnswers(visit, form, {
    show: (draft, typed) => showSection(section, draft, visit, typed),
    page: (next ?? section).id,
    message: `Saved: ${section.title}.`,
  });
}

function nextOf(section: AssessmentSection): AssessmentSection | undefined {
  return SECTIONS[SECTIONS.indexOf(section) + 1];
}

/** Lists the fields of a section that people fill. */
export function fieldsOf(
  section: AssessmentSection,
  { report }: Pick<DraftPage, 'report'>,
): AnswerField[] {
  return fieldsIn(report).flatMap(([place, field]) =>
    field.marker !== 'A' && isIn(section, place) ? [{ place, field }] : [],
  );
}

function showSection(
  section: AssessmentSection,
  draft: DraftPage,
  visit: Visit,
  typed?: Typed,
): Content {
  const fields = fieldsOf(section, draft);
  const next = nextOf(section);
  const links = new Map(
    fields.map(({ place }) => [
      toAnswerPointer(place),
      { id: fieldId(place), label: `${titleOf(parentOf(place))} ${labelOf(place)}`.trim() },
    ]),
  );
  const groups = [...Map.groupBy(fields.toSorted(byParagraph), ({ place }) => parentOf(place))];
  return {
    title: draft.bot.name,
    body: draftFrame(
      draft,
      section.title,
      html`${typed && faultList(typed.faults, links)} ${factsOf(section, draft)}
      ${draftForm(
        visit,
        draft,
        pathOf(draft, section.id),
        html`${groups.map(([parent, own]) => fieldGroup(draft, parent, own, typed))}
          <div class="actions sticky">
            <button class="main" name="action" value="save">Save</button>
            ${next && html`<button name="action" value="next">Save and go to the next page</button>`}
          </div>`,
        typed?.faults,
      )}
      ${
        next &&
        html`<p class="screen">Next page: <a href="${pathOf(draft, next.id)}">${next.title}</a></p>`
      }`,
    ),
  };
}

/** Orders paragraphs before other fields. */
function byParagraph(a: AnswerField, b: AnswerField): number {
  const rank = ({ place }: AnswerField): number => (place.startsWith('/articles/') ? 0 : 1);
  return rank(a) - rank(b);
}

function parentOf(place: string): string {
  return place.slice(0, place.lastIndexOf('/'));
}

/** Names a group of fields; empty for the fields of a section as a whole. */
function titleOf(parent: string): string {
  const [, list, item] =
    /^\/(articles|risk_controls|changes|incidents|annex_i\/\w+)\/(.+)$/.exec(parent) ?? [];
  if (list === undefined || item === undefined) return '';
  if (list === 'changes') return `Version ${item.slice(1)}`;
  if (list === 'incidents') return `Failed run ${item}`;
  if (list === 'articles') return item;
  if (list !== 'risk_controls') return `(${item})`;
  return labelOf(RISK_LIMITS[item as LimitName]?.title ?? item);
}

function fieldGroup(
  draft: DraftPage,
  parent: string,
  fields: readonly AnswerField[],
  typed: Typed | undefined,
): Html {
  const title = titleOf(parent);
  const controls = fields.map((one) => answerField(one, typed));
  if (title === '') return html`<div class="group">${controls}</div>`;
  return html`<fieldset>
    <legend>${title}</legend>
    ${introductionOf(draft, parent)}
    <div class="${parent.startsWith('/articles/') ? 'paragraph' : 'pair'}">${controls}</div>
  </fieldset>`;
}

/** The requirement and the gaps of a paragraph or criterion, above its fields. */
function introductionOf(draft: DraftPage, parent: string): Html | '' {
  const { report } = draft;
  const id = parent.slice(parent.lastIndexOf('/') + 1);
  if (parent.startsWith('/articles/')) {
    const row = report.articles.find((one) => one.id === id)!;
    const gaps = report.generated_by.gaps.filter((gap) => row.gaps.includes(gap.id));
    return html`<p>${row.requirement}</p>
      ${
        gaps.length > 0 &&
        html`<ul class="gaps">
          ${gaps.map(
            ({ id: gap, missing, owner, due }) =>
              html`<li>
                <a href="${pathOf(draft, 'gaps')}#${fieldId(`/generated_by/gaps/${gap}/owner`)}"
                  >Gap</a
                >: ${missing}
                <span class="note"
                  >${owner?.value ?? 'no owner'},
                  ${due?.value ? `due ${due.value}` : 'no due date'}</span
                >
              </li>`,
          )}
        </ul>`
      }`;
  }
  const criterion = Object.values(report.annex_i)
    .flat()
    .find(
      ({ ref }) =>
        parent.startsWith('/annex_i/') && ref.endsWith(`(${id})`) && isOfAnnex(parent, ref),
    );
  return criterion === undefined ? '' : html`<p>${criterion.requirement}</p>`;
}

const ANNEX_NUMBERS = { nature: 'I(1)', scale: 'I(2)', complexity: 'I(3)' } as const;

function isOfAnnex(parent: string, ref: string): boolean {
  const [, , name] = parent.split('/');
  return ref.startsWith(ANNEX_NUMBERS[name as keyof typeof ANNEX_NUMBERS]);
}

/** The figures of a section, which the person who assesses it needs. */
function factsOf(section: AssessmentSection, { report }: DraftPage): Html | '' {
  const figures = figuresIn(report).filter(([place]) => isIn(section, place));
  if (figures.length === 0) return '';
  const named = figures.map(([place, figure]) => [
    `${titleOf(parentOf(place))} ${labelOf(place)}`.trim(),
    figure,
  ]);
  const table = renderFields('Facts from the records', Object.fromEntries(named));
  return html`<details class="facts-of-records screen">
    <summary>Facts from the records</summary>
    <div class="scroll" role="region" aria-label="Facts from the records" tabindex="0">
      ${raw(table.source)}
    </div>
  </details>`;
}
