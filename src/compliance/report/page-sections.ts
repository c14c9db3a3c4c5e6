/** The sections of the page of a validation report, in order. */
import { html, nothing, type Html } from '../../base/html.ts';
import { ATTESTING_ROLES, type SectionName } from '../../base/validation-report-fields.ts';
import { ARTICLES, cite, INSTRUMENTS } from '../articles.ts';
import { renderField, renderFieldTable, renderTable, toWords } from './page-parts.ts';
import { figuresIn } from './report-fields.ts';
import type { Field, Report } from './validation-report.ts';

interface PageSection {
  readonly id: string;
  readonly name: string;
  /** Whether it begins a new page when printed. */
  readonly isOnNewPage?: true;
  readonly render: (report: Report) => Html | readonly Html[];
}

export const PAGE_SECTIONS: readonly PageSection[] = [
  sectionOf('summary', 'Summary'),
  { id: 'gaps', name: 'What is missing', render: renderGaps },
  { id: 'articles', name: 'Paragraph by paragraph', isOnNewPage: true, render: renderArticles },
  { id: 'deficiencies', name: 'Deficiencies', render: renderDeficiencies },
  {
    id: 'inventory',
    name: 'Inventory',
    isOnNewPage: true,
    render: ({ inventory, scope: { firm, fleet } }) => [
      renderFields('This bot', inventory),
      renderFields('The firm', { firm, fleet }),
    ],
  },
  {
    id: 'controls',
    name: 'Risk controls',
    render: ({ risk_controls }) =>
      renderItems(
        risk_controls.map(({ id, articles, ...fields }) => [
          articles.length === 0 ? id : `${id}: ${articles.join(', ')}`,
          fields,
        ]),
      ),
  },
  sectionOf('governance', 'Governance'),
  { ...sectionOf('testing', 'Testing'), isOnNewPage: true },
  {
    id: 'changes',
    name: 'Changes',
    render: ({ changes }) =>
      renderItems(changes.map(({ id, ...fields }) => [`Version ${id.slice(1)}`, fields])),
  },
  sectionOf('kill', 'Kill function'),
  sectionOf('pretrade', 'Pre-trade controls'),
  sectionOf('monitoring', 'Monitoring'),
  sectionOf('posttrade', 'Post-trade controls'),
  sectionOf('surveillance', 'Surveillance'),
  {
    id: 'incidents',
    name: 'Incidents: runs that failed, as candidates',
    render: ({ incidents }) =>
      renderItems(incidents.map(({ id, ...fields }) => [`Run ${id}`, fields])),
  },
  {
    id: 'annex',
    name: 'Annex I: nature, scale, complexity',
    isOnNewPage: true,
    render: ({ annex_i: { nature, scale, complexity } }) => [
      renderCriteria('Nature', nature),
      renderCriteria('Scale', scale),
      renderCriteria('Complexity', complexity),
    ],
  },
  { id: 'attestations', name: 'Attestations', isOnNewPage: true, render: renderAttestations },
  {
    id: 'evidence',
    name: 'Evidence: every figure, its query and its hash',
    isOnNewPage: true,
    render: renderEvidence,
  },
  { id: 'paragraphs', name: 'Cited paragraphs', isOnNewPage: true, render: renderParagraphs },
];

function sectionOf(id: SectionName, name: string): PageSection {
  return { id, name, render: (report) => renderFields(name, report[id]) };
}

function renderFields(name: string, fields: Readonly<Record<string, Field>>): Html {
  return renderFieldTable(
    name,
    Object.entries(fields).map(([key, field]) => [toWords(key), renderField(field)]),
  );
}

function renderItems(
  items: readonly (readonly [name: string, fields: Readonly<Record<string, Field>>])[],
): readonly Html[] {
  if (items.length === 0) return [html`<p>None recorded.</p>`];
  return items.map(([name, fields]) => renderFields(name, fields));
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

function renderEvidence(report: Report): readonly Html[] {
  return [
    renderFields('The log', { log: report.generated_by.log }),
    renderTable(
      'Figures',
      ['Figure', 'Query and parameters', 'SHA-256 of the value in canonical JSON'],
      figuresIn(report).map(([place, { query, hash }]) => [
        html`<code>${place}</code>`,
        html`<code>${query.name} ${JSON.stringify(query.params)}</code>`,
        html`<code>${hash}</code>`,
      ]),
    ),
    renderTable(
      'What the queries read',
      ['Query', 'Reads'],
      Object.entries(report.queries).map(([name, reads]) => [html`<code>${name}</code>`, reads]),
    ),
    renderTable(
      'Internal thresholds, which no rule prescribes',
      ['Name', 'Value'],
      Object.entries(report.house_numbers),
    ),
  ];
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
