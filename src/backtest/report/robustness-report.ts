import {
  formatCount,
  formatInstant,
  formatNumber,
  formatRatio,
  NO_VALUE,
} from '../../base/format.ts';
import { formatFigure } from '../../base/format-figure.ts';
import { html, type Html, nothing } from '../../base/html.ts';
import { RUN_FIGURES } from '../../base/run-figures.ts';
import type { Histogram, RobustnessDocument } from '../robustness/robustness-document.ts';
import {
  formatRobustness,
  ROBUSTNESS_FIGURE_NAMES,
  ROBUSTNESS_FIGURES,
  type RobustnessFigureName,
  type Variant,
} from '../robustness/robustness-figures.ts';
import { SWEEP_FIGURES } from '../search/trial-figures.ts';
import { switchTheme } from './client/switch-theme.ts';
import { renderPage, THEME_BUTTON } from './render-report.ts';
import { type Bar, type Mark, svgChart, valueAxis } from './svg-chart.ts';

export function renderRobustnessReport(document: RobustnessDocument): string {
  return renderPage({
    title: `${document.bot.name} · robustness`,
    body: html`<main>
      ${heading(document)} ${figuresSection(document)}
      <div class="smalls">${permutationSection(document)} ${overfittingSection(document)}</div>
      ${runsSection(document)}
    </main>`,
    data: null,
    scripts: [switchTheme],
    charts: false,
  });
}

function heading({ bot, version, window, chosen, trials, seed, gates }: RobustnessDocument): Html {
  const day = (text: string): string => formatInstant(Date.parse(text), true);
  const params = Object.entries(chosen.params).map(([name, value]) => `${name} ${value}`);
  return html`<header>
    <div class="topline">
      <p>Robustness</p>
      ${THEME_BUTTON}
    </div>
    <h1><bdi>${bot.name}</bdi></h1>
    <p class="facts">
      <span>${day(window.from)} to ${day(window.to)}</span>
      <span>${formatCount(window.bars)} bars</span>
      <span>${trials.total > 1 ? `Best of ${formatCount(trials.total)} trials` : 'One trial'}</span>
      <span><bdi>${params.join(', ')}</bdi></span>
      <span>Seed ${seed}</span>
      <span>Version <code title="${version}">${version.slice(0, 12)}</code></span>
    </p>
    ${
      gates.length === 0
        ? nothing
        : html`<ul class="verdict">
            ${gates.map(
              ({ name, op, threshold, pass }) =>
                html`<li class="${pass ? 'pass' : 'fail'}">
                  ${name} ${op} ${threshold} ${pass ? 'met' : 'not met'}
                </li>`,
            )}
          </ul>`
    }
  </header>`;
}

function figuresSection({ figures, objective }: RobustnessDocument): Html {
  const row = (name: RobustnessFigureName): Html => {
    const { value, explanation } = figures[name];
    return html`<tr>
      <th scope="row">${ROBUSTNESS_FIGURES[name].label}</th>
      <td class="number">
        ${value === null ? NO_VALUE : formatRobustness(name, value, objective)}
      </td>
      <td class="how">${explanation}</td>
    </tr> `;
  };
  return html`<section aria-labelledby="figures">
    <h2 id="figures">Is it luck?</h2>
    <table class="plain stack">
      <thead>
        <tr>
          <th scope="col">Figure</th>
          <th scope="col" class="number">Value</th>
          <th scope="col">Meaning</th>
        </tr>
      </thead>
      <tbody>
        ${ROBUSTNESS_FIGURE_NAMES.map(row)}
      </tbody>
    </table>
  </section>`;
}

