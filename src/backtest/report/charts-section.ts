import type { PriceChart } from './client/chart-data.ts';
import {
  formatCount,
  formatInstant,
  formatMoney,
  formatPercent,
  formatPercentPoints,
  NO_VALUE,
} from '../../base/format.ts';
import { html, type Html, nothing } from '../../base/html.ts';
import { benchmarkName } from './benchmark-section.ts';
import { LOG_BUTTON } from '../../base/charts/chart-buttons.ts';
import { chartSection, SINGLE_BARS_BUTTON } from './chart-section.ts';
import type { ReportInput } from './input.ts';
import { type Curve, type Drawdown, monthlyReturns } from './series.ts';

export function equitySection(
  { summary, result, currency, benchmark }: ReportInput,
  curve: Curve,
  deepest: Drawdown,
  dateOnly: boolean,
): Html {
  const { time, equity, initialCash } = result;
  const instant = (ms: number): string => formatInstant(ms, dateOnly);
  const end = equity.at(-1) ?? initialCash;
  const sentences = [
    `Equity went from ${formatMoney(initialCash)} to ${formatMoney(end)} ${currency} (${formatPercent(end / initialCash - 1)}).`,
    deepest.depth < 0
      ? `The deepest drawdown was ${formatPercent(Math.max(-1, deepest.depth))}, from the peak of ${instant(deepest.peakTime)} to the low of ${instant(deepest.troughTime)}.`
      : 'Equity never fell below an earlier peak.',
  ];
  if (benchmark !== undefined && benchmark.length > 0) {
    const held = benchmark.at(-1)!;
    const { name = 'buy_and_hold' } = summary.benchmark ?? {};
    const what = name === 'buy_and_hold' ? 'Buying and holding' : `Holding ${name}`;
    sentences.push(
      `${what} would have ended at ${formatMoney(held)} (${formatPercent(held / initialCash - 1)}).`,
    );
  }
  if (curve.time.length < time.length) {
    const file = summary.files.includes('equity.csv') ? 'equity.csv' : 'equity.parquet';
    sentences.push(
      `The chart shows ${formatCount(curve.time.length)} of ${formatCount(time.length)} points, including the lows and highs; ${file} has equity and drawdown at all of them.`,
    );
  }
  const key = (name: string, text: string): Html =>
    html`<span><span class="key ${name}"></span> ${text}</span>`;
  const legend = html`${key('equity', 'Equity')}${benchmark ? key('benchmark', benchmarkName(summary)) : nothing}${key('loss', 'Drawdown')}`;
  return chartSection('equity', 'Equity and drawdown', {
    selector: curve.equity.every((value) => value > 0) ? LOG_BUTTON : nothing,
    legend,
    caption: sentences.join(' '),
  });
}

const MONTHS = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ');

export function monthsSection({ time, equity, initialCash }: ReportInput['result']): Html {
  const years = monthlyReturns(time, equity, initialCash);
  const sizes = years
    .flatMap(({ months }) => months)
    .filter((month) => typeof month === 'number')
    .map(Math.abs)
    .toSorted((a, b) => a - b);
  // The largest tenth has the strongest color, so that one crash does not make all others pale.
  const strong = sizes[Math.floor(sizes.length * 0.9)] ?? 0;
  const shade = (month: number): string => {
    const level = Math.min(5, Math.ceil((Math.abs(month) / strong) * 5));
    return level > 0 ? `${month > 0 ? 'up' : 'down'}-${level}` : '';
  };
  const cell = (month: number | null | undefined): Html => {
    if (month === undefined) return html`<td></td>`;
    if (month === null) return html`<td>—</td>`;
    return html`<td class="${shade(month)}">${formatPercentPoints(month)}</td>`;
  };
  return html`<section aria-labelledby="months">
    <h2 id="months">Monthly returns</h2>
    <div class="scroll" tabindex="0" role="group" aria-labelledby="months">
      <table class="heat">
        <thead>
          <tr>
            <th scope="col">Year</th>
            ${MONTHS.map((name) => html`<th scope="col">${name}</th>`)}
            <th scope="col" class="total">Year</th>
          </tr>
        </thead>
        <tbody>
          ${years.map(
            ({ year, months, total }) =>
              html`<tr>
                <th scope="row">${year}</th>
                ${months.map(cell)}
                <td class="total">${total === null ? NO_VALUE : formatPercentPoints(total)}</td>
              </tr> `,
          )}
        </tbody>
      </table>
    </div>
    <p class="note">
      In percent, by calendar month in UTC. The first and the last month count only the days of the
      run.
    </p>
  </section>`;
}

/** `every` of a long column would take several times as long. */
function areAboveZero(prices: Float64Array): boolean {
  for (let at = 0; at < prices.length; at += 1) if (!(prices[at]! > 0)) return false;
  return true;
}

export function pricesSection(
  charts: readonly PriceChart[],
  instruments: ReportInput['instruments'],
): Html {
  const [first] = charts;
  if (first === undefined) return nothing;
  const selector =
    charts.length === 1
      ? nothing
      : html`<span>
          <label for="instrument">Instrument</label>
          <select id="instrument" autocomplete="off">
            ${charts.map(({ symbol }) => html`<option>${symbol}</option>`)}
          </select>
        </span>`;
  const omitted =
    charts.length < instruments.length
      ? html`<p class="note">
          Only the ${charts.length} most traded of ${formatCount(instruments.length)} instruments
          are included.
        </p>`
      : nothing;
  const drawn = new Set(charts.map(({ symbol }) => symbol));
  const isLogarithmic = instruments.every(
    ({ symbol, bars }) => !drawn.has(symbol) || areAboveZero(bars.low),
  );
  const hasShorts = charts.some(({ overview }) =>
    overview.markers.some(([, kind]) => kind === 'short'),
  );
  const shortEntry = html`<span><span class="equity">▼</span> Short entry</span>`;
  const legend = html`<span><span class="equity">▲</span> Long entry</span
    >${hasShorts ? shortEntry : nothing}<span><span class="gain">●</span> Exit with a profit</span
    ><span><span class="loss">■</span> Exit with a loss</span>`;
  return chartSection('prices', 'Prices and trades', {
    selector: html`${selector}${charts.some(({ single }) => single) ? SINGLE_BARS_BUTTON : nothing}${isLogarithmic ? LOG_BUTTON : nothing}`,
    legend,
    caption: first.summary,
    note: omitted,
  });
}
