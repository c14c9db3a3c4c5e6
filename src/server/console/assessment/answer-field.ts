/** A field of a validation report as a control of a form. */
import { createHash } from 'node:crypto';
import { html } from 'hono/html';
import type { ValidationReport } from '../../../api/validation-reports.ts';
import { ASSESSMENTS, toAnswerPointer } from '../../../base/validation-report-fields.ts';
import type { Child, Html } from '../html.ts';
import type { Form } from '../pages.ts';
import { time } from '../parts.ts';
import { answerOf, type Faults } from './draft-page.ts';
import { labelOf } from './sections.ts';

type Human = ValidationReport['scope']['firm'];
type Draft = ValidationReport['summary']['method'];

/** A field that people fill, with its path. */
export interface AnswerField {
  readonly place: string;
  readonly field: Human | Draft;
  readonly label?: string;
}

/** A submitted form, which is shown again with its faults. */
export interface Typed {
  readonly form: Form;
  readonly faults: Faults;
}

const ASSESSMENT_NAMES: Readonly<Record<(typeof ASSESSMENTS)[number], string>> = {
  compliant: 'Compliant',
  partly: 'Partly compliant',
  non_compliant: 'Not compliant',
  n_a: 'Not applicable',
  not_assessed: 'Not assessed',
};

export function nameAssessment(value: (typeof ASSESSMENTS)[number]): string {
  return ASSESSMENT_NAMES[value];
}

export function fieldId(place: string): string {
  return `f${place.replaceAll(/\W+/g, '-')}`;
}

/** Beginnings of the names of hidden fields with marks, and of boxes that accept a draft. */
const MARK = 'was ';
const ACCEPT = 'accept ';

/** Marks the value that a form was rendered with, so that only changed fields are saved. */
function markOf(value: string | null): string {
  return createHash('sha256')
    .update(value ?? '')
    .digest('base64url')
    .slice(0, 12);
}

/** Returns the values of a form that a person has changed, by path. */
export function readChanged(form: Form): Record<string, string | null> {
  const places = form.names.flatMap((name) =>
    name.startsWith(MARK) ? [name.slice(MARK.length)] : [],
  );
  const changed = places.filter((place) => isChanged(place, form));
  return Object.fromEntries(
    changed.map((place) => [
      place,
      answerOf(form.get(place)) ?? answerOf(form.get(`${ACCEPT}${place}`)),
    ]),
  );
}

function isChanged(place: string, form: Form): boolean {
  const isNew = markOf(answerOf(form.get(place))) !== form.get(`${MARK}${place}`);
  return isNew || form.get(`${ACCEPT}${place}`) !== '';
}

/** Renders a field with its current value, or with what was typed into it. */
export function answerField(
  { place, field, label = labelOf(place) }: AnswerField,
  typed: Typed | undefined,
  control: 'lines' | 'line' | 'date' = 'lines',
): Html {
  const id = fieldId(place);
  const value =
    typed !== undefined && isChanged(place, typed.form)
      ? typed.form.get(place).replaceAll('\r\n', '\n')
      : (field.value ?? '');
  const problems = typed?.faults.of(toAnswerPointer(place)) ?? [];
  const isAssessment = /^\/articles\/[^/]+\/final$/.test(place);
  const draft = 'draft' in field && field.value === null ? field.draft : null;
  const notes = [
    ...problems.map(({ message }) => html`<p class="failure">It ${message}.</p>`),
    ...(problems.some(({ code }) => code === 'edited')
      ? [html`<p class="note">The other answer: ${field.value ?? 'none'}</p>`]
      : []),
    ...(field.by === null || field.at === null
      ? []
      : [
          html`<p class="note">Saved by ${field.by.replace(/ \(.*\)$/, '')}, ${time(field.at)}</p>`,
        ]),
    ...(draft === null ? [] : [html`<p class="note">Draft from the records: ${draft}</p>`]),
  ];
  const described = notes.length > 0 && html`aria-describedby="${id}-notes"`;
  const invalid = problems.length > 0 && html`aria-invalid="true"`;
  const attributes = html`id="${id}" name="${place}" ${described} ${invalid}`;
  return html`<div class="field">
    <label for="${id}">${label}</label>
    <input type="hidden" name="${MARK}${place}" value="${markOf(answerOf(field.value ?? ''))}" />
    ${isAssessment ? assessmentSelect(attributes, value) : plainControl(control, attributes, value)}
    ${notes.length > 0 && html`<div id="${id}-notes">${notes}</div>`}
    ${
      draft !== null &&
      html`<label class="check"
        ><input type="checkbox" name="${ACCEPT}${place}" value="${draft}" /> Accept the draft as the
        answer</label
      >`
    }
  </div>`;
}

function assessmentSelect(attributes: Html, value: string): Html {
  const options = ASSESSMENTS.filter((one) => one !== 'not_assessed');
  return html`<select ${attributes}>
    <option value="${value === 'not_assessed' ? value : ''}">
      ${ASSESSMENT_NAMES.not_assessed}
    </option>
    ${options.map((one) => html`<option value="${one}" ${one === value && html`selected`}>${ASSESSMENT_NAMES[one]}</option>`)}
  </select>`;
}

function plainControl(control: 'lines' | 'line' | 'date', attributes: Html, value: string): Child {
  if (control === 'date') return html`<input type="date" ${attributes} value="${value}" />`;
  if (control === 'line')
    return html`<input
      type="text"
      autocomplete="off"
      maxlength="200"
      ${attributes}
      value="${value}"
    />`;
  // A browser drops the first line feed of a text area.
  return html`<textarea
    rows="${Math.min(12, Math.max(2, value.split('\n').length + 1))}"
    ${attributes}
  >
${value}</textarea>`;
}
