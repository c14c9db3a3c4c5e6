import { html } from 'hono/html';
import type { ConformanceResult, StressResult } from '../../api/compliance-tests.ts';
import type { Html } from './html.ts';
import { badge, facts, table } from './parts.ts';

type Case = ConformanceResult['cases'][number];
type Control = StressResult['controls'][number];

const KINDS = {
  pass: 'good',
  fail: 'bad',
  inconclusive: 'warning',
  provisional: 'warning',
  not_applicable: 'neutral',
} as const;

const COUNTS = {
  pass: 'Passed',
  fail: 'Failed',
  inconclusive: 'Inconclusive',
  not_applicable: 'Not applicable',
  not_run: 'Not run',
} as const satisfies Record<keyof ConformanceResult['counts'], string>;

/** The result of a conformance or stress test; undefined for any other result. */
export function testFigures(result: Readonly<Record<string, unknown>>): Html | undefined {
  if (result['schema'] === 'conformance/1') return cases(result as unknown as ConformanceResult);
  return result['schema'] === 'stress/1' ? stress(result as unknown as StressResult) : undefined;
}

const SIMULATED = html`<p class="message">
  Tested at a simulated venue, which does not satisfy Article 6 of RTS 6 for any real venue.
</p>`;

function cases({ cases: all, counts, ...result }: ConformanceResult): Html {
  const { seed, evidence_hash } = result;
  return html`<section aria-labelledby="result">
    <h2 id="result">Result</h2>
    ${SIMULATED} ${stale(result)}
    ${facts(
      ...Object.entries(COUNTS).map(
        ([of, title]) => [title, counts[of as keyof typeof COUNTS]] as const,
      ),
      ['Seed', seed],
      ['Evidence', html`<code>${evidence_hash}</code>`],
    )}
    ${table<Case>(
      'Cases',
      [
        { title: 'Case', isHeader: true, cell: ({ id }) => id },
        { title: 'Result', cell: verdict },
        {
          title: 'Description',
          cell: ({ title, reason }) => html`${title}<span class="details">${reason}</span>`,
        },
        { title: 'Paragraphs', cell: ({ articles }) => articles.join(', ') },
      ],
      all,
    )}
  </section>`;
}

function stress(result: StressResult): Html {
  const { verdict: of, basis, reasons, not_judged: open, controls, scope, multiplier } = result;
  return html`<section aria-labelledby="result">
    <h2 id="result">Result</h2>
    ${SIMULATED} ${stale(result)}
    ${facts(['Verdict', badge(KINDS[of], of)], ['Peaks', `${basis}, scope ${scope}`], ['Multiplier', multiplier])}
    ${
      reasons.length + open.length > 0 &&
      html`<ul>
        ${reasons.map((reason) => html`<li>${reason}</li>`)}
        ${open.map((what) => html`<li>Not judged: ${what}</li>`)}
      </ul>`
    }
    ${table<Control>(
      'Controls at that load',
      [
        { title: 'Control', isHeader: true, cell: ({ id }) => id },
        { title: 'Result', cell: verdict },
        { title: 'Why', cell: ({ reason }) => reason },
        { title: 'Paragraphs', cell: ({ articles }) => articles.join(', ') },
      ],
      controls,
    )}
  </section>`;
}

function verdict({ status }: Pick<Case, 'status'>): Html {
  return badge(KINDS[status], status.replace('_', ' '));
}

function stale({ stale: isStale, stale_reasons }: Pick<StressResult, 'stale' | 'stale_reasons'>) {
  return isStale && html`<p class="message failure">Stale: ${stale_reasons.join('; ')}.</p>`;
}
