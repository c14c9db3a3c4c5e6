/** The sections of the page of a validation report, in order. */
import { html, nothing, type Child, type Html } from '../../base/html.ts';
import {
  ATTESTING_ROLES,
  ATTESTING_ROLE_NAMES,
  type SectionName,
} from '../../base/validation-report-fields.ts';
import { ARTICLES, cite, INSTRUMENTS } from '../articles.ts';
import { renderCode, renderField, renderFields, renderTable, toWords } from './page-parts.ts';
import { figuresIn } from './report-fields.ts';
import type { Field, Report } from './validation-report.ts';

interface PageSection {
  readonly id: string;
  readonly name: string;
  /** Whether it begins a new page when printed. */
  readonly isOnNewPage?: true;
  readonly render: (report: Report) => Child;
}

export const PAGE_SECTIONS: readonly PageSection[] = [
  sectionOf('summary', 'Summary'),
  {
    id: 'gaps',
    name: 'What is missing',
    render: ({ generated_by }) =>
      renderTable(
        'Facts that the records do not contain and the report does not assume',
        generated_by.gaps,
        {
          Gap: ({ id }) => renderCode(id),
          'What is missing': ({ missing }) => missing,
          Paragraphs: ({ articles }) => articles.join(', '),
          Owner: ({ owner }) => owner?.value ?? 'none',
          Due: ({ due }) => due?.value ?? 'no date',
        },
      ),
  },
  {
    id: 'articles',
    name: 'Paragraph by paragraph',
    isOnNewPage: true,
    render: ({ articles }) =>
      renderTable('Each paragraph of RTS 6, assessed only by people', articles, {
        Paragraph: ({ id }) => id,
        'Requirement, in our words': ({ requirement }) => requirement,
        Status: ({ status, final: { by } }) =>
          html`${toWords(status)}${by === null ? nothing : html` <span class="source">${by}</span>`}`,
        'Evidence and gaps': ({ evidence, gaps }) => [
          html`${evidence.map((place) => html`${renderCode(place)} `)}`,
          gaps.length === 0 ? nothing : html`<span class="source">gaps: ${gaps.join(', ')}</span>`,
        ],
        Narrative: ({ narrative }) => renderField(narrative),
      }),
  },
  {
    id: 'deficiencies',
    name: 'Deficiencies',
    render: ({ deficiencies }) =>
      deficiencies.length === 0
        ? html`<p>No deficiency has been entered, which does not mean that there is none.</p>`
        : renderTable('Deficiencies', deficiencies, {
            Number: ({ id }) => id,
            Paragraph: ({ article }) => article,
            Finding: ({ finding }) => finding,
            Severity: ({ severity }) => severity,
            Owner: ({ owner }) => owner,
            Due: ({ due }) => due,
            Closed: ({ closed }) => closed ?? 'open',
            'Compliance informed': (one) => one.compliance_informed_on ?? 'no',
          }),
  },
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
      renderItems(risk_controls, ({ id, articles, ...fields }) => [
        articles.length === 0 ? id : `${id}: ${articles.join(', ')}`,
        fields,
      ]),
  },
  sectionOf('governance', 'Governance'),
  { ...sectionOf('testing', 'Testing'), isOnNewPage: true },
  {
    id: 'changes',
    name: 'Changes',
    render: ({ changes }) =>
      renderItems(changes, ({ id, ...fields }) => [`Version ${id.slice(1)}`, fields]),
  },
  sectionOf('kill', 'Kill function'),
  sectionOf('pretrade', 'Pre-trade controls'),
  sectionOf('monitoring', 'Monitoring'),
  sectionOf('posttrade', 'Post-trade controls'),
  sectionOf('surveillance', 'Surveillance'),
  {
    id: 'incidents',
    name: 'Incidents: runs that failed, as candidates',
    render: ({ incidents }) => renderItems(incidents, ({ id, ...fields }) => [`Run ${id}`, fields]),
  },
  {
    id: 'annex',
    name: 'Annex I: nature, scale, complexity',
    isOnNewPage: true,
    render: ({ annex_i: { nature, scale, complexity } }) =>
      Object.entries({ Nature: nature, Scale: scale, Complexity: complexity }).map(
        ([name, criteria]) =>
          renderTable(name, criteria, {
            Criterion: ({ ref }) => ref,
            Requirement: ({ requirement }) => requirement,
            Fact: ({ fact, draft }) =>
              (fact ?? draft) ? renderField((fact ?? draft)!) : 'to be filled by a person',
            Assessment: ({ assessment }) => renderField(assessment),
          }),
      ),
  },
  {
    id: 'attestations',
    name: 'Attestations',
    isOnNewPage: true,
    render: ({ attestations }) => [
      renderTable(
        'Each role needs a different person; empty rows can be signed by hand',
        ATTESTING_ROLES,
        {
          Role: (role) => ATTESTING_ROLE_NAMES[role],
          Name: (role) => attestations[role]?.name ?? 'not attested',
          Time: (role) => attestations[role]?.at ?? '',
          'Content hash': (role) => attestations[role]?.content_hash ?? '',
        },
      ),
      renderFields('Internal audit', { absent_because: attestations.internal_audit_absent_reason }),
    ],
  },
  {
    id: 'evidence',
    name: 'Evidence: every figure, its query and its hash',
    isOnNewPage: true,
    render: (report) => [
      renderFields('The log', { log: report.generated_by.log }),
      renderTable('Figures', figuresIn(report), {
        Figure: ([place]) => renderCode(place),
        'Query and parameters': ([, { query }]) =>
          renderCode(`${query.name} ${JSON.stringify(query.params)}`),
        'SHA-256 of the value in canonical JSON': ([, { hash }]) => renderCode(hash),
      }),
      renderTable('What the queries read', Object.entries(report.queries), {
        Query: ([name]) => renderCode(name),
        Reads: ([, reads]) => reads,
      }),
      renderTable(
        'Internal thresholds, which no rule prescribes',
        Object.entries(report.house_numbers),
        { Name: ([name]) => name, Value: ([, value]) => value },
      ),
    ],
  },
  {
    id: 'paragraphs',
    name: 'Cited paragraphs',
    isOnNewPage: true,
    render: () =>
      [...Map.groupBy(ARTICLES, ({ instrument }) => instrument)].map(([instrument, all]) =>
        renderTable(`${instrument}: ${INSTRUMENTS[instrument]}`, all, {
          'Cited as': cite,
          'Requirement, in our words': ({ requirement }) => requirement,
        }),
      ),
  },
];

function sectionOf(id: SectionName, name: string): PageSection {
  return { id, name, render: (report) => renderFields(name, report[id]) };
}

function renderItems<T>(
  items: readonly T[],
  describe: (item: T) => readonly [name: string, fields: Readonly<Record<string, Field>>],
): Html | readonly Html[] {
  if (items.length === 0) return html`<p>None recorded.</p>`;
  return items.map((item) => renderFields(...describe(item)));
}
