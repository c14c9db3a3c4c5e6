import type { DeflatedSharpe } from '../deflated-sharpe.ts';
import type { Summary } from '../summary.ts';
import { describeTrials, type TrialCounts } from '../search/describe-trials.ts';
import { shownFigures, type Goal } from '../search/goal.ts';
import type { TrialFigureName } from '../search/trial-figures.ts';
import { drawHeatMap, type HeatMapData } from './client/heat-map.ts';
import { sortTables } from './client/sort-tables.ts';
import { switchTheme } from './client/switch-theme.ts';
import {
  formatCount,
  formatInstant,
  formatPercent,
  formatRatio,
  NO_VALUE,
} from '../../base/format.ts';
import { formatFigure } from '../../base/format-figure.ts';
import { RUN_FIGURES } from '../../base/run-figures.ts';
import { html, type Html, nothing } from '../../base/html.ts';
import { type Column, renderPage, sortableTable, THEME_BUTTON } from './render-report.ts';
import { PRINTED_ROWS } from '../../base/report-style.ts';
import { parallelSection } from './parallel-section.ts';
import { samplesSection } from './samples-section.ts';
import type { SweepRow } from './sweep-row.ts';

export interface SweepReportInput {
  readonly bot: Summary['bot'];
  /** sha256 of the spec. */
  readonly version: string;
  readonly window: Summary['window'];
  /** Account currency, such as `USD`. */
  readonly currency: string;
  readonly trials: TrialCounts;
  /** Number of trials that finished and meet the constraints. */
  readonly ranked: number;
  readonly objectives: Goal['objectives'];
  /** Whether the trials are samples of the search space, instead of a grid. */
  readonly isSampled: boolean;
  /** The best of the ranked trials, best first, at least one; all have the same parameter names. */
  readonly rows: readonly SweepRow[];
  /** Deflated Sharpe ratio of the first row, or why it has none. */
  readonly deflated: DeflatedSharpe | string;
}

// Limits the page to a few megabytes, regardless of the size of the grid.
const MAX_DRAWN_TRIALS = 50_000;
const MAX_TABLE_ROWS = 2000;

export function renderSweepReport(input: SweepReportInput): string {
  const { bot, currency, rows, objectives, ranked, isSampled } = input;
  const mapped = rows.slice(0, MAX_DRAWN_TRIALS);
  const names = Object.keys(rows[0]!.params);
  const data: HeatMapData = {
    params: names.map((name) => axis(name, mapped)),
    metrics: shownFigures(objectives).map((name) => {
      const { label, unit } = RUN_FIGURES[name];
      return {
        label: unit === 'money' ? `${label}, ${currency}` : label,
        unit,
        of: mapped.map(({ metrics }) => metrics[name]),
      };
    }),
  };
  return renderPage({
    title: `${bot.name} · sweep`,
    body: html`<main>
      ${heading(input)} ${bestSection(rows[0]!, input)}
      ${isSampled ? samplesSection(mapped, objectives, ranked) : heatMapSection(names, ranked)}
      ${parallelSection(rows, objectives)} ${tableSection(names, input)}
    </main>`,
    data: isSampled ? null : data,
    scripts: [switchTheme, sortTables, ...(isSampled ? [] : [drawHeatMap])],
    charts: false,
  });
}

function axis(name: string, rows: readonly SweepRow[]): HeatMapData['params'][number] {
  const given = rows.map(({ params }) => params[name]!);
  const values = [...new Set(given)].toSorted((a, b) =>
    typeof a === 'number' && typeof b === 'number'
      ? a - b
      : String(a).localeCompare(String(b), 'en'),
  );
  const index = new Map(values.map((value, position) => [value, position]));
  return { name, values: values.map(String), of: given.map((value) => index.get(value)!) };
}

function heading({ bot, version, window, currency, trials }: SweepReportInput): Html {
  const day = (text: string): string => formatInstant(Date.parse(text), true);
  return html`<header>
    <div class="topline">
      <p>Sweep</p>
      ${THEME_BUTTON}
    </div>
    <h1><bdi>${bot.name}</bdi></h1>
    <p class="facts">
      <span>${day(window.from)} to ${day(window.to)}</span>
      <span>${formatCount(window.bars)} bars</span>
      <span>${describeTrials(trials)}</span>
      <span>Version <code title="${version}">${version.slice(0, 12)}</code></span>
      <span>Figures in <bdi>${currency}</bdi></span>
    </p>
  </header>`;
}

const BEST_FIGURES = ['total_return', 'max_drawdown', 'trades'] as const;

