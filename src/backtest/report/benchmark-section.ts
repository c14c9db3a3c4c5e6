import { formatFigure, readFigure } from '../../base/format-figure.ts';
import { html, type Html, nothing } from '../../base/html.ts';
import { RUN_FIGURES, type FigureName } from '../../base/run-figures.ts';
import type { BenchmarkStatistics, UnhashedSummary } from '../summary.ts';
import { showFigure } from './statistics-section.ts';

/** Figures that the run and its benchmark both have, and the field of the benchmark. */
const BOTH = [
  ['total_return', 'total'],
  ['cagr', 'cagr'],
  ['volatility', 'volatility'],
  ['sharpe', 'sharpe'],
  ['max_drawdown', 'max_drawdown'],
] as const satisfies readonly (readonly [FigureName, keyof BenchmarkStatistics])[];

const RELATIVE = [
  'alpha',
  'beta',
  'correlation',
  'tracking_error',
  'information_ratio',
] as const satisfies readonly FigureName[];

/** Name of the benchmark in headings and legends. */
export function benchmarkName({ benchmark }: UnhashedSummary): string {
  return benchmark === undefined || benchmark.name === 'buy_and_hold'
    ? 'Buy and hold'
    : benchmark.name;
}

export function benchmarkSection(summary: UnhashedSummary): Html {
  const { benchmark } = summary;
  if (benchmark === undefined) return nothing;
  return html`<section aria-labelledby="benchmark">
    <h2 id="benchmark">Benchmark: <bdi>${benchmarkName(summary)}</bdi></h2>
    <div class="scroll brief" tabindex="0" role="group" aria-labelledby="benchmark">
      <table class="plain">
        <thead>
          <tr>
            <th scope="col">Figure</th>
            <th scope="col" class="number">Run</th>
            <th scope="col" class="number">Benchmark</th>
          </tr>
        </thead>
        <tbody>
          ${BOTH.map(
            ([name, field]) =>
              html`<tr>
                <th scope="row">${RUN_FIGURES[name].label}</th>
                <td class="number">${formatFigure(name, readFigure(summary, name))}</td>
                <td class="number">${formatFigure(name, benchmark[field])}</td>
              </tr>`,
          )}
        </tbody>
      </table>
    </div>
    <dl class="pairs">
      ${RELATIVE.map(
        (name) =>
          html`<div>
            <dt>${RUN_FIGURES[name].label}</dt>
            <dd>${showFigure(summary, name)}</dd>
          </div>`,
      )}
    </dl>
  </section>`;
}
