import { createHash } from 'node:crypto';
import { html, Html, nothing } from '../../base/html.ts';
import { listOpenItems } from '../../base/validation-report-status.ts';
import { formatCountOf } from '../../base/format.ts';
import type { Report } from './validation-report.ts';
import { renderFieldTable } from './page-parts.ts';
import { PAGE_SECTIONS } from './page-sections.ts';
import { STYLE } from './style.ts';

export interface ReportPage {
  readonly source: string;
  /** Value of the header `Content-Security-Policy`, which allows only the style of the page. */
  readonly policy: string;
}

const STYLE_HASH = createHash('sha256').update(STYLE).digest('base64');
const CONTENT_POLICY = `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; base-uri 'none'; form-action 'none'`;
// The hash covers every byte of the text, and a formatted template would change some of them.
const STYLE_ELEMENT = new Html(`<style>${STYLE}</style>`);

const STATUS = {
  draft: 'Draft: not frozen, not attested',
  frozen: 'Frozen, not yet attested by all roles',
  signed: 'Frozen, and attested by all roles that Article 9 names',
} as const;

/** Renders a report as one HTML file without scripts, which opens offline and prints on A4. */
export function renderReportPage(report: Report, hash: string | null): ReportPage {
  const { scope, period, status } = report;
  const title = `Validation report of ${scope.name}, ${period.year}`;
  const source = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta http-equiv="Content-Security-Policy" content="${CONTENT_POLICY}" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <meta name="generator" content="service-local" />
        <title>${title}</title>
        ${STYLE_ELEMENT}
      </head>
      <body>
        <header>
          <p class="topline">RTS 6, Article 9: facts for the yearly self-assessment</p>
          <h1>${title}</h1>
          <p><strong>${STATUS[status]}${describeOpenItems(report)}</strong></p>
          <p class="notice">${report.notice}</p>
          ${renderCover(report, hash)}
        </header>
        <main>
          ${PAGE_SECTIONS.map(
            ({ id, name, isOnNewPage, render }, i) =>
              html`<section ${isOnNewPage ? html`class="page"` : nothing} id="${id}">
                <h2>${i + 1}. ${name}</h2>
                ${render(report)}
              </section> `,
          )}
        </main>
        <footer>
          <p>
            Created by service-local ${report.generated_by.version}. This file is complete: it opens
            offline and contacts no server.
          </p>
        </footer>
      </body>
    </html> `.source;
  return { source, policy: `${CONTENT_POLICY}; frame-ancestors 'none'; sandbox` };
}

/** Names the open items, so that a signed report never looks complete while something is open. */
function describeOpenItems(report: Report): string {
  const open = listOpenItems(report);
  if (open.length === 0) return '';
  return `${report.status === 'signed' ? ', with' : '. Open:'} ${open.join(', ')}`;
}

function renderCover(report: Report, hash: string | null): Html {
  const { number, period, as_of, scope, content_hash, generated_by } = report;
  const before = number?.supersedes;
  const facts = {
    Bot: `${scope.bot_ref} (${scope.bot_id})`,
    Period: `from ${period.from} to before ${period.to}`,
    'As of': as_of,
    Version: number?.version ?? 'none (draft)',
    ...(number !== null && {
      Frozen: `${number.frozen_at} by ${number.frozen_by}`,
      Supersedes: before ? `version ${before.version}, ${before.hash}` : 'none (first version)',
    }),
    Missing: `${formatCountOf(generated_by.gaps.length, 'gap')}, see section 2`,
    'Hash of the report': hash ?? 'none (draft)',
    'Hash of the attested content': content_hash,
    'Hash of all figures': generated_by.inputs_hash,
    Engine: generated_by.engine,
  };
  return html`${renderFieldTable('About this report', facts)}
    <h2>How to read it</h2>
    <ul>
      <li>
        <span class="marker">A</span> read from the records; the query and the hash of the value
        follow
      </li>
      <li>
        <span class="marker">M</span> drafted from the records; the answer stays open until a person
        edits or confirms the draft
      </li>
      <li><span class="marker">H</span> only a person can fill this field</li>
    </ul>
    <nav aria-label="Contents">
      <ol>
        ${PAGE_SECTIONS.map(({ id, name }) => html`<li><a href="#${id}">${name}</a></li>`)}
      </ol>
    </nav>`;
}