function permutationSection({ permutations, chosen, objective }: RobustnessDocument): Html {
  if (permutations === null) return nothing;
  const { count, best } = permutations;
  const { figure, better } = objective;
  const { label } = RUN_FIGURES[figure];
  const real = chosen.metrics[figure];
  // The histogram has objectives of which more is better.
  const mark = real === null || better === 'higher' ? real : -real;
  return html`<section aria-labelledby="permutations">
    <h2 id="permutations">Results over shuffled prices</h2>
    ${histogram(
      'permutations-chart',
      best,
      better === 'higher' ? label : `${label}, negative`,
      mark,
      `Vertical: number of permutations. Each of the ${formatCount(count)} has the same price changes in another order. The vertical line is the result over the real history, ${formatFigure(figure, real)}.`,
    )}
  </section>`;
}

function overfittingSection({ overfitting }: RobustnessDocument): Html {
  if (overfitting === null) return nothing;
  const { logits, combinations, blocks } = overfitting;
  return html`<section aria-labelledby="overfitting">
    <h2 id="overfitting">Rank of the best parameters in the other half</h2>
    ${histogram(
      'overfitting-chart',
      logits,
      'Logit of the relative rank',
      0,
      `Vertical: number of ways to split ${blocks} blocks of the history into halves, ${formatCount(combinations)} in all. Left of the vertical line, the parameters that were best in one half ranked below the median in the other.`,
    )}
  </section>`;
}

/** @param mark value at which a vertical line is drawn */
function histogram(
  id: string,
  { from, to, counts }: Histogram,
  label: string,
  mark: number | null,
  caption: string,
): Html {
  if (counts.length === 0)
    return html`<p class="note">The objective is undefined for every permutation.</p>`;
  const width = (to - from) / counts.length;
  const y = valueAxis([...counts], formatCount);
  const bars = counts.flatMap((count, bin): Bar[] => {
    if (count === 0) return [];
    const [low, high] = [from + bin * width, from + (bin + 1) * width];
    const text = `${formatRatio(low)} to ${formatRatio(high)}: ${formatCount(count)}`;
    return [{ from: low + width * 0.06, to: high - width * 0.06, y: count, text }];
  });
  const line: Mark[] =
    mark === null
      ? []
      : [
          {
            kind: 'line',
            className: 'loss',
            points: [
              [mark, 0],
              [mark, y.to],
            ],
          },
        ];
  return svgChart({
    id,
    title: label,
    caption,
    x: valueAxis(mark === null ? [from, to] : [from, to, mark], formatNumber, false),
    y,
    marks: [{ kind: 'bars', className: 'equity', bars }, ...line],
  });
}

function runsSection({ chosen, neighbors, stresses }: RobustnessDocument): Html {
  const groups: readonly (readonly [string, readonly Pick<Variant, 'label' | 'metrics'>[]])[] = [
    ['The run', [{ label: 'as chosen', metrics: chosen.metrics }]],
    ['One parameter changed by a step', neighbors],
    ['Under other conditions', stresses],
  ];
  const row = ({ label, metrics }: Pick<Variant, 'label' | 'metrics'>): Html =>
    html`<tr>
      <th scope="row">${label}</th>
      ${SWEEP_FIGURES.map(
        (name) =>
          html`<td class="number">
            ${metrics === null ? NO_VALUE : formatFigure(name, metrics[name])}
          </td>`,
      )}
    </tr> `;
  return html`<section aria-labelledby="runs">
    <h2 id="runs">With one change</h2>
    <div class="scroll" tabindex="0" role="group" aria-labelledby="runs">
      <table class="plain">
        <thead>
          <tr>
            <th scope="col">Run</th>
            ${SWEEP_FIGURES.map(
              (name) => html`<th scope="col" class="number">${RUN_FIGURES[name].label}</th>`,
            )}
          </tr>
        </thead>
        ${groups.map(([group, runs]) =>
          runs.length === 0
            ? nothing
            : html`<tbody>
                <tr class="group">
                  <th colspan="${formatNumber(SWEEP_FIGURES.length + 1)}" scope="rowgroup">
                    ${group}
                  </th>
                </tr>
                ${runs.map(row)}
              </tbody>`,
        )}
      </table>
    </div>
  </section>`;
}
