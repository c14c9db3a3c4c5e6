import { DAY } from '../../base/durations.ts';
import { formatFigure } from '../../base/format-figure.ts';
import { formatCount, formatCountOf, formatInstant, NO_VALUE } from '../../base/format.ts';
import { html, type Html, nothing } from '../../base/html.ts';
import { RUN_FIGURES } from '../../base/run-figures.ts';
import { LOG_BUTTON } from '../../base/charts/chart-buttons.ts';
import { chartSection } from '../report/chart-section.ts';
import { switchTheme } from '../report/client/switch-theme.ts';
import { FIGURE_GROUPS } from '../report/figure-groups.ts';
import { renderPage, THEME_BUTTON } from '../report/render-report.ts';
import { type ComparisonData, drawComparison } from './client/comparison-chart.ts';
import type { Comparison, ComparedFigure, ComparedRun, Difference } from './compare-runs.ts';
import { describeParam, describeTrade, TRADE_LABELS } from './describe-difference.ts';
import type { OverlaidCurves } from './overlaid-curves.ts';

/** Colors of lines in an order in which neighbors differ clearly. */
const HUES = [3, 1, 2, 5, 0, 4, 6, 7];

/** Renders a comparison as a self-contained HTML page. */
export function renderComparison(comparison: Comparison, curves: OverlaidCurves): string {
  const { runs, notes } = comparison;
  const data = chartData(runs, curves);
  const { dateOnly } = data;
  const start = comparison.shared === null ? 'its own start' : 'the start of the shared window';
  return renderPage({
    title: `${runs.map(({ bot }) => bot.name).join(' and ')} · comparison`,
    body: html`<main>
      <header>
        <div class="topline">
          <p>Comparison of ${formatCountOf(runs.length, 'backtest')}</p>
          ${THEME_BUTTON}
        </div>
        <h1><bdi>${[...new Set(runs.map(({ bot }) => bot.name))].join(' and ')}</bdi></h1>
      </header>
      ${runsSection(runs, dateOnly)} ${notesSection(notes)} ${curvesSection(runs, curves, start)}
      ${figuresSection(runs, groupsOf(comparison, dateOnly))}
      ${comparison.differences.map((difference) => differenceSection(difference))}
    </main>`,
    data,
    scripts: [switchTheme, drawComparison],
    charts: true,
  });
}

export function chartData(runs: readonly Labeled[], curves: OverlaidCurves): ComparisonData {
  const dateOnly = curves.time.every((seconds) => (seconds * 1000) % DAY === 0);
  return { ...curves, dateOnly, labels: runs.map(({ label }) => label), hues: HUES };
}

type Labeled = Pick<ComparedRun, 'label'>;

const TRADE_ROWS = Object.keys(TRADE_LABELS) as (keyof typeof TRADE_LABELS)[];

function keyOf(runs: readonly Labeled[], index: number): Html {
  return html`<span class="key line-${HUES[index]!}"></span> ${runs[index]!.label}`;
}

function runsSection(runs: readonly ComparedRun[], dateOnly: boolean): Html {
  const day = (text: string): string => formatInstant(Date.parse(text), dateOnly);
  return html`<section aria-labelledby="runs">
    <h2 id="runs">Runs</h2>
    <div class="scroll" tabindex="0" role="group" aria-labelledby="runs">
      <table class="plain side">
        <thead>
          <tr>
            <th scope="col">Run</th>
            <th scope="col">Bot</th>
            <th scope="col">Window, UTC</th>
            <th scope="col" class="number">Bars</th>
            <th scope="col">Currency</th>
            <th scope="col">Parameters</th>
            <th scope="col">Id</th>
          </tr>
        </thead>
        <tbody>
          ${runs.map(
            ({ bot, window, currency, params, run_id }, index) =>
              html`<tr>
                <th scope="row">${keyOf(runs, index)}</th>
                <td><bdi>${bot.name}</bdi></td>
                <td>${day(window.from)} to ${day(window.to)}</td>
                <td class="number">${formatCount(window.bars)}</td>
                <td>${currency ?? NO_VALUE}</td>
                <td>
                  <bdi
                    >${Object.entries(params ?? {})
                      .map(([name, value]) => `${name} ${value}`)
                      .join(', ')}</bdi
                  >
                </td>
                <td><code>${run_id}</code></td>
              </tr>`,
          )}
        </tbody>
      </table>
    </div>
  </section>`;
}

function notesSection(notes: readonly string[]): Html {
  return notes.length === 0
    ? nothing
    : html`<section class="notes">
        ${notes.map((note) => html`<p class="judgement">${note}</p>`)}
      </section>`;
}

