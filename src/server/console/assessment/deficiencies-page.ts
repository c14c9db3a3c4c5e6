import { html } from 'hono/html';
import type { ValidationReport } from '../../../api/validation-reports.ts';
import type { Html } from '../html.ts';
import type { Content } from '../layout.ts';
import type { Form, GoTo, Pages, Visit } from '../pages.ts';
import { table } from '../parts.ts';
import {
  ASSESSMENT_PATH,
  draftForm,
  draftFrame,
  faultList,
  pathBeside,
  pathOf,
  readDraftPage,
  saveDraft,
  statusOf,
  type DraftPage,
  type Faults,
} from './draft-page.ts';

const PATH = `${ASSESSMENT_PATH}/deficiencies`;

/** Pointer to the list in a request. */
const LIST = '/deficiencies';

type Deficiency = Omit<ValidationReport['deficiencies'][number], 'id'>;

/** Fields of a deficiency, with the type of their control. */
const FIELDS = {
  article: { label: 'Paragraph, such as 15(3)', type: 'text' },
  finding: { label: 'Finding', type: 'lines' },
  severity: { label: 'Severity', type: 'text' },
  owner: { label: 'Owner', type: 'text' },
  due: { label: 'Due', type: 'date' },
  closed: { label: 'Closed on', type: 'date' },
  compliance_informed_on: { label: 'Compliance informed on', type: 'date' },
} as const satisfies Readonly<Record<keyof Deficiency, object>>;

type Name = keyof typeof FIELDS;
const NAMES = Object.keys(FIELDS) as readonly Name[];

/** A deficiency as text of a form; an empty text is a missing value. */
type Row = Readonly<Record<Name, string>>;

const EMPTY = Object.fromEntries(NAMES.map((name) => [name, ''])) as Row;

/** Registers the form of the deficiencies that people have found. */
export function addDeficienciesPage(pages: Pages): void {
  pages.get(PATH, async (visit) => {
    const draft = await readDraftPage(visit);
    return showDeficiencies(draft, visit, draft.report.deficiencies.map(toRow));
  });
  pages.post(PATH, saveDeficiencies);
}

function toRow(deficiency: Deficiency): Row {
  return Object.fromEntries(NAMES.map((name) => [name, deficiency[name] ?? ''])) as Row;
}

async function saveDeficiencies(visit: Visit, form: Form): Promise<GoTo | Content> {
  const rows = readRows(form);
  const deficiencies = rows.map(
    (row) =>
      // A missing value is reported at its field, so it must not be sent as an empty text.
      Object.fromEntries(Object.entries(row).filter(([, text]) => text !== '')) as Deficiency,
  );
  const faults = await saveDraft(visit, form, { deficiencies });
  if (faults === undefined) {
    return { goTo: pathBeside(visit, 'deficiencies'), message: 'The deficiencies are saved.' };
  }
  const content = showDeficiencies(await readDraftPage(visit), visit, rows, faults);
  return { ...content, status: statusOf(faults) };
}

/** Reads the rows of a form, without empty and removed rows. */
function readRows(form: Form): Row[] {
  const removed = new Set(form.all('remove'));
  const columns = NAMES.map((name) => [name, form.all(name)] as const);
  const count = columns[0]![1].length;
  return Array.from({ length: count }, (_, i) => i)
    .filter((i) => !removed.has(String(i)))
    .map((i) => {
      const values = columns.map(([name, all]) => [
        name,
        (all[i] ?? '').replaceAll('\r\n', '\n').trim(),
      ]);
      return Object.fromEntries(values) as Row;
    })
    .filter((row) => NAMES.some((name) => row[name] !== ''));
}

function showDeficiencies(
  draft: DraftPage,
  visit: Visit,
  rows: readonly Row[],
  faults?: Faults,
): Content {
  const isEdited = (faults?.of(LIST).length ?? 0) > 0;
  const links = new Map([
    [LIST, { id: 'saved', label: 'The list of deficiencies' }],
    ...rows.flatMap((_, i) =>
      NAMES.map(
        (name) =>
          [
            `/deficiencies/${i}/${name}`,
            { id: `${name}-${i}`, label: `Deficiency ${i + 1}, ${FIELDS[name].label}` },
          ] as const,
      ),
    ),
  ]);
  return {
    title: draft.bot.name,
    body: draftFrame(
      draft,
      'Deficiencies',
      html`${faults && faultList(faults, links)} ${isEdited && savedList(draft)}
        <p class="note">
          Deficiencies that people have found. Article 9 requires the firm to remedy each one, and
          to inform the compliance function.
        </p>
        ${draftForm(
          visit,
          draft,
          pathOf(draft, 'deficiencies'),
          html`${rows.map((row, i) => deficiencyRow(row, i, faults))}
            <details ${rows.length === 0 && html`open`}>
              <summary>Add a deficiency</summary>
              ${deficiencyRow(EMPTY, rows.length, undefined)}
            </details>
            <div class="actions sticky"><button class="main">Save</button></div>`,
          faults,
        )}`,
    ),
  };
}

/** The list that was saved after the form was opened; saving the form again replaces it. */
function savedList({ report }: DraftPage): Html {
  return html`<section>
    <h3 id="saved">The saved list</h3>
    ${table<ValidationReport['deficiencies'][number]>(
      'The saved list',
      [
        { title: 'Paragraph', isHeader: true, cell: ({ article }) => article },
        { title: 'Finding', cell: ({ finding }) => finding },
        { title: 'Owner', cell: ({ owner }) => owner },
        { title: 'Due', cell: ({ due }) => due },
        { title: 'Closed', cell: ({ closed }) => closed ?? 'open' },
      ],
      report.deficiencies,
    )}
  </section>`;
}

function deficiencyRow(row: Row, i: number, faults: Faults | undefined): Html {
  const isNew = row === EMPTY;
  return html`<fieldset>
    <legend>${isNew ? 'New deficiency' : `Deficiency ${i + 1}`}</legend>
    <div class="pair">${NAMES.map((name) => control(name, row[name], i, faults))}</div>
    ${
      !isNew &&
      html`<label class="check"
        ><input type="checkbox" name="remove" value="${i}" /> Remove it from the list</label
      >`
    }
  </fieldset>`;
}

function control(name: Name, value: string, i: number, faults: Faults | undefined): Html {
  const { label, type } = FIELDS[name];
  const id = `${name}-${i}`;
  const problems = faults?.of(`/deficiencies/${i}/${name}`) ?? [];
  const attributes = html`id="${id}" name="${name}"
  ${problems.length > 0 && html`aria-invalid="true" aria-describedby="${id}-notes"`}`;
  return html`<div class="field ${type === 'lines' && 'wide'}">
    <label for="${id}">${label}</label>
    ${
      type === 'lines'
        ? html`<textarea rows="3" ${attributes}>${value}</textarea>`
        : html`<input type="${type}" autocomplete="off" ${attributes} value="${value}" />`
    }
    ${
      problems.length > 0 &&
      html`<div id="${id}-notes">
        ${problems.map(({ message }) => html`<p class="failure">${message}</p>`)}
      </div>`
    }
  </div>`;
}
