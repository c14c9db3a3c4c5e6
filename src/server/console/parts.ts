/** Building blocks of pages. */
import { html } from 'hono/html';
import { formatActor } from '../../base/format.ts';
import type { Child, Html } from './html.ts';

export interface Column<T> {
  readonly title: Child;
  readonly cell: (row: T) => Child;
  /** Right-aligned. */
  readonly isNumber?: true;
  /** This column names the row. */
  readonly isHeader?: true;
  /** How the rows are ordered by this column. */
  readonly sorted?: 'ascending' | 'descending' | undefined;
}

/**
 * A table that scrolls by itself if it is wider than the page.
 * @param label names the table for screen readers.
 */
export function table<T>(label: string, columns: readonly Column<T>[], rows: readonly T[]): Html {
  const cell = ({ cell: show, isNumber, isHeader }: Column<T>, row: T): Html => {
    const style = isNumber && html` class="number"`;
    return isHeader
      ? html`<th scope="row" ${style}>${show(row)}</th>`
      : html`<td${style}>${show(row)}</td>`;
  };
  return html`<div class="scroll" role="region" aria-label="${label}" tabindex="0">
    <table>
      <thead>
        <tr>
          ${columns.map(({ title, isNumber, sorted }) => html`<th scope="col" ${isNumber && html` class="number"`} ${sorted && html`aria-sort="${sorted}"`}>${title}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          (row) =>
            html`<tr>
              ${columns.map((column) => cell(column, row))}
            </tr> `,
        )}
      </tbody>
    </table>
  </div>`;
}

/** Placeholder for an empty list: what to do next, and the command for it. */
export function emptyState(text: Child, command: string): Html {
  return html`<div class="empty">
    <p>${text}</p>
    <pre><code>${command}</code></pre>
  </div>`;
}

export function who(id: string, name: string | null): Html {
  return html`<span class="id" ${name !== null && html` title="${id}"`}
    >${formatActor(id, name)}</span
  >`;
}

/** A list of names with their values. */
export function facts(...entries: readonly (readonly [name: string, value: Child])[]): Html {
  return html`<dl class="facts">
    ${entries.map(
      ([name, value]) =>
        html`<div>
          <dt>${name}</dt>
          <dd>${value}</dd>
        </div>`,
    )}
  </dl>`;
}

/** Shows `2026-01-02T03:04:05Z` as `2026-01-02 03:04:05 UTC`. */
export function time(instant: string): Html {
  return html`<time datetime="${instant}"
    >${instant.replace('T', ' ').replace(/(\.\d+)?Z$/, '')} UTC</time
  >`;
}

export function badge(kind: 'good' | 'warning' | 'bad' | 'neutral', text: string): Html {
  return html`<span class="badge ${kind}">${text}</span>`;
}

/** An input with its label. `attributes` such as `required` are set on the input. */
export function field(
  label: string,
  name: string,
  attributes: Readonly<Record<string, string | number | boolean | undefined>> = {},
  hint?: Child,
): Html {
  const id = `field-${name}`;
  const all: typeof attributes = { type: 'text', ...attributes };
  const given = Object.entries(all).map(([key, value]) =>
    value === undefined || value === false
      ? ''
      : html` ${key}="${value === true ? '' : String(value)}"`,
  );
  return html`<div class="field">
    <label for="${id}">${label}</label>
    <input
      id="${id}"
      name="${name}"
      ${given}${hint !== undefined && html` aria-describedby="${id}-hint"`}
    />
    ${hint !== undefined && html`<p class="note" id="${id}-hint">${hint}</p>`}
  </div>`;
}

/** Placeholder in which a script of the page shows errors. */
export const ALERT = html`<p class="failure" role="alert"></p>`;

/** Links to the first and the next page of a list; undefined if it fits on one page. */
export function pager(
  path: string,
  query: Readonly<Record<string, string | undefined>>,
  next_cursor: string | null,
): Html | undefined {
  const { cursor } = query;
  if (next_cursor === null && cursor === undefined) return undefined;
  const to = (at: string | undefined): string => {
    const given = Object.entries({ ...query, cursor: at }).filter(
      (entry): entry is [string, string] => entry[1] !== undefined,
    );
    return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`;
  };
  return html`<nav class="pager" aria-label="Pages">
    ${cursor !== undefined && html`<a class="button" href="${to(undefined)}">First page</a>`}
    ${next_cursor !== null && html`<a class="button" href="${to(next_cursor)}">Next page</a>`}
  </nav>`;
}
