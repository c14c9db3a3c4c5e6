import type { RunResult, Trade } from '../../engine/result.ts';
import type { Bars } from '../../market/bars.ts';
import type { Conventions, Finding, Gate, Summary, UndefinedReason } from '../summary.ts';
import { drawCharts, sortTables, switchTheme } from './client.ts';
import {
  formatCount,
  formatInstant,
  formatMoney,
  formatNumber,
  formatPercent,
  formatPercentPoints,
  formatPrice,
  formatQuantity,
  formatRatio,
} from './format.ts';
import { type Child, html, type Html, nothing } from './html.ts';
import { type Column, RANGE_BUTTONS, renderPage, sortableTable, THEME_BUTTON } from './page.ts';
import { PRINTED_ROWS } from './style.ts';
import {
  candleAt,
  type Candles,
  type Curve,
  type Drawdown,
  type Marker,
  monthlyReturns,
  thinCurve,
  toCandles,
  toMarkers,
} from './series.ts';

export interface ReportInput {
  readonly summary: Summary;
  readonly result: Pick<RunResult, 'time' | 'equity' | 'initialCash' | 'trades' | 'openTrades'>;
  /** The bars of the run's window. */
  readonly instruments: readonly Instrument[];
  /** Of the account, e.g. `USD`. */
  readonly currency: string;
  /** Equity of buying and holding the same instruments, one per step of the run. */
  readonly benchmark?: Float64Array;
}

interface Instrument {
  readonly symbol: string;
  readonly bars: Bars;
}

/** What `drawCharts` needs; embedded in the page as JSON. */
export interface ChartData {
  /** Every step falls on midnight UTC, so that clock times would say nothing. */
  readonly dateOnly: boolean;
  readonly curve: Curve;
  readonly instruments: readonly PriceChart[];
}

interface PriceChart {
  readonly symbol: string;
  readonly candles: Candles;
  readonly markers: readonly Marker[];
  /** The chart in words. */
  readonly summary: string;
}

// However long the run was, its page stays within a few megabytes.
const MAX_CURVE_POINTS = 4000;
const MAX_CANDLES = 4000;
const MAX_CANDLES_IN_ALL = 40_000;
const MAX_INSTRUMENTS = 50;
const MAX_TRADE_ROWS = 2000;

