import { html, type Child, type Html } from '../../base/html.ts';
import type { Field } from './validation-report.ts';

export function toWords(name: string): string {
  return name.replaceAll('_', ' ');
}

export function renderCode(text: string): Html {
  return html`<code>${text}</code>`;
}

/** The cell of a row in each column, by the title of the column. The first cell names its row. */
export type Columns<T> = Readonly<Record<string, (row: T) => Child>>;

/** Renders a table; browsers repeat its header on each printed page. */
export function renderTable<T>(
  name: string,
  rows: readonly T[],
  columns: Columns<T>,
  kind: 'rows' | 'fields' = 'rows',
): Html {
  const [first, ...others] = Object.values(columns);
  return html`<table class="plain ${kind}">
    <caption>
      ${name}${rows.length === 0 ? ': none' : ''}
    </caption>
    <thead>
      <tr>
        ${Object.keys(columns).map((title) => html`<th scope="col">${title}</th>`)}
      </tr>
    </thead>
    <tbody>
      ${rows.map(
        (row) =>
          html`<tr>
            <th scope="row">${first!(row)}</th>
            ${others.map((cell) => html`<td>${cell(row)}</td>`)}
          </tr> `,
      )}
    </tbody>
  </table>`;
}

export function renderFieldTable(name: string, values: Readonly<Record<string, Child>>): Html {
  const columns = {
    What: ([title]: readonly [string, Child]) => title,
    Value: ([, value]: readonly [string, Child]) => value,
  };
  return renderTable(name, Object.entries(values), columns, 'fields');
}

export function renderFields(name: string, fields: Readonly<Record<string, Field>>): Html {
  const values = Object.entries(fields).map(([key, field]) => [toWords(key), renderField(field)]);
  return renderFieldTable(name, Object.fromEntries(values) as Record<string, Child>);
}

/** Renders a field with its marker, a letter that states its source. */
export function renderField(field: Field): Html {
  const marker = html`<span class="marker">${field.marker}</span>`;
  if (field.marker === 'A') {
    return html`${marker} ${renderValue(field.value)}
      <div class="source">${field.query.name}, ${field.hash.slice(0, 12)}…</div>`;
  }
  if (field.value !== null) {
    return html`${marker} <span class="words">${field.value}</span>
      <div class="source">${field.by!}, ${field.at!}</div>`;
  }
  if (field.marker === 'M' && field.draft !== null) {
    return html`${marker} <span class="words">Draft, for a person to edit: ${field.draft}</span>`;
  }
  const why = field.marker === 'M' ? 'no records to draft it from; ' : '';
  return html`${marker} <span class="empty">${why}to be filled by a person</span>`;
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
  return value === null ? 'none' : renderValue(value);
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