function bestSection(
  { params, metrics }: SweepRow,
  { deflated, trials, ranked, objectives }: SweepReportInput,
): Html {
  const [{ figure: best }, ...others] = objectives;
  const figure = (name: TrialFigureName): Html =>
    html`<div>
      <dt>${RUN_FIGURES[name].label}</dt>
      <dd>${formatFigure(name, metrics[name])}</dd>
    </div>`;
  return html`<dl class="figures">
      <div>
        <dt>Best ${RUN_FIGURES[best].label}</dt>
        <dd>${formatFigure(best, metrics[best])}</dd>
        <dd>${paramsInWords(params)}</dd>
      </div>
      <div>
        <dt>Deflated Sharpe ratio</dt>
        <dd>${typeof deflated === 'string' ? NO_VALUE : formatPercent(deflated.probability)}</dd>
        <dd>probability that its Sharpe ratio exceeds what luck alone gives</dd>
      </div>
      <div>
        <dt>Trials</dt>
        <dd>${formatCount(trials.done)}</dd>
        <dd>${formatCount(ranked)} ranked</dd>
      </div>
      ${[...others.map((other) => other.figure), ...BEST_FIGURES]
        .filter((name, i, names) => name !== best && names.indexOf(name) === i)
        .slice(0, BEST_FIGURES.length)
        .map(figure)}
    </dl>
    ${judgement(deflated)}`;
}

/** 95 % is the usual significance level. */
function judgement(deflated: DeflatedSharpe | string): Html {
  if (typeof deflated === 'string') {
    return html`<p class="judgement">
      The report cannot judge whether the best trial is more than luck: ${deflated}.
    </p>`;
  }
  const { trials, probability, expected_max_sharpe } = deflated;
  const proven = probability >= 0.95;
  return html`<p class="judgement ${proven ? 'pass' : 'warning'}">
    The expected Sharpe ratio of the best of ${formatCount(trials)} trials without skill is
    ${formatRatio(expected_max_sharpe)}; the probability that the best trial is truly better is
    ${formatPercent(probability)}${
      proven
        ? '.'
        : ', which is less than the usual 95%. Attribute the result to luck until other data confirm it.'
    }
  </p>`;
}

function paramsInWords(params: SweepRow['params']): Html {
  return html`<bdi
    >${Object.entries(params)
      .map(([name, value]) => `${name} ${value}`)
      .join(', ')}</bdi
  >`;
}

function heatMapSection(names: readonly string[], ranked: number): Html {
  const select = (id: string, label: string): Html =>
    html`<span>
      <label for="${id}">${label}</label>
      <select id="${id}" autocomplete="off"></select>
    </span>`;
  const others = names.length > 2 ? ' Each cell shows its best trial.' : '';
  const omitted =
    ranked > MAX_DRAWN_TRIALS
      ? ` The map contains the best ${formatCount(MAX_DRAWN_TRIALS)} trials.`
      : '';
  return html`<section aria-labelledby="map-title">
    <div class="heading">
      <h2 id="map-title">Map of the parameters</h2>
      <div class="controls">
        ${select('metric', 'Show')}
        ${select('across', 'Across')}${names.length > 1 ? select('down', 'Down') : nothing}
      </div>
    </div>
    <div class="scroll" id="map" tabindex="0" role="group" aria-labelledby="map-title"></div>
    <p class="note">
      The best trial is outlined.${others}${omitted} A broad plateau is more reliable than an
      isolated peak.
    </p>
  </section>`;
}

const FRONT: Column<SweepRow> = {
  label: 'Front',
  numeric: true,
  value: ({ front }) => front ?? null,
  text: ({ front }) => (front === undefined ? NO_VALUE : formatCount(front)),
};

function tableSection(
  names: readonly string[],
  { rows, ranked, objectives }: SweepReportInput,
): Html {
  const hasFronts = objectives.length > 1;
  const listed = rows.slice(0, MAX_TABLE_ROWS);
  const columns: Column<SweepRow>[] = [
    ...names.map((name) => ({
      label: name,
      numeric: typeof rows[0]!.params[name] === 'number',
      value: ({ params }: SweepRow) => String(params[name]),
      text: ({ params }: SweepRow) => html`<bdi>${String(params[name])}</bdi>`,
    })),
    ...(hasFronts ? [FRONT] : []),
    ...shownFigures(objectives).map((name) => ({
      label: RUN_FIGURES[name].label,
      numeric: true,
      value: ({ metrics }: SweepRow) => metrics[name],
      text: ({ metrics }: SweepRow) => formatFigure(name, metrics[name]),
    })),
  ];
  const note =
    listed.length < ranked
      ? html`<p class="note">
          The best ${formatCount(listed.length)} ranked trials of ${formatCount(ranked)}; trials.csv
          contains all.
        </p>`
      : nothing;
  const onPaper =
    listed.length > PRINTED_ROWS
      ? html`<p class="note print-only">
          The first ${PRINTED_ROWS} rows are printed; trials.csv contains all trials.
        </p>`
      : nothing;
  return html`<section aria-labelledby="trials-title">
    <h2 id="trials-title">Trials</h2>
    ${note}${onPaper}
    ${sortableTable({ label: 'Trials', columns, rows: listed, sorted: { column: names.length, direction: hasFronts || objectives[0].better === 'lower' ? 'ascending' : 'descending' } })}
  </section>`;
}
