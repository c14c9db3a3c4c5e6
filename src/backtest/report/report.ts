import type { Finding, Gate, Summary, UnhashedSummary } from '../summary.ts';
import { equitySection, monthsSection, pricesSection } from './charts-section.ts';
import type { ChartData } from './client/chart-data.ts';
import { drawEquity, showLinkedPoint } from './client/equity-chart.ts';
import { drawLegend } from '../../base/charts/indicator-legend.ts';
import { addIndicatorLines, addVolumeBars, styleLines } from '../../base/charts/indicator-lines.ts';
import {
  closerStretch,
  connectLevels,
  nearestStretch,
  visibleTimes,
} from './client/level-buttons.ts';
import { addPriceBars } from '../../base/charts/price-bars.ts';
import {
  candleOf,
  drawPrices,
  readCandle,
  stretchWith,
  tradeOfHash,
} from './client/price-chart.ts';
import { sortTables } from './client/sort-tables.ts';
import { switchTheme } from './client/switch-theme.ts';
import { connectTrades } from './client/trade-buttons.ts';
import { addTooltip } from '../../base/charts/tooltip.ts';
import { addTradeMarks, marksOf, tradeLine } from './client/trade-marks.ts';
import { divideLevel, unpackColumn, unpackLevel, unpackLevels } from './client/unpack-levels.ts';
import {
  formatCount,
  formatCountOf,
  formatInstant,
  formatMoney,
  formatNumber,
  formatPercent,
  NO_VALUE,
} from '../../base/format.ts';
import { formatFigure, readFigure } from '../../base/format-figure.ts';
import { RUN_FIGURES, type FigureName } from '../../base/run-figures.ts';
import { DAY } from '../../base/durations.ts';
import { type Child, embeddedJson, html, type Html, nothing } from '../../base/html.ts';
import type { ReportInput } from './input.ts';
import { luckSection } from './luck-section.ts';
import { renderPage, THEME_BUTTON } from './render-report.ts';
import { thinCurve } from './series.ts';
import { figureRow, showFigure, statisticsSection } from './statistics-section.ts';
import { benchmarkName, benchmarkSection } from './benchmark-section.ts';
import { drawdownsSection } from './drawdowns-section.ts';
import { returnsSection } from './returns-section.ts';
import { priceCharts } from './price-charts.ts';
import { profileSection } from './profile-section.ts';
import { tradeGroupsSection } from './trade-groups-section.ts';
import { tradesSection } from './trades-section.ts';

export const MAX_CURVE_POINTS = 4000;

/** Functions that `drawPrices` calls. */
const PRICE_CHART_FUNCTIONS = [
  unpackColumn,
  unpackLevel,
  divideLevel,
  unpackLevels,
  addPriceBars,
  addTooltip,
  tradeLine,
  marksOf,
  addTradeMarks,
  styleLines,
  addVolumeBars,
  addIndicatorLines,
  drawLegend,
  visibleTimes,
  nearestStretch,
  closerStretch,
  connectLevels,
  readCandle,
  stretchWith,
  candleOf,
  tradeOfHash,
  connectTrades,
  showLinkedPoint,
] as const;

/** Renders everything but the hashes, which are known only when the other files are complete. */
export function beginReport(input: ReportInput): (hashes: Summary['hashes']) => string {
  const { summary, result, drawdown, benchmark } = input;
  const { time, equity } = result;
  const dateOnly = time.every((instant) => instant % DAY === 0);
  const { curve, deepest } = thinCurve(time, equity, drawdown, benchmark, MAX_CURVE_POINTS);
  const charts = priceCharts(input, dateOnly);
  const { currency } = input;
  const data: ChartData = {
    dateOnly,
    currency,
    benchmark: benchmarkName(summary),
    curve,
    instruments: charts,
  };

  const top = html`${heading(input, dateOnly)} ${keyFigures(input)} ${luckSection(summary)}
  ${gatesSection(summary.gates)} ${findingsSection(summary.findings)}`;
  const left = html`<div>
    ${equitySection(input, curve, deepest, dateOnly)} ${benchmarkSection(summary)}
    ${monthsSection(result)} ${returnsSection(input)} ${drawdownsSection(input, dateOnly)}
    ${pricesSection(charts, input.instruments)} ${tradeGroupsSection(input, dateOnly)}
    ${tradesSection(input, charts, dateOnly)}
  </div>`;
  const right = html`${statisticsSection(summary, input.currency)} ${profileSection(summary)}
  ${ordersSection(summary, input.currency)}`;
  const json = embeddedJson(data);

  return (hashes) =>
    renderPage({
      title: `${summary.bot.name} · backtest`,
      body: html`<main>
        ${top}
        <div class="columns">
          ${left}
          <div>${right} ${provenanceSection(summary, hashes)}</div>
        </div>
      </main>`,
      data: json,
      scripts: [switchTheme, sortTables, drawEquity, drawPrices],
      functions: PRICE_CHART_FUNCTIONS,
      charts: true,
    });
}