/** The report of one backtest as a self-contained HTML page of bounded size. */
export function renderReport(input: ReportInput): string {
  const { summary, result, benchmark } = input;
  const { time, equity, initialCash } = result;
  const dateOnly = time.every((instant) => instant % 86_400_000 === 0);
  const { curve, deepest } = thinCurve(time, equity, initialCash, benchmark, MAX_CURVE_POINTS);
  const charts = priceCharts(input, dateOnly);
  const data: ChartData = { dateOnly, curve, instruments: charts };

  const body = html`<main>
    ${heading(input, dateOnly)} ${keyFigures(input)} ${gatesSection(summary.gates)}
    ${findingsSection(summary.findings)}
    <div class="columns">
      <div>
        ${equitySection(input, curve, deepest, dateOnly)} ${monthsSection(result)}
        ${pricesSection(charts, input.instruments.length)} ${tradesSection(input, charts, dateOnly)}
      </div>
      <div>
        ${statisticsSection(summary, input.currency)} ${profileSection(summary)}
        ${ordersSection(summary)} ${provenanceSection(summary)}
      </div>
    </div>
  </main>`;

  return renderPage({
    title: `${summary.bot.name} · backtest`,
    body,
    data,
    scripts: [switchTheme, sortTables, drawCharts],
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
      ${gates.length - met} of ${count(gates.length, 'gate')} not met
    </li>`;
  }
  const severities = (['critical', 'warning'] as const).flatMap((severity) => {
    const found = findings.filter((finding) => finding.severity === severity).length;
    const name = severity === 'critical' ? 'critical finding' : 'warning';
    return found === 0 ? [] : html`<li class="${severity}">${count(found, name)}</li>`;
  });
  return html`<header>
    <div class="topline">
      <p>Backtest</p>
      ${THEME_BUTTON}
    </div>
    <h1><bdi>${bot.name}</bdi></h1>
    <p class="facts">
      <span>${day(window.from)} to ${day(window.to)}</span>
      <span>${count(window.bars, 'bar')}</span>
      <span>Version <code title="${version}">${version.slice(0, 12)}</code></span>
      <span>Figures in <bdi>${currency}</bdi></span>
    </p>
    <ul class="verdict">
      ${verdict}${severities}
    </ul>
  </header>`;
}

function keyFigures({ summary, benchmark }: ReportInput): Html {
  const { equity, returns, risk, trades, exposure, costs } = summary;
  const held = benchmark?.at(-1);
  const figures: readonly (readonly [string, Child, Child?])[] = [
    ['End equity', formatMoney(equity.end), `from ${formatMoney(equity.start)}`],
    [
      'Total return',
      formatPercent(returns.total),
      held === undefined ? nothing : `buy and hold ${formatPercent(held / equity.start - 1)}`,
    ],
    ['CAGR', value(summary, 'returns.cagr', returns.cagr, formatPercent)],
    ['Sharpe', value(summary, 'risk.sharpe', risk.sharpe, formatRatio)],
    [
      'Max drawdown',
      formatPercent(risk.max_drawdown),
      `${formatCount(risk.max_drawdown_days)} days below a peak`,
    ],
    ['Closed trades', formatCount(trades.count), `in the market ${formatPercent(exposure.time)}`],
    ['Win rate', value(summary, 'trades.win_rate', trades.win_rate, formatPercent)],
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

function gatesSection(gates: readonly Gate[]): Html {
  if (gates.length === 0) return nothing;
  const signs = { '>=': '≥', '<=': '≤', '>': '>', '<': '<' } as const;
  return html`<section aria-labelledby="gates">
    <h2 id="gates">Gates</h2>
    <div class="scroll brief" tabindex="0" role="region" aria-labelledby="gates">
      <table class="plain">
        <thead>
          <tr>
            <th scope="col">Statistic</th>
            <th scope="col" class="number">Required</th>
            <th scope="col" class="number">Result</th>
            <th scope="col">Verdict</th>
          </tr>
        </thead>
        <tbody>
          ${gates.map(
            ({ name, op, threshold, value: result, pass }) =>
              html`<tr>
                <th scope="row"><bdi>${name}</bdi></th>
                <td class="number">${signs[op]} ${formatNumber(threshold)}</td>
                <td class="number">${result === null ? '—' : formatNumber(result)}</td>
                <td class="${pass ? 'gain' : 'loss'}">${pass ? '✓ met' : '✗ not met'}</td>
              </tr>`,
          )}
        </tbody>
      </table>
    </div>
  </section>`;
}

function findingsSection(findings: readonly Finding[]): Html {
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

function equitySection(
  { result, currency, benchmark }: ReportInput,
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
      : 'It never fell below a former peak.',
  ];
  if (benchmark !== undefined && benchmark.length > 0) {
    const held = benchmark.at(-1)!;
    sentences.push(
      `Buying and holding would have ended at ${formatMoney(held)} (${formatPercent(held / initialCash - 1)}).`,
    );
  }
  if (curve.time.length < time.length) {
    sentences.push(
      `Drawn from ${formatCount(curve.time.length)} of ${formatCount(time.length)} points, the lows and highs among them; equity.csv has all.`,
    );
  }
  const key = (name: string, text: string): Html =>
    html`<span><span class="key ${name}"></span> ${text}</span>`;
  return html`<section aria-labelledby="equity-title">
    <figure>
      <div class="heading">
        <h2 id="equity-title">Equity and drawdown</h2>
        <div class="controls">${RANGE_BUTTONS}</div>
      </div>
      <p class="readings"></p>
      <div
        class="chart"
        id="equity"
        role="img"
        aria-labelledby="equity-title"
        aria-describedby="equity-summary"
      ></div>
      <p class="legend">
        ${key('equity', 'Equity')}${benchmark ? key('benchmark', 'Buy and hold') : nothing}${key('loss', 'Drawdown')}
      </p>
      <figcaption id="equity-summary">${sentences.join(' ')}</figcaption>
    </figure>
  </section>`;
}

const MONTHS = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ');

function monthsSection({ time, equity, initialCash }: ReportInput['result']): Html {
  const years = monthlyReturns(time, equity, initialCash);
  const sizes = years
    .flatMap(({ months }) => months)
    .filter((month) => typeof month === 'number')
    .map(Math.abs)
    .toSorted((a, b) => a - b);
  // The largest tenth shares the strongest colour, so that one crash does not pale all the rest.
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
                <td class="total">${total === null ? '—' : formatPercentPoints(total)}</td>
              </tr> `,
          )}
        </tbody>
      </table>
    </div>
    <p class="note">
      Per cent, by calendar month in UTC. The first and the last month count only the days of the
      run.
    </p>
  </section>`;
}

/** The most traded instruments, each with at most its share of the page's candles. */
function priceCharts({ instruments, result }: ReportInput, dateOnly: boolean): PriceChart[] {
  const closed = Map.groupBy(result.trades, ({ symbol }) => symbol);
  const open = Map.groupBy(result.openTrades, ({ symbol }) => symbol);
  const traded = ({ symbol }: Instrument): number =>
    (closed.get(symbol)?.length ?? 0) + (open.get(symbol)?.length ?? 0);
  const drawn = instruments
    .filter(({ bars }) => bars.length > 0)
    .toSorted((a, b) => traded(b) - traded(a))
    .slice(0, MAX_INSTRUMENTS);
  const limit = Math.min(MAX_CANDLES, Math.floor(MAX_CANDLES_IN_ALL / drawn.length));

  return drawn.map((instrument) => {
    const { symbol, bars } = instrument;
    const candles = toCandles(bars, limit);
    const markers = toMarkers(candles, closed.get(symbol) ?? [], open.get(symbol) ?? []);
    const [first, last] = [bars.close[0]!, bars.close.at(-1)!];
    const sentences = [
      `${symbol}: ${count(bars.length, 'bar')} from ${formatInstant(bars.time[0]!, dateOnly)} to ${formatInstant(bars.time.at(-1)!, dateOnly)}, the close from ${formatPrice(first)} to ${formatPrice(last)}; ${count(traded(instrument), 'trade')}.`,
    ];
    if (candles.barsPerCandle > 1) {
      sentences.push(`Each candle is ${formatCount(candles.barsPerCandle)} bars.`);
    }
    return { symbol, candles, markers, summary: sentences.join(' ') };
  });
}

function pricesSection(charts: readonly PriceChart[], instruments: number): Html {
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
          The ${charts.length} most traded of ${formatCount(instruments)} instruments can be drawn
          here.
        </p>`
      : nothing;
  return html`<section aria-labelledby="prices-title">
    <figure>
      <div class="heading">
        <h2 id="prices-title">Prices and trades</h2>
        <div class="controls">${selector}${RANGE_BUTTONS}</div>
      </div>
      <p class="readings"></p>
      <div
        class="chart"
        id="prices"
        role="img"
        aria-labelledby="prices-title"
        aria-describedby="prices-summary"
      ></div>
      <p class="legend">
        <span><span class="equity">▲</span> Long entry</span
        ><span><span class="equity">▼</span> Short entry</span
        ><span><span class="gain">●</span> Exit with a profit</span
        ><span><span class="loss">●</span> Exit with a loss</span>
      </p>
      <figcaption id="prices-summary">${first.summary}</figcaption>
      ${omitted}
    </figure>
  </section>`;
}

