import {
  formatCount,
  formatCountOf,
  formatInstant,
  formatPercent,
  formatRatio,
  NO_VALUE,
} from '../../base/format.ts';
import { formatFigure } from '../../base/format-figure.ts';
import { RUN_FIGURES } from '../../base/run-figures.ts';
import { DAY } from '../../base/durations.ts';
import { type Child, html, type Html, nothing } from '../../base/html.ts';
import { UNDEFINED_REASONS } from '../summary.ts';
import type { ParameterStability } from '../windows/stability.ts';
import type { WalkForwardDocument, WindowDocument } from '../windows/walk-forward-document.ts';
import { benchmarkName, benchmarkSection } from './benchmark-section.ts';
import { equitySection, monthsSection } from './charts-section.ts';
import type { ChartData } from './client/chart-data.ts';
import { drawEquity, showLinkedPoint } from './client/equity-chart.ts';
import { sortTables } from './client/sort-tables.ts';
import { switchTheme } from './client/switch-theme.ts';
import { drawdownsSection } from './drawdowns-section.ts';
import type { ReportInput } from './input.ts';
import { luckSection } from './luck-section.ts';
import { type Column, renderPage, sortableTable, THEME_BUTTON } from './render-report.ts';
import { findingsSection, gatesSection, MAX_CURVE_POINTS } from './report.ts';
import { returnsSection } from './returns-section.ts';
import { thinCurve } from './series.ts';
import { showFigure, statisticsSection } from './statistics-section.ts';
import { tradeGroupsSection } from './trade-groups-section.ts';
import { tradesSection } from './trades-section.ts';

/** `summary` and `result` describe the joined tests. */
export interface WalkForwardReportInput extends ReportInput {
  readonly document: WalkForwardDocument;
}

export function renderWalkForwardReport(input: WalkForwardReportInput): string {
  const { document, summary, result, drawdown, benchmark, currency } = input;
  const { time, equity } = result;
  const dateOnly = time.every((instant) => instant % DAY === 0);
  const { curve, deepest } = thinCurve(time, equity, drawdown, benchmark, MAX_CURVE_POINTS);
  const data: ChartData = {
    dateOnly,
    currency,
    benchmark: benchmarkName(summary),
    curve,
    instruments: [],
  };
  return renderPage({
    title: `${document.bot.name} · walk-forward`,
    body: html`<main>
      ${heading(document, currency)} ${keyFigures(input)} ${judgement(document)}
      ${luckSection(summary)} ${gatesSection(document.gates)} ${findingsSection(document.findings)}
      <div class="columns">
        <div>
          ${equitySection(input, curve, deepest, dateOnly)} ${windowsSection(document)}
          ${document.stability.map((parameter) => stabilitySection(parameter, document))}
          ${benchmarkSection(summary)} ${monthsSection(result)} ${returnsSection(input)}
          ${drawdownsSection(input, dateOnly)} ${tradeGroupsSection(input, dateOnly)}
          ${tradesSection(input, [], dateOnly)}
        </div>
        <div>${statisticsSection(summary, currency)}</div>
      </div>
    </main>`,
    data,
    scripts: [switchTheme, sortTables, drawEquity],
    functions: [showLinkedPoint],
    charts: true,
  });
}

function heading(document: WalkForwardDocument, currency: string): Html {
  const { bot, window, version, plan, windows } = document;
  const { train, test, embargo, anchored } = plan;
  return html`<header>
    <div class="topline">
      <p>Walk-forward</p>
      ${THEME_BUTTON}
    </div>
    <h1><bdi>${bot.name}</bdi></h1>
    <p class="facts">
      <span>${dayOf(window.from)} to ${dayOf(window.to)}</span>
      <span>${formatCountOf(windows.length, 'window')}</span>
      <span
        >${anchored ? 'Anchored, from' : 'Rolling,'} ${train} training,
        ${embargo === null ? nothing : `${embargo} embargo, `}${test} test</span
      >
      <span>Version <code title="${version}">${version.slice(0, 12)}</code></span>
      <span>Figures in <bdi>${currency}</bdi></span>
    </p>
  </header>`;
}