function heading({ summary, currency }: ReportInput, dateOnly: boolean): Html {
  const { bot, window, version, gates, findings } = summary;
  const day = (text: string): string => formatInstant(Date.parse(text), dateOnly);
  const met = gates.filter(({ pass }) => pass).length;
  let verdict = html`<li>No gates were set</li>`;
  if (gates.length > 0 && met === gates.length) {
    verdict = html`<li class="pass">${met === 1 ? 'The gate is met' : `All ${met} gates met`}</li>`;
  } else if (gates.length > 0) {
    verdict = html`<li class="fail">
      ${gates.length - met} of ${formatCountOf(gates.length, 'gate')} not met
    </li>`;
  }
  const severities = (['critical', 'warning'] as const).flatMap((severity) => {
    const found = findings.filter((finding) => finding.severity === severity).length;
    const name = severity === 'critical' ? 'critical finding' : 'warning';
    return found === 0 ? [] : html`<li class="${severity}">${formatCountOf(found, name)}</li>`;
  });
  return html`<header>
    <div class="topline">
      <p>Backtest</p>
      ${THEME_BUTTON}
    </div>
    <h1><bdi>${bot.name}</bdi></h1>
    <p class="facts">
      <span>${day(window.from)} to ${day(window.to)}, UTC</span>
      <span>${formatCountOf(window.bars, 'bar')}</span>
      <span>Version <code title="${version}">${version.slice(0, 12)}</code></span>
      <span>Figures in <bdi>${currency}</bdi></span>
    </p>
    <ul class="verdict">
      ${verdict}${severities}
    </ul>
  </header>`;
}

function keyFigures({ summary, benchmark }: ReportInput): Html {
  const { equity, costs } = summary;
  const held = benchmark?.at(-1);
  const show = (name: FigureName): string => formatFigure(name, readFigure(summary, name));
  type Entry = readonly [label: string, figure: Child, aside?: Child | undefined];
  const labeled = (name: FigureName, aside?: Child): Entry => [
    RUN_FIGURES[name].label,
    showFigure(summary, name),
    aside,
  ];
  const figures: readonly Entry[] = [
    labeled('end_equity', `from ${show('start_equity')}`),
    labeled(
      'total_return',
      held === undefined
        ? nothing
        : `${benchmarkName(summary)} ${formatPercent(held / equity.start - 1)}`,
    ),
    labeled('cagr'),
    labeled('sharpe'),
    labeled('max_drawdown', `${show('max_drawdown_days')} below a peak`),
    labeled('trades', `in the market ${show('exposure')}`),
    labeled('win_rate'),
    ['Fees and slippage', formatMoney(costs.fees + costs.slippage)],
  ];
  return html`<dl class="figures">
    ${figures.map(
      ([name, figure, aside]) =>
        html`<div>
          <dt>${name}</dt>
          <dd>${figure}</dd>
          ${aside === undefined ? nothing : html`<dd>${aside}</dd>`}
        </div> `,
    )}
  </dl>`;
}

