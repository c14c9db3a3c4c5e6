import { createHash } from 'node:crypto';
import { html, Html, nothing } from '../../backtest/report/html.ts';
import { ARTICLES, cite, INSTRUMENTS } from '../articles.ts';
import { ATTESTING_ROLES } from '../../base/validation-report-fields.ts';
import { listOpenItems } from '../../base/validation-report-status.ts';
import { formatCountOf } from '../../base/format.ts';
import { figuresIn } from './report-fields.ts';
import type { Report } from './validation-report.ts';
import { renderField, renderFieldTable, renderTable, toWords } from './page-parts.ts';
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
          ${listSections(report).map(
            ({ id, name, body }, i) =>
              html`<section ${BEGINS_PAGE.has(id) ? html`class="page"` : nothing} id="${id}">
                <h2>${i + 1}. ${name}</h2>
                ${body}
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
  const rows = [
    ['Bot', `${scope.bot_ref} (${scope.bot_id})`],
    ['Period', `from ${period.from} to before ${period.to}`],
    ['As of', as_of],
    ['Version', number === null ? 'none (draft)' : String(number.version)],
    ...(number === null
      ? []
      : [
          ['Frozen', `${number.frozen_at} by ${number.frozen_by}`],
          [
            'Supersedes',
            number.supersedes === null
              ? 'none (first version)'
              : `version ${number.supersedes.version}, ${number.supersedes.hash}`,
          ],
        ]),
    ['Missing', `${formatCountOf(generated_by.gaps.length, 'gap')}, see section 2`],
    ['Hash of the report', hash ?? 'none (draft)'],
    ['Hash of the attested content', content_hash],
    ['Hash of all figures', generated_by.inputs_hash],
    ['Engine', generated_by.engine],
  ] as const;
  return html`${renderFieldTable(
      'About this report',
      rows.map(([name, value]) => [name, value]),
    )}
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
        ${listSections(report).map(({ id, name }) => html`<li><a href="#${id}">${name}</a></li>`)}
      </ol>
    </nav>`;
}

/** Sections that begin a new page when printed. */
const BEGINS_PAGE: ReadonlySet<string> = new Set([
  'articles',
  'inventory',
  'testing',
  'annex',
  'attestations',
  'evidence',
  'paragraphs',
]);

interface Section {
  readonly id: string;
  readonly name: string;
  readonly body: Html | readonly Html[];
}

function listSections(report: Report): Section[] {
  const { generated_by, annex_i } = report;
  const section = (id: string, name: string, fields: object): Section => ({
    id,
    name,
    body: renderFields(name, fields),
  });
  return [
    section('summary', 'Summary', report.summary),
    { id: 'gaps', name: 'What is missing', body: renderGaps(report) },
    { id: 'articles', name: 'Paragraph by paragraph', body: renderArticles(report) },
    { id: 'deficiencies', name: 'Deficiencies', body: renderDeficiencies(report) },
    {
      id: 'inventory',
      name: 'Inventory',
      body: [
        renderFields('This bot', report.inventory),
        renderFields('The firm', { firm: report.scope.firm, fleet: report.scope.fleet }),
      ],
    },
    {
      id: 'controls',
      name: 'Risk controls',
      body: renderItems(report.risk_controls, ({ id, articles }) =>
        articles.length === 0 ? id : `${id}: ${articles.join(', ')}`,
      ),
    },
    section('governance', 'Governance', report.governance),
    section('testing', 'Testing', report.testing),
    {
      id: 'changes',
      name: 'Changes',
      body: renderItems(report.changes, ({ id }) => `Version ${id.slice(1)}`),
    },
    section('kill', 'Kill function', report.kill),
    section('pretrade', 'Pre-trade controls', report.pretrade),
    section('monitoring', 'Monitoring', report.monitoring),
    section('posttrade', 'Post-trade controls', report.posttrade),
    section('surveillance', 'Surveillance', report.surveillance),
    {
      id: 'incidents',
      name: 'Incidents: runs that failed, as candidates',
      body: renderItems(report.incidents, ({ id }) => `Run ${id}`),
    },
    {
      id: 'annex',
      name: 'Annex I: nature, scale, complexity',
      body: [
        renderCriteria('Nature', annex_i.nature),
        renderCriteria('Scale', annex_i.scale),
        renderCriteria('Complexity', annex_i.complexity),
      ],
    },
    { id: 'attestations', name: 'Attestations', body: renderAttestations(report) },
    {
      id: 'evidence',
      name: 'Evidence: every figure, its query and its hash',
      body: [
        renderFields('The log', { log: generated_by.log }),
        renderEvidence(report),
        renderTable(
          'What the queries read',
          ['Query', 'Reads'],
          Object.entries(report.queries).map(([name, reads]) => [
            html`<code>${name}</code>`,
            reads,
          ]),
        ),
        renderTable(
          'Internal thresholds, which no rule prescribes',
          ['Name', 'Value'],
          Object.entries(report.house_numbers),
        ),
      ],
    },
    { id: 'paragraphs', name: 'Cited paragraphs', body: renderParagraphs() },
  ];
}

function renderFields(name: string, fields: object): Html {
  return renderFieldTable(
    name,
    Object.entries(fields).map(([key, field]) => [toWords(key), renderField(field)]),
  );
}

function renderItems<T extends { readonly id: string }>(
  items: readonly T[],
  nameOf: (item: T) => string,
): readonly Html[] {
  if (items.length === 0) return [html`<p>None recorded.</p>`];
  return items.map((item) => {
    const { id: _id, articles: _articles, ...fields } = item as T & { readonly articles?: unknown };
    return renderFields(nameOf(item), fields);
  });
}

function renderGaps({ generated_by: { gaps } }: Report): Html {
  return renderTable(
    'Facts that the records do not contain and the report does not assume',
    ['Gap', 'What is missing', 'Paragraphs'],
    gaps.map(({ id, missing, articles }) => [
      html`<code>${id}</code>`,
      missing,
      articles.join(', '),
    ]),
  );
}

function renderArticles({ articles }: Report): Html {
  return renderTable(
    'Each paragraph of RTS 6, assessed only by people',
    ['Paragraph', 'Requirement, in our words', 'Status', 'Evidence and gaps', 'Narrative'],
    articles.map(({ id, requirement, status, evidence, gaps, final, narrative }) => [
      id,
      requirement,
      html`${toWords(status)}${final.by === null ? nothing : html` <span class="source">${final.by}</span>`}`,
      html`${evidence.map((place) => html`<code>${place}</code> `)}${
        gaps.length === 0 ? nothing : html`<span class="source">gaps: ${gaps.join(', ')}</span>`
      }`,
      renderField(narrative),
    ]),
  );
}

function renderDeficiencies({ deficiencies }: Report): Html {
  if (deficiencies.length === 0) {
    return html`<p>No deficiency has been entered, which does not mean that there is none.</p>`;
  }
  return renderTable(
    'Deficiencies',
    ['Number', 'Paragraph', 'Finding', 'Severity', 'Owner', 'Due', 'Closed', 'Compliance informed'],
    deficiencies.map((one) => [
      one.id,
      one.article,
      one.finding,
      one.severity,
      one.owner,
      one.due,
      one.closed ?? 'open',
      one.compliance_informed_on ?? 'no',
    ]),
  );
}

function renderCriteria(name: string, criteria: Report['annex_i']['nature']): Html {
  return renderTable(
    name,
    ['Criterion', 'Requirement', 'Fact', 'Assessment'],
    criteria.map(({ ref, requirement, fact, draft, assessment }) => [
      ref,
      requirement,
      (fact ?? draft) ? renderField((fact ?? draft)!) : 'to be filled by a person',
      renderField(assessment),
    ]),
  );
}

function renderAttestations({ attestations }: Report): Html {
  return html`${renderTable(
    'Each role needs a different person; empty rows can be signed by hand',
    ['Role', 'Name', 'Time', 'Content hash'],
    ATTESTING_ROLES.map((role) => {
      const one = attestations[role];
      return [toWords(role), one?.name ?? 'not attested', one?.at ?? '', one?.content_hash ?? ''];
    }),
  )}
  ${renderFields('Internal audit', { absent_because: attestations.internal_audit_absent_reason })}`;
}

function renderEvidence(report: Report): Html {
  return renderTable(
    'Figures',
    ['Figure', 'Query and parameters', 'SHA-256 of the value in canonical JSON'],
    figuresIn(report).map(([place, { query, hash }]) => [
      html`<code>${place}</code>`,
      html`<code>${query.name} ${JSON.stringify(query.params)}</code>`,
      html`<code>${hash}</code>`,
    ]),
  );
}

function renderParagraphs(): readonly Html[] {
  return [...Map.groupBy(ARTICLES, ({ instrument }) => instrument)].map(([instrument, all]) =>
    renderTable(
      `${instrument}: ${INSTRUMENTS[instrument]}`,
      ['Cited as', 'Requirement, in our words'],
      all.map((one) => [cite(one), one.requirement]),
    ),
  );
}