function keyFigures({ document, summary }: WalkForwardReportInput): Html {
  const { efficiency, windows } = document;
  const share = (value: number | null): string =>
    value === null ? NO_VALUE : formatPercent(value);
  type Entry = readonly [label: string, figure: Child, aside: string];
  const profitable = Math.round(efficiency.profitable_windows * windows.length);
  const figures: readonly Entry[] = [
    ['Walk-forward efficiency', share(efficiency.value), 'annual return in tests ÷ in training'],
    [
      'Annual return in tests',
      share(efficiency.out_of_sample_annual),
      'with the parameters chosen in training',
    ],
    [
      'Annual return in training',
      share(efficiency.in_sample_annual),
      'with the best trial of each window',
    ],
    ['Profitable windows', `${profitable} of ${windows.length}`, 'test windows with a profit'],
    [RUN_FIGURES.sharpe.label, showFigure(summary, 'sharpe'), 'of the joined tests'],
    [RUN_FIGURES.max_drawdown.label, showFigure(summary, 'max_drawdown'), 'of the joined tests'],
    [RUN_FIGURES.trades.label, showFigure(summary, 'trades'), 'of the joined tests'],
  ];
  return html`<dl class="figures">
    ${figures.map(
      ([name, figure, aside]) =>
        html`<div>
          <dt>${name}</dt>
          <dd>${figure}</dd>
          <dd>${aside}</dd>
        </div> `,
    )}
  </dl>`;
}

/** Pardo's rule of thumb: below a half, the optimization is probably overfitting. */
const SOUND_EFFICIENCY = 0.5;

function judgement({ efficiency, undefined: reasons }: WalkForwardDocument): Html {
  const { value, in_sample_annual: trained, out_of_sample_annual: tested } = efficiency;
  if (value === null) {
    const reason = reasons['efficiency.value'];
    return html`<p class="judgement">
      The walk-forward efficiency is
      undefined${reason === undefined ? nothing : html`: ${UNDEFINED_REASONS[reason]}`}.
    </p>`;
  }
  if (value < 0) {
    return html`<p class="judgement warning">
      In the test windows, the chosen parameters made ${formatPercent(tested!)} a year, after
      ${formatPercent(trained!)} in training. The result in training is probably overfitting.
    </p>`;
  }
  const isSound = value >= SOUND_EFFICIENCY;
  return html`<p class="judgement ${isSound ? 'pass' : 'warning'}">
    In the test windows, the chosen parameters kept ${formatPercent(value)} of the annual return
    that they had in
    training${
      isSound
        ? '.'
        : `. Below ${formatPercent(SOUND_EFFICIENCY)}, most of the result in training is probably overfitting.`
    }
  </p>`;
}

function dayOf(text: string): string {
  return formatInstant(Date.parse(text), true);
}

