import { html, type Child, type Html } from '../../base/html.ts';
import { isField } from './report-fields.ts';
import type { Field } from './validation-report.ts';

export function toWords(name: string): string {
  return name.replaceAll('_', ' ');
}

export function renderFieldTable(
  name: string,
  rows: readonly (readonly [name: string, value: Child])[],
): Html {
  return html`<table class="plain fields">
    <caption>
      ${name}
    </caption>
    <thead>
      <tr>
        <th scope="col">What</th>
        <th scope="col">Value</th>
      </tr>
    </thead>
    <tbody>
      ${rows.map(
        ([title, value]) =>
          html`<tr>
            <th scope="row">${title}</th>
            <td>${value}</td>
          </tr> `,
      )}
    </tbody>
  </table>`;
}

/** Renders a table whose first column names the row; browsers repeat its header on each printed page. */
export function renderTable(
  name: string,
  titles: readonly string[],
  rows: readonly (readonly Child[])[],
): Html {
  return html`<table class="plain rows">
    <caption>
      ${name}${rows.length === 0 ? ': none' : ''}
    </caption>
    <thead>
      <tr>
        ${titles.map((title) => html`<th scope="col">${title}</th>`)}
      </tr>
    </thead>
    <tbody>
      ${rows.map(
        ([first, ...rest]) =>
          html`<tr>
            <th scope="row">${first ?? ''}</th>
            ${rest.map((cell) => html`<td>${cell}</td>`)}
          </tr> `,
      )}
    </tbody>
  </table>`;
}

/** Renders a field with its marker, a letter that states its source. */
export function renderField(field: Field): Html {
  if (field.marker === 'A') {
    return html`<span class="marker">A</span> ${renderValue(field.value)}
      <div class="source">${field.query.name}, ${field.hash.slice(0, 12)}…</div>`;
  }
  const by =
    field.by === null ? '' : html`<div class="source">${field.by}, ${field.at ?? ''}</div>`;
  if (field.value !== null) {
    return html`<span class="marker">${field.marker}</span>
      <span class="words">${field.value}</span>${by}`;
  }
  const isDrafted = field.marker === 'M' && field.draft !== null;
  return html`<span class="marker">${field.marker}</span> ${
      isDrafted
        ? html`<span class="words">Draft, for a person to edit: ${field.draft}</span>`
        : html`<span class="empty"
            >${field.marker === 'M' ? 'no records to draft it from; ' : ''}to be filled by a
            person</span
          >`
    }`;
}

const MOST_SHOWN = 50;
/** Wider tables do not fit into a column of a printed page. */
const MOST_COLUMNS = 5;

/** Renders the value of a figure: texts and numbers unchanged, lists of objects as tables. */
function renderValue(value: unknown): Child {
  if (value === null || value === undefined) return 'unknown; see the gaps';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value === 'number' || typeof value === 'string') return value;
  if (Array.isArray(value)) return renderList(value);
  const entries = Object.entries(value);
  if (entries.length === 0) return 'none';
  return html`<dl class="facts">
    ${entries.map(
      ([name, one]) =>
        html`<dt>${toWords(name)}</dt>
          <dd>${renderInnerValue(one)}</dd> `,
    )}
  </dl>`;
}

function renderInnerValue(value: unknown): Child {
  return value === null || isField(value) ? 'none' : renderValue(value);
}

function renderList(all: readonly unknown[]): Child {
  if (all.length === 0) return 'none recorded';
  const first = all.slice(0, MOST_SHOWN);
  const more =
    all.length > first.length ? ` and ${all.length - first.length} more in the JSON version` : '';
  const isTable = first.every((one) => typeof one === 'object' && one !== null);
  if (!isTable) return `${first.map(String).join(', ')}${more}`;
  const titles = [...new Set(first.flatMap((one) => Object.keys(one)))];
  if (titles.length > MOST_COLUMNS) {
    return html`${first.map((one) => html`<div class="record">${renderValue(one)}</div>`)} ${more}`;
  }
  return html`<table>
      <thead>
        <tr>
          ${titles.map((title) => html`<th scope="col">${toWords(title)}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${first.map(
          (one) =>
            html`<tr>
              ${titles.map((title) => html`<td>${renderInnerValue((one as Record<string, unknown>)[title] ?? null)}</td>`)}
            </tr> `,
        )}
      </tbody>
    </table>
    ${more}`;
}