/** @param start from which growth is counted, in words. */
export function curvesSection(
  runs: readonly Labeled[],
  { time, growth }: OverlaidCurves,
  start: string,
): Html {
  const ends = runs.map(({ label }, run) => {
    const last = growth[run]!.findLast((value) => value !== null) ?? 0;
    return `${label} ${formatFigure('total_return', last)}`;
  });
  return chartSection('equity', 'Growth and drawdown', {
    selector: growth.flat().every((value) => value === null || value > -1) ? LOG_BUTTON : nothing,
    legend: html`${runs.map((_, index) => html`<span>${keyOf(runs, index)}</span>`)}`,
    caption: `Growth since ${start}: ${ends.join(', ')}. Below it, the drawdown of each run. Times are in UTC. The chart has ${formatCountOf(time.length, 'point')} of each run; drawdowns are the deepest since the point before.`,
  });
}

/** Rows of a table of figures, in groups with titles. */
type FigureGroup = readonly [title: string, figures: readonly ComparedFigure[]];

function groupsOf({ runs, figures, shared }: Comparison, dateOnly: boolean): FigureGroup[] {
  const groups = groupFigures(figures);
  const isSame = new Set(runs.map(({ window }) => `${window.from} ${window.to}`)).size === 1;
  if (shared === null || isSame) return groups;
  const [from, to] = [shared.from, shared.to].map((at) => formatInstant(Date.parse(at), dateOnly));
  return [[`Shared window, ${from} to ${to}`, shared.figures], ...groups];
}

export function groupFigures(figures: readonly ComparedFigure[]): FigureGroup[] {
  return Object.entries(FIGURE_GROUPS).map(([title, names]: [string, readonly string[]]) => [
    title,
    figures.filter(({ figure }) => names.includes(figure)),
  ]);
}

export function figuresSection(runs: readonly Labeled[], groups: readonly FigureGroup[]): Html {
  return html`<section aria-labelledby="figures">
    <h2 id="figures">Figures</h2>
    <p class="note">
      A check mark is at the best value of a row, where one direction is better and the runs are
      comparable.
    </p>
    <div class="scroll" tabindex="0" role="group" aria-labelledby="figures">
      <table class="plain side">
        <thead>
          <tr>
            <th scope="col">Figure</th>
            ${runs.map((_, index) => html`<th scope="col" class="number">${keyOf(runs, index)}</th>`)}
            ${isPair(runs) ? html`<th scope="col" class="number">${runs[1]!.label} − ${runs[0]!.label}</th>` : nothing}
          </tr>
        </thead>
        ${groups
          .filter(([, own]) => own.length > 0)
          .map(
            ([title, own]) =>
              html`<tbody>
                <tr class="group">
                  <th colspan="${runs.length + (isPair(runs) ? 2 : 1)}" scope="rowgroup">
                    ${title}
                  </th>
                </tr>
                ${own.map(figureRow)}
              </tbody>`,
          )}
      </table>
    </div>
  </section>`;
}

function figureRow({ figure, values, best }: ComparedFigure): Html {
  return html`<tr>
    <th scope="row">${RUN_FIGURES[figure].label}</th>
    ${values.map((value, index) => {
      const isBest = best.includes(index);
      const mark = isBest ? html`<span aria-label="best">✓</span> ` : nothing;
      return html`<td class="number ${isBest ? 'gain' : ''}">
        ${mark}${formatFigure(figure, value)}
      </td>`;
    })}
    ${isPair(values) ? html`<td class="number">${formatFigure(figure, differenceOf(values))}</td>` : nothing}
  </tr>`;
}

function isPair(all: readonly unknown[]): boolean {
  return all.length === 2;
}

function differenceOf([first, other]: readonly (number | null)[]): number | null {
  return first === null || other === null ? null : other! - first!;
}

function differenceSection({ run, lock, params, trade }: Difference): Html {
  const id = `difference-${run}`;
  const causes = [...params.map((param) => describeParam(param, run)), ...lock];
  return html`<section aria-labelledby="${id}">
    <h2 id="${id}">A and ${run}: what differs</h2>
    ${
      causes.length === 0
        ? html`<p class="note">The locks are equal.</p>`
        : html`<ul class="causes">
            ${causes.map((cause) => html`<li><bdi>${cause}</bdi></li>`)}
          </ul>`
    }
    <p class="note">${describeTrade(trade, run)}</p>
    ${
      trade === null
        ? nothing
        : html`<div class="scroll" tabindex="0" role="group" aria-labelledby="${id}">
            <table class="plain side">
              <thead>
                <tr>
                  <th scope="col">Trade ${trade.number}</th>
                  <th scope="col" class="number">A</th>
                  <th scope="col" class="number">${run}</th>
                </tr>
              </thead>
              <tbody>
                ${TRADE_ROWS.map((field) => {
                  const [label, format] = TRADE_LABELS[field];
                  const differs = trade.fields.includes(field);
                  const cell = (row: typeof trade.first): Html =>
                    html`<td class="number ${differs ? 'loss' : ''}">
                      ${row === null ? NO_VALUE : format(row)}
                    </td>`;
                  return html`<tr>
                    <th scope="row">${differs ? '≠ ' : ''}${label}</th>
                    ${cell(trade.first)}${cell(trade.other)}
                  </tr>`;
                })}
              </tbody>
            </table>
          </div>`
    }
  </section>`;
}