function windowsSection({ windows, axes, search }: WalkForwardDocument): Html {
  const goal = search.objectives.map(({ figure }) => RUN_FIGURES[figure].label);
  type Row = WindowDocument & { readonly number: number };
  const pair = (
    label: string,
    read: (row: Row) => number | null,
    format: (value: number) => string,
  ): Column<Row> => ({
    label,
    numeric: true,
    value: read,
    text(row) {
      const value = read(row);
      return value === null ? NO_VALUE : format(value);
    },
  });
  const columns: Column<Row>[] = [
    pair('Window', ({ number }) => number, formatCount),
    {
      label: 'Training',
      numeric: false,
      value: ({ train }) => train.from,
      text: ({ train }) => `${dayOf(train.from)} – ${dayOf(train.to)}`,
    },
    {
      label: 'Test',
      numeric: false,
      value: ({ test }) => test.from,
      text: ({ test }) => `${dayOf(test.from)} – ${dayOf(test.to)}`,
    },
    ...axes.map(({ name }): Column<Row> => ({
      label: name,
      numeric: windows.every(({ params }) => typeof (params?.[name] ?? 0) === 'number'),
      value: ({ params }) => String(params?.[name] ?? ''),
      text: ({ params }) => html`<bdi>${String(params?.[name] ?? NO_VALUE)}</bdi>`,
    })),
    pair('Sharpe, training', ({ in_sample }) => in_sample?.sharpe ?? null, formatRatio),
    pair('Sharpe, test', ({ out_of_sample }) => out_of_sample.sharpe, formatRatio),
    pair('CAGR, training', ({ in_sample }) => in_sample?.cagr ?? null, formatPercent),
    pair('CAGR, test', ({ out_of_sample }) => out_of_sample.cagr, formatPercent),
    pair('Return, test', ({ out_of_sample }) => out_of_sample.total_return, formatPercent),
    pair('Trades, test', ({ out_of_sample }) => out_of_sample.trades, formatCount),
  ];
  return html`<section aria-labelledby="windows-title">
    <h2 id="windows-title">Windows</h2>
    <p class="note">
      The parameters of each window are chosen in training only, by ${goal.join(' and ')}. Each test
      begins with the capital at the end of the test before it.
    </p>
    ${sortableTable({
      label: 'Windows',
      columns,
      rows: windows.map((window, at) => ({ ...window, number: at + 1 })),
      sorted: { column: 0, direction: 'ascending' },
    })}
    ${windows.map(({ flat }, at) =>
      flat === null
        ? nothing
        : html`<p class="note">
            Window ${formatCount(at + 1)} holds no position: <bdi>${flat.detail}</bdi>.
          </p>`,
    )}
  </section>`;
}

/** Rows are windows and columns values of the parameter; the color compares the cells of a row. */
function stabilitySection(
  { name, values, chosen_at, objective, changes }: ParameterStability,
  { windows, search }: WalkForwardDocument,
): Html {
  const { figure, better } = search.objectives[0];
  const { label } = RUN_FIGURES[figure];
  const id = `stability-${name}`;
  const cell = (value: number | null, row: readonly (number | null)[], isChosen: boolean): Html => {
    const known = row.filter((other) => other !== null);
    const [least, most] = [Math.min(...known), Math.max(...known)];
    const worst = better === 'higher' ? least : most;
    const level =
      value === null || most === least
        ? 0
        : // Rounding may exceed the highest level.
          Math.min(5, Math.ceil((5 * Math.abs(value - worst)) / (most - least)));
    const shade = level === 0 ? '' : `more-${level}`;
    return html`<td class="${shade}${isChosen ? ' best' : ''}">
      ${value === null ? NO_VALUE : formatFigure(figure, value)}
    </td>`;
  };
  const of = windows.length - 1;
  const conditions = search.constraints.map((one) => `${one.name}${one.op}${one.threshold}`);
  return html`<section aria-labelledby="${id}">
    <h2 id="${id}">Stability of <bdi>${name}</bdi></h2>
    <div class="scroll" tabindex="0" role="group" aria-labelledby="${id}">
      <table class="heat">
        <thead>
          <tr>
            <th scope="col">Test from</th>
            ${values.map((value) => html`<th scope="col"><bdi>${value}</bdi></th>`)}
          </tr>
        </thead>
        <tbody>
          ${objective.map(
            (row, at) =>
              html`<tr>
                <th scope="row">${dayOf(windows[at]!.test.from)}</th>
                ${row.map((value, column) => cell(value, row, column === chosen_at[at]))}
              </tr>`,
          )}
        </tbody>
      </table>
    </div>
    <p class="note">
      Best ${label} in training for each value of the parameter; the chosen value is outlined.
      ${
        conditions.length === 0
          ? nothing
          : html`Trials that do not meet <bdi>${conditions.join(' and ')}</bdi> are excluded; a dash
              marks values for which no trial is left. `
      }The
      chosen value changed at ${formatCount(changes)} of ${formatCountOf(of, 'step')} from window to
      window. Values that stay good in all windows are more reliable than a best value that moves.
    </p>
  </section>`;
}
