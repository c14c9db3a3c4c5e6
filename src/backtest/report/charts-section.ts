import type { ChartIndicator, ChartLine, PriceChart } from './client/chart-data.ts';
import type { ReturnedIndicator } from '../../engine/series/returned-indicators.ts';
import {
  formatCount,
  formatCountOf,
  formatInstant,
  formatMoney,
  formatPercent,
  formatPercentPoints,
  formatPrice,
  NO_VALUE,
} from '../../base/format.ts';
import { html, type Html, nothing } from '../../base/html.ts';
import { benchmarkName } from './benchmark-section.ts';
import { chartSection, LOG_BUTTON } from './chart-section.ts';
import type { ReportInput } from './input.ts';
import {
  type Candles,
  type Curve,
  type Drawdown,
  monthlyReturns,
  toCandles,
  toMarkers,
  toRanges,
} from './series.ts';

// With the list of trades, these limit the page to 4 MB, regardless of the length of the run.
const MAX_CANDLES = 13_000;
const MAX_NUMBERS = 130_000;
const NUMBERS_PER_CANDLE = 7;
const NUMBERS_PER_RANGE = 3;
const MAX_INSTRUMENTS = 50;
const MAX_LINES = 24;

/** Names of two lines of an indicator between which the area is filled. */
const EDGES: readonly (readonly [string, string])[] = [
  ['spanA', 'spanB'],
  ['upper', 'lower'],
];

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
      : 'Equity never fell below a former peak.',
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
      `The chart shows ${formatCount(curve.time.length)} of ${formatCount(time.length)} points, including the lows and highs; ${file} contains all.`,
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
    <div class="scroll" tabindex="0" role="region" aria-labelledby="months">
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

/** Charts of the most traded instruments, which share the page's limit of candles. */
export function priceCharts(
  { instruments, indicators = [], result }: ReportInput,
  dateOnly: boolean,
): PriceChart[] {
  const closed = Map.groupBy(result.trades, ({ symbol }) => symbol);
  const open = Map.groupBy(result.openTrades, ({ symbol }) => symbol);
  const traded = ({ symbol }: { readonly symbol: string }): number =>
    (closed.get(symbol)?.length ?? 0) + (open.get(symbol)?.length ?? 0);
  const drawn = instruments
    .filter(({ bars }) => bars.length > 0)
    .toSorted((a, b) => traded(b) - traded(a))
    .slice(0, MAX_INSTRUMENTS);
  const charts = drawn.map((instrument) => {
    const index = instruments.indexOf(instrument);
    return { instrument, index, shown: indicatorsOf(index, indicators) };
  });
  const limit = candleLimit(
    charts.map(({ instrument, shown }) => ({
      bars: instrument.bars.length,
      lines: linesOf(shown).length,
    })),
  );

  return charts.map(({ instrument, index, shown }) => {
    const { symbol, bars } = instrument;
    const candles = toCandles(bars, limit);
    const markers = toMarkers(candles, closed.get(symbol) ?? [], open.get(symbol) ?? []);
    const [first, last] = [bars.close[0]!, bars.close.at(-1)!];
    const sentences = [
      `${symbol}: ${formatCountOf(bars.length, 'bar')} from ${formatInstant(bars.time[0]!, dateOnly)} to ${formatInstant(bars.time.at(-1)!, dateOnly)}, the close from ${formatPrice(first)} to ${formatPrice(last)}; ${formatCountOf(traded(instrument), 'trade')}.`,
    ];
    if (candles.barsPerCandle > 1) {
      sentences.push(`Each candle is ${formatCount(candles.barsPerCandle)} bars.`);
    }
    if (shown.length > 0) sentences.push(`Indicators: ${shown.map(labelOf).join(', ')}.`);
    const omitted =
      linesOf(indicatorsOf(index, indicators, Infinity)).length - linesOf(shown).length;
    if (omitted > 0) {
      sentences.push(`Not drawn: ${formatCountOf(omitted, 'line')} of further indicators.`);
    }
    return {
      symbol,
      candles,
      markers,
      indicators: shown.map((indicator) => chartIndicator(indicator, index, candles)),
      summary: sentences.join(' '),
    };
  });
}