type Row = Trade & { readonly isOpen: boolean };

function tradesSection(
  { result }: ReportInput,
  charts: readonly PriceChart[],
  dateOnly: boolean,
): Html {
  const { trades, openTrades } = result;
  const rows = tradeRows(trades, openTrades);
  if (rows.length === 0) {
    return html`<section aria-labelledby="trades-title">
      <h2 id="trades-title">Trades</h2>
      <p class="note">No order of this run was filled.</p>
    </section>`;
  }
  const all = trades.length + openTrades.length;
  const note =
    rows.length < all
      ? `The ${formatCount(rows.length)} trades with the largest profits and losses of ${formatCount(all)}; all of them are in trades.csv.`
      : 'Profit and return are net of fees. An open trade is valued at the last close.';
  const onPaper =
    rows.length > PRINTED_ROWS
      ? html`<p class="note print-only">
          The first ${PRINTED_ROWS} rows are printed; all trades are in trades.csv.
        </p>`
      : nothing;
  return html`<section id="trades" aria-labelledby="trades-title">
    <h2 id="trades-title">Trades</h2>
    <p class="note">${note}</p>
    ${onPaper}
    ${sortableTable({ label: 'Trades', columns: tradeColumns(charts, rows[0]!.id, dateOnly), rows, sorted: { column: 0, direction: 'ascending' } })}
  </section>`;
}