export function gatesSection(gates: readonly Gate[]): Html {
  if (gates.length === 0) return nothing;
  const signs = { '>=': '≥', '<=': '≤', '>': '>', '<': '<' } as const;
  return html`<section aria-labelledby="gates">
    <h2 id="gates">Gates</h2>
    <div class="scroll brief" tabindex="0" role="group" aria-labelledby="gates">
      <table class="plain">
        <thead>
          <tr>
            <th scope="col">Required</th>
            <th scope="col" class="number">Result</th>
            <th scope="col">Verdict</th>
          </tr>
        </thead>
        <tbody>
          ${gates.map(
            ({ name, op, threshold, value: result, pass }) =>
              html`<tr>
                <th scope="row"><bdi>${name}</bdi> ${signs[op]} ${formatNumber(threshold)}</th>
                <td class="number">${result === null ? NO_VALUE : formatNumber(result)}</td>
                <td class="${pass ? 'gain' : 'loss'}">${pass ? '✓ met' : '✗ not met'}</td>
              </tr>`,
          )}
        </tbody>
      </table>
    </div>
  </section>`;
}

export function findingsSection(findings: readonly Finding[]): Html {
  if (findings.length === 0) return nothing;
  const names = { info: 'Note', warning: 'Warning', critical: 'Critical' } as const;
  return html`<section aria-labelledby="findings">
    <h2 id="findings">Findings</h2>
    <ul class="findings">
      ${findings.map(
        ({ code, severity, issue, evidence, remedy }) =>
          html`<li class="${severity}">
            <p class="severity">${names[severity]} · <code>${code}</code></p>
            <h3>${issue}</h3>
            ${pairs(Object.entries(evidence).map(([name, given]) => [name, typeof given === 'number' ? formatNumber(given) : given]))}
            <p class="remedy">${remedy}</p>
          </li> `,
      )}
    </ul>
  </section>`;
}

const ORDER_FIGURES = [
  'submitted_orders',
  'filled_orders',
  'fills',
  'canceled_orders',
  'expired_orders',
  'working_orders',
  'rejected_orders',
  'denied_orders',
  'refused_orders',
  'ambiguous_bars',
  'margin_calls',
] as const satisfies readonly FigureName[];

function ordersSection(summary: UnhashedSummary, currency: string): Html {
  const reasons = Object.entries(summary.orders.reasons);
  return html`<section aria-labelledby="orders">
    <h2 id="orders">Orders</h2>
    <table class="plain stack">
      <tbody>
        ${ORDER_FIGURES.map((name) => figureRow(summary, name, currency))}
      </tbody>
    </table>
    ${pairs(reasons.map(([reason, number]) => [reason, formatCount(number)]))}
  </section>`;
}

function provenanceSection(summary: UnhashedSummary, hashes: Summary['hashes']): Html {
  const { run_id, version, engine, lock, benchmark, files } = summary;
  const strategy: readonly (readonly [string, string])[] =
    typeof lock.strategy === 'string'
      ? [['Strategy', lock.strategy]]
      : Object.entries(lock.strategy).map(([file, hash]) => [`Strategy ${file}`, hash]);
  const rows: readonly (readonly [string, string])[] = [
    ['Run', run_id],
    ['Version', version],
    ['Lock', lock.digest],
    ['Engine', `${engine.version}, seed ${engine.seed}`],
    ...strategy,
    ...Object.entries(lock.data).map(([symbol, hash]) => [`Data ${symbol}`, hash] as const),
    ...(benchmark?.data === undefined
      ? []
      : [[`Benchmark ${benchmark.source ?? benchmark.name}`, benchmark.data] as const]),
    ['Events', hashes.events],
    ['Trades', hashes.trades],
    [files.includes('equity.csv') ? 'Equity' : 'Equity, columns', hashes.equity],
    ['Files', files.join(', ')],
  ];
  return html`<section aria-labelledby="provenance">
    <h2 id="provenance">What determines this result</h2>
    <p class="note">
      The same version and lock produce the same hashes on any machine. This run took
      ${formatCount(engine.wall_ms)} ms, ${formatCount(engine.bars_per_second)} bars per second.
    </p>
    <dl class="provenance">
      ${rows.map(
        ([name, given]) =>
          html`<div>
            <dt><bdi>${name}</bdi></dt>
            <dd><code>${given}</code></dd>
          </div> `,
      )}
    </dl>
  </section>`;
}

function pairs(entries: readonly (readonly [string, string])[]): Html {
  if (entries.length === 0) return nothing;
  return html`<dl class="pairs">
    ${entries.map(
      ([name, given]) =>
        html`<div>
          <dt><bdi>${name}</bdi></dt>
          <dd><bdi>${given}</bdi></dd>
        </div>`,
    )}
  </dl>`;
}
