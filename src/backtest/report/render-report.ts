import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { type Child, embeddedJson, html, Html, nothing } from '../../base/html.ts';
import { prepareSeries } from '../../base/charts/chart-series.ts';
import { prepareCharts } from '../../base/charts/chart-tools.ts';
import { STYLE } from '../../base/report-style.ts';

export interface Page {
  readonly title: string;
  readonly body: Html;
  /** Embedded as JSON in `#data` for the scripts, unless it already is that JSON. */
  readonly data: unknown;
  /**
   * Functions from `client/`, called in this order. The page contains their source text, so they may only
   * use their own code, types and what a browser defines.
   */
  readonly scripts: readonly (() => void)[];
  /** Further functions from `client/`, which the scripts declare and call by name. */
  readonly functions?: readonly ((...given: never[]) => unknown)[];
  readonly charts: boolean;
}

/**
 * Renders a self-contained HTML file. Its content security policy allows only the scripts and styles of
 * this page, by their hashes: no requests, no inline handlers and no injected markup.
 */
export function renderPage(page: Page): string {
  const library = page.charts ? chartLibrary() : '';
  const tools = page.charts
    ? `const chartTools = (${prepareCharts.toString()})(JSON.parse(document.querySelector('#data').textContent));\nconst chartSeries = (${prepareSeries.toString()})();\n`
    : '';
  const functions = (page.functions ?? []).map((each) => `${each.toString()}\n`).join('');
  const program = `'use strict';\n${tools}${functions}${page.scripts.map((script) => `(${script.toString()})();`).join('\n')}`;
  const scripts = [library, program].filter((source) => source !== '');
  const policy = [
    "default-src 'none'",
    `script-src ${scripts.map(hashSource).join(' ')}`,
    `style-src ${hashSource(STYLE)}`,
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');

  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta http-equiv="Content-Security-Policy" content="${policy}" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <meta name="generator" content="service-local" />
        <title>${page.title}</title>
        ${STYLE_ELEMENT}
      </head>
      <body>
        ${page.body}
        <footer>
          <p>Created by service-local. This file works offline and contacts no server.</p>
          ${page.charts ? CHARTS_ATTRIBUTION : nothing}
        </footer>
        <script type="application/json" id="data">
          ${page.data instanceof Html ? page.data : embeddedJson(page.data)}
        </script>
        ${scripts.map(scriptElement)}
      </body>
    </html> `.source;
}

/** The license of lightweight-charts requires its notice and a link to its author. */
const CHARTS_ATTRIBUTION = html`<p>
  Charts: TradingView Lightweight Charts™, copyright ©
  <a href="https://www.tradingview.com/" rel="noreferrer">TradingView, Inc.</a>, Apache License 2.0.
</p>`;

function chartLibrary(): string {
  const manifest = createRequire(import.meta.url).resolve('lightweight-charts/package.json');
  const bundle = join(dirname(manifest), 'dist', 'lightweight-charts.standalone.production.js');
  return readFileSync(bundle, 'utf8');
}

function hashSource(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}

// The hashes cover the exact text of these elements, so no template may reformat it.
const STYLE_ELEMENT = new Html(`<style>${STYLE}</style>`);

function scriptElement(source: string): Html {
  // Either would change where the browser ends the script (HTML, section 4.12.1.3).
  if (/<\/script|<!--/i.test(source)) throw new Error('a script contains </script or <!--');
  return new Html(`<script>${source}</script>\n`);
}

/** Hidden until `switchTheme` enables it. */
export const THEME_BUTTON = html`<button type="button" id="theme" hidden>Dark theme</button>`;

/** A column of a `table.sortable`; numeric columns are aligned right and sorted as numbers. */
export interface Column<Row> {
  readonly label: string;
  readonly numeric: boolean;
  /** Sort key of a numeric column; rows with `null` are always last. Other columns sort by their text. */
  readonly value: (row: Row) => string | number | null;
  readonly text: (row: Row) => Child;
}

/** Ten significant digits distinguish rows, and keep long tables small. */
function shortKey(key: string | number | null): string | number {
  return typeof key === 'number' ? Number(key.toPrecision(10)) : (key ?? '');
}

/** A table that its reader can sort by any column; `rows` are already in the order of `sorted`. */
export function sortableTable<Row>(options: {
  /** Accessible name of the table. */
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly sorted: { readonly column: number; readonly direction: 'ascending' | 'descending' };
}): Html {
  const { label: name, columns, rows, sorted } = options;
  const header = columns.map(({ label, numeric }, index) => {
    const sort = index === sorted.column ? html` aria-sort="${sorted.direction}"` : nothing;
    return html`<th scope="col" ${sort}${numeric ? html` class="number"` : nothing}>
      <button type="button">${label}</button>
    </th>`;
  });
  const cells = (row: Row): Html[] =>
    columns.map(
      ({ numeric, value, text }) =>
        html`<td${numeric ? html` data-value="${shortKey(value(row))}"` : nothing}>${text(row)}</td>`,
    );
  return html`<div class="scroll tall" tabindex="0" role="group" aria-label="${name}">
    <table class="sortable" aria-label="${name}">
      <thead>
        <tr>
          ${header}
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          (row) =>
            html`<tr>
              ${cells(row)}
            </tr> `,
        )}
      </tbody>
    </table>
  </div>`;
}