/** In order of entry. When there are too many, those that moved equity most. */
function tradeRows(trades: readonly Trade[], openTrades: readonly Trade[]): Row[] {
  const open = openTrades.map((trade) => ({ ...trade, isOpen: true }));
  const closed =
    trades.length + open.length <= MAX_TRADE_ROWS
      ? trades
      : trades
          .toSorted((a, b) => Math.abs(b.pnl) - Math.abs(a.pnl))
          .slice(0, Math.max(0, MAX_TRADE_ROWS - open.length));
  return [...closed.map((trade) => ({ ...trade, isOpen: false })), ...open]
    .slice(0, MAX_TRADE_ROWS)
    .toSorted((a, b) => a.id - b.id);
}

function tradeColumns(
  charts: readonly PriceChart[],
  focusable: number,
  dateOnly: boolean,
): Column<Row>[] {
  const chartOf = new Map(charts.map((chart, index) => [chart.symbol, index]));
  const link = (trade: Row): Child => {
    const index = chartOf.get(trade.symbol);
    if (index === undefined) return trade.id;
    const { candles } = charts[index]!;
    const place = [index, candleAt(candles, trade.entry_time), candleAt(candles, trade.exit_time)];
    // One tab stop for the whole column: the arrow keys move among its buttons.
    return html`<button
      type="button"
      class="trade"
      value="${place.join(' ')}"
      tabindex="${trade.id === focusable ? 0 : -1}"
      aria-label="Show trade ${trade.id} on the chart"
    >
      ${trade.id}
    </button>`;
  };
  const text = (label: string, of: (trade: Row) => string): Column<Row> => ({
    label,
    numeric: false,
    value: of,
    text: (trade) => html`<bdi>${of(trade)}</bdi>`,
  });
  const number = (
    label: string,
    of: (trade: Row) => number,
    show: (trade: Row) => Child,
  ): Column<Row> => ({ label, numeric: true, value: of, text: show });
  const signed = (amount: number, shown: string): Html =>
    html`<span class="${amount < 0 ? 'loss' : 'gain'}">${shown}</span>`;
  const instant = (ms: number): string => formatInstant(ms, dateOnly);
  return [
    number('#', ({ id }) => id, link),
    text('Symbol', ({ symbol }) => symbol),
    text('Side', ({ side }) => side),
    number(
      'Entry',
      ({ entry_time }) => entry_time,
      ({ entry_time }) => instant(entry_time),
    ),
    number(
      'Entry price',
      ({ entry_price }) => entry_price,
      ({ entry_price }) => formatPrice(entry_price),
    ),
    number(
      'Exit',
      ({ exit_time }) => exit_time,
      ({ exit_time, isOpen }) => (isOpen ? 'open' : instant(exit_time)),
    ),
    number(
      'Exit price',
      ({ exit_price }) => exit_price,
      ({ exit_price }) => formatPrice(exit_price),
    ),
    number(
      'Bars',
      ({ bars }) => bars,
      ({ bars }) => formatCount(bars),
    ),
    number(
      'Quantity',
      ({ quantity }) => quantity,
      ({ quantity }) => formatQuantity(quantity),
    ),
    number(
      'Fees',
      ({ fees }) => fees,
      ({ fees }) => formatMoney(fees),
    ),
    number(
      'Profit',
      ({ pnl }) => pnl,
      ({ pnl }) => signed(pnl, formatMoney(pnl)),
    ),
    number(
      'Return',
      (trade) => trade.return,
      (trade) => signed(trade.return, formatPercent(trade.return)),
    ),
  ];
}

type StatisticRow = readonly [name: string, shown: Child, how: string];