/** Largest number of candles of each chart. A line has three numbers per candle, or one if each is one bar. */
function candleLimit(charts: readonly { readonly bars: number; readonly lines: number }[]): number {
  const sum = (numbers: readonly number[]): number => numbers.reduce((all, each) => all + each, 0);
  const single = sum(charts.map(({ bars, lines }) => bars * (NUMBERS_PER_CANDLE + lines)));
  if (single <= MAX_NUMBERS && charts.every(({ bars }) => bars <= MAX_CANDLES)) return MAX_CANDLES;
  const perCandle = charts.map(({ lines }) => NUMBERS_PER_CANDLE + NUMBERS_PER_RANGE * lines);
  return Math.min(MAX_CANDLES, Math.floor(MAX_NUMBERS / sum(perCandle)));
}

/** The indicators of an instrument, with at most `most` lines. */
function indicatorsOf(
  instrument: number,
  indicators: readonly ReturnedIndicator[],
  most = MAX_LINES,
): readonly ReturnedIndicator[] {
  let lines = 0;
  return indicators.filter((indicator) => {
    if (!indicator.bars.has(instrument)) return false;
    lines += indicator.lines.length;
    return lines <= most;
  });
}

function linesOf(indicators: readonly ReturnedIndicator[]): readonly unknown[] {
  return indicators.flatMap(({ lines }) => lines);
}

function labelOf({ label }: ReturnedIndicator): string {
  return label.replaceAll(',', ', ');
}

function chartIndicator(
  indicator: ReturnedIndicator,
  instrument: number,
  candles: Candles,
): ChartIndicator {
  const { kind, lines, bars } = indicator;
  const edges = EDGES.find((pair) => pair.every((edge) => lines.some(({ line }) => line === edge)));
  // The two edges of a filled area must be adjacent.
  const sorted = edges
    ? lines.toSorted((a, b) => edges.indexOf(a.line) - edges.indexOf(b.line))
    : lines;
  const isSingle = lines.length === 1;
  const [first] = lines;
  const suffix = `.${first!.line}`;
  return {
    name:
      !isSingle && first!.name.endsWith(suffix)
        ? first!.name.slice(0, -suffix.length)
        : isSingle
          ? first!.name
          : '',
    label: labelOf(indicator),
    lines: sorted.map(({ line, scale, values }): ChartLine => ({
      name: line === 'value' ? '' : line,
      pane: scale,
      style: styleOf(kind, line),
      isFilled: line === edges?.[0],
      ranges: toRanges(values, bars.get(instrument)!, candles),
    })),
  };
}

function styleOf(kind: string, line: string): ChartLine['style'] {
  if (line === 'histogram') return 'histogram';
  return kind === 'parabolicSar' ? 'dots' : 'line';
}

export function pricesSection(charts: readonly PriceChart[], instruments: number): Html {
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
    charts.length < instruments
      ? html`<p class="note">
          Only the ${charts.length} most traded of ${formatCount(instruments)} instruments are
          included.
        </p>`
      : nothing;
  const hasShorts = charts.some(({ markers }) => markers.some(([, kind]) => kind === 'short'));
  const shortEntry = html`<span><span class="equity">▼</span> Short entry</span>`;
  const legend = html`<span><span class="equity">▲</span> Long entry</span
    >${hasShorts ? shortEntry : nothing}<span><span class="gain">●</span> Exit with a profit</span
    ><span><span class="loss">■</span> Exit with a loss</span>`;
  return chartSection('prices', 'Prices and trades', {
    selector: html`${selector}${charts.every(({ candles }) => candles.low.every((low) => low > 0)) ? LOG_BUTTON : nothing}`,
    legend,
    caption: first.summary,
    note: omitted,
  });
}
