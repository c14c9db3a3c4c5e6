import { formatNumber, formatPercent } from '../../base/format.ts';
import { formatFigure, formulaOf, readFigure } from '../../base/format-figure.ts';
import { RUN_FIGURES, samplingPeriod, type FigureName } from '../../base/run-figures.ts';
import { FIGURE_GROUPS } from './figure-groups.ts';
import { UNDEFINED_REASONS } from '../summary.ts';
import type { UnhashedSummary } from '../summary.ts';
import { type Child, html, type Html } from '../../base/html.ts';

/** The figure, or a dash that gives the reason on hover and focus. */
export function showFigure(summary: UnhashedSummary, name: FigureName): Child {
  const value = readFigure(summary, name);
  const reason = summary.undefined[RUN_FIGURES[name].path];
  if (value !== null || reason === undefined) return formatFigure(name, value);
  return html`<span class="undefined" tabindex="0"
    >—<span role="note"> Undefined: ${UNDEFINED_REASONS[reason]}.</span></span
  >`;
}

export function statisticsSection(summary: UnhashedSummary, currency: string): Html {
  const { conventions } = summary;
  const { periods_per_year: perYear, year_days: yearDays, ddof, risk_free: riskFree } = conventions;
  const sample = samplingPeriod(conventions.sampling);
  return html`<section aria-labelledby="statistics">
    <h2 id="statistics">Statistics and how they are computed</h2>
    <table class="plain stack">
      <thead>
        <tr>
          <th scope="col">Statistic</th>
          <th scope="col" class="number">Value</th>
          <th scope="col">Computed as</th>
        </tr>
      </thead>
      ${Object.entries(FIGURE_GROUPS).map(
        ([group, names]) =>
          html`<tbody>
            <tr class="group">
              <th colspan="3" scope="rowgroup">${group}</th>
            </tr>
            ${names.map((name) => figureRow(summary, name, currency))}
          </tbody>`,
      )}
    </table>
    <p class="note">
      Conventions: ${formatNumber(perYear)} periods per year; ${yearDays} days per year in CAGR;
      ddof ${ddof}; risk-free rate ${formatPercent(riskFree)} a year. Returns are simple, from the
      last close of each ${sample} to the next, beginning with the starting cash. Downside deviation
      divides by the number of all returns. Trades run from flat to flat. Numbers are 64-bit floats.
    </p>
  </section>`;
}

/** A row of three columns: label, value and formula. */
export function figureRow(summary: UnhashedSummary, name: FigureName, currency: string): Html {
  return html`<tr>
    <th scope="row">${RUN_FIGURES[name].label}</th>
    <td class="number">${showFigure(summary, name)}</td>
    <td class="how">${formulaOf(name, { ...summary.conventions, currency })}</td>
  </tr> `;
}