function statisticsSection(summary: Summary, currency: string): Html {
  const { returns, risk, trades, costs, exposure, equity, window, conventions } = summary;
  const percent = (path: string, figure: number | null): Child =>
    value(summary, path, figure, formatPercent);
  const ratio = (path: string, figure: number | null): Child =>
    value(summary, path, figure, formatRatio);
  const money = (path: string, figure: number | null): Child =>
    value(summary, path, figure, formatMoney);
  const { periods_per_year: perYear, year_days: yearDays, ddof } = conventions;
  const sample = conventions.sampling === 'day' ? 'UTC day' : 'bar';
  const deviation = `standard deviation (ddof ${ddof})`;
  const excess =
    conventions.risk_free === 0 ? 'mean return' : `mean return above the risk-free rate`;

  const groups: Readonly<Record<string, readonly StatisticRow[]>> = {
    Equity: [
      ['Start', formatMoney(equity.start), `cash at the start, ${currency}`],
      ['End', formatMoney(equity.end), 'cash and positions at the last close'],
      ['Peak', formatMoney(equity.peak), 'highest close'],
    ],
    Return: [
      ['Total', formatPercent(returns.total), 'end ÷ start − 1'],
      [
        'CAGR',
        percent('returns.cagr', returns.cagr),
        `(1 + total)^(${yearDays} ÷ calendar days) − 1`,
      ],
      [
        'Annual return',
        percent('returns.annual', returns.annual),
        `last ÷ first sample, to the power of ${formatNumber(perYear)} ÷ number of returns, − 1`,
      ],
      [`Best ${sample}`, percent('returns.best_day', returns.best_day), 'largest return'],
      [`Worst ${sample}`, percent('returns.worst_day', returns.worst_day), 'smallest return'],
    ],
    Risk: [
      [
        'Volatility',
        percent('risk.volatility', risk.volatility),
        `${deviation} of returns × √${formatNumber(perYear)}`,
      ],
      [
        'Sharpe',
        ratio('risk.sharpe', risk.sharpe),
        `${excess} ÷ ${deviation} × √${formatNumber(perYear)}`,
      ],
      [
        'Sortino',
        ratio('risk.sortino', risk.sortino),
        `${excess} ÷ root mean square of the shortfalls, over all returns, × √${formatNumber(perYear)}`,
      ],
      ['Calmar', ratio('risk.calmar', risk.calmar), 'annual return ÷ |max drawdown|'],
      [
        'Max drawdown',
        formatPercent(risk.max_drawdown),
        'lowest equity ÷ highest before it − 1, at every close',
      ],
      [
        'Longest drawdown',
        `${formatNumber(Math.round(risk.max_drawdown_days * 10) / 10)} days`,
        'calendar days below a former peak',
      ],
      ['VaR 95%', percent('risk.var_95', risk.var_95), `5th percentile of returns per ${sample}`],
      ['CVaR 95%', percent('risk.cvar_95', risk.cvar_95), 'mean of the returns up to VaR'],
    ],
    Trades: [
      ['Closed', formatCount(trades.count), 'from flat to flat in one instrument'],
      ['Open at the end', formatCount(trades.open), 'not part of the figures below'],
      ['Win rate', percent('trades.win_rate', trades.win_rate), 'share with a net profit'],
      [
        'Profit factor',
        ratio('trades.profit_factor', trades.profit_factor),
        'sum of profits ÷ sum of losses',
      ],
      ['Expectancy', money('trades.expectancy', trades.expectancy), `mean profit, ${currency}`],
      ['Average trade', percent('trades.average', trades.average), 'mean of profit ÷ entry value'],
      ['Best trade', percent('trades.best', trades.best), 'profit ÷ entry value'],
      ['Worst trade', percent('trades.worst', trades.worst), 'profit ÷ entry value'],
      ['SQN', ratio('trades.sqn', trades.sqn), '√count × mean ÷ standard deviation of profits'],
      [
        'Kelly',
        percent('trades.kelly', trades.kelly),
        'win rate − loss rate ÷ (mean profit ÷ mean loss)',
      ],
    ],
    Costs: [
      ['Fees', formatMoney(costs.fees), `over all fills, ${currency}`],
      ['Slippage', formatMoney(costs.slippage), `fill price against reference price, ${currency}`],
      ['Turnover', ratio('costs.turnover', costs.turnover), 'traded value per year ÷ mean equity'],
      ['Time in the market', formatPercent(exposure.time), 'share of closes with a position'],
    ],
  };
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
      ${Object.entries(groups).map(
        ([name, rows]) =>
          html`<tbody>
            <tr class="group">
              <th colspan="3" scope="rowgroup">${name}</th>
            </tr>
            ${rows.map(
              ([label, shown, how]) =>
                html`<tr>
                  <th scope="row">${label}</th>
                  <td class="number">${shown}</td>
                  <td class="how">${how}</td>
                </tr> `,
            )}
          </tbody> `,
      )}
    </table>
    <p class="note">${conventionsInWords(conventions, window.bars)}</p>
  </section>`;
}

function conventionsInWords(conventions: Conventions, bars: number): string {
  const { periods_per_year, year_days, ddof, risk_free, sampling } = conventions;
  return [
    `Conventions: ${formatNumber(periods_per_year)} periods per year; ${year_days} days per year in CAGR; ddof ${ddof}; risk-free rate ${formatPercent(risk_free)} a year.`,
    sampling === 'day'
      ? `Returns are simple, from the last close of each UTC day (${formatCount(bars)} bars are shorter than a day).`
      : 'Returns are simple, from close to close of each bar.',
    'Downside deviation divides by the number of all returns. Trades run from flat to flat. Numbers are 64-bit floats.',
  ].join(' ');
}

function profileSection({ profile }: Summary): Html {
  if (profile === undefined) return nothing;
  return html`<section aria-labelledby="profile">
    <h2 id="profile">In the conventions of <bdi>${profile.name}</bdi></h2>
    <table class="plain">
      <tbody>
        ${Object.entries(profile.statistics).map(
          ([name, figure]) =>
            html`<tr>
              <th scope="row">${name}</th>
              <td class="number">${figure === null ? '—' : formatNumber(figure)}</td>
            </tr> `,
        )}
      </tbody>
    </table>
  </section>`;
}

function ordersSection({ orders, ambiguity, margin_calls }: Summary): Html {
  const { submitted, filled, fills, canceled, expired, rejected, denied, reasons } = orders;
  const rows: readonly (readonly [string, number, string])[] = [
    ['Submitted', submitted, 'accepted by the risk limits'],
    ['Filled', filled, `in ${count(fills, 'fill')}`],
    ['Cancelled', canceled, 'by the strategy or the other side of a pair'],
    ['Expired', expired, 'by their time in force'],
    ['Rejected', rejected, 'when they would have been filled'],
    ['Denied', denied, 'by a risk limit, before submission'],
    [
      'Ambiguous bars',
      ambiguity.bars,
      'several orders could have filled; the worse order was assumed',
    ],
    ['Margin calls', margin_calls, 'positions closed for want of equity'],
  ];
  return html`<section aria-labelledby="orders">
    <h2 id="orders">Orders</h2>
    <table class="plain stack">
      <tbody>
        ${rows.map(
          ([name, number, how]) =>
            html`<tr>
              <th scope="row">${name}</th>
              <td class="number">${formatCount(number)}</td>
              <td class="how">${how}</td>
            </tr> `,
        )}
      </tbody>
    </table>
    ${pairs(Object.entries(reasons).map(([reason, number]) => [reason, formatCount(number)]))}
  </section>`;
}

function provenanceSection(summary: Summary): Html {
  const { run_id, version, engine, lock, hashes } = summary;
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
    ['Events', hashes.events],
    ['Trades', hashes.trades],
    ['Equity', hashes.equity],
  ];
  return html`<section aria-labelledby="provenance">
    <h2 id="provenance">What decided this result</h2>
    <p class="note">
      The same version and lock give the same hashes on any machine. This run took
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

const UNDEFINED: Readonly<Record<UndefinedReason, string>> = {
  too_few_returns: 'there are too few returns',
  zero_variance: 'the returns do not vary',
  no_negative_returns: 'no return was negative',
  no_drawdown: 'equity never fell',
  no_closed_trades: 'no trade was closed',
  no_losing_trades: 'no trade lost',
  no_winning_trades: 'no trade won',
  window_too_short: 'the window is too short to annualise',
  equity_not_positive: 'equity fell to zero or below',
};

/** A statistic, or a dash that says on hover and focus why there is none. */
function value(
  summary: Summary,
  path: string,
  figure: number | null,
  format: (figure: number) => string,
): Child {
  if (figure !== null) return format(figure);
  const reason = summary.undefined[path];
  if (reason === undefined) return '—';
  return html`<span class="undefined" tabindex="0"
    >—<span role="note"> Undefined: ${UNDEFINED[reason]}.</span></span
  >`;
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

function count(number: number, noun: string): string {
  return `${formatCount(number)} ${noun}${number === 1 ? '' : 's'}`;
}
