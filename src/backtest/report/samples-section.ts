import { formatCount, formatNumber } from '../../base/format.ts';
import { formatFigure } from '../../base/format-figure.ts';
import { html, type Html, nothing } from '../../base/html.ts';
import { RUN_FIGURES } from '../../base/run-figures.ts';
import type { Objective } from '../search/goal.ts';
import { type Axis, svgChart, tickPercent, valueAxis } from './svg-chart.ts';
import type { SweepRow } from './sweep-row.ts';

/** Charts of each objective over each parameter, with a dot for each trial. The first row is the best. */
export function samplesSection(
  rows: readonly SweepRow[],
  objectives: readonly Objective[],
  ranked: number,
): Html {
  const names = Object.keys(rows[0]!.params);
  const charts = objectives.flatMap((objective) =>
    names.map((name, index) => samplesChart(index, name, rows, objective)),
  );
  const omitted =
    rows.length < ranked ? ` The charts contain the best ${formatCount(rows.length)} trials.` : '';
  return html`<section aria-labelledby="map-title">
    <h2 id="map-title">Trials by parameter</h2>
    <div class="smalls">${charts}</div>
    <p class="note">
      Each dot is a trial. The best trial is the large dot.${omitted} A broad plateau is more
      reliable than an isolated peak.
    </p>
  </section>`;
}

function samplesChart(
  index: number,
  name: string,
  rows: readonly SweepRow[],
  { figure }: Objective,
): Html {
  const { label, unit } = RUN_FIGURES[figure];
  const { axis, at } = parameterAxis(rows.map(({ params }) => params[name]!));
  const points = rows.flatMap(({ params, metrics }) => {
    const y = metrics[figure];
    return y === null ? [] : [[at(params[name]!), y] as const];
  });
  if (points.length === 0) return nothing;
  const best = rows[0]!;
  return svgChart({
    id: `samples-${figure}-${index}`,
    title: `${label} by ${name}`,
    caption: `Horizontal: ${name}. Vertical: ${label}. Best trial: ${name} ${best.params[name]}, ${label} ${formatFigure(figure, best.metrics[figure])}.`,
    x: axis,
    y: valueAxis(
      points.map(([, y]) => y),
      unit === 'percent' ? tickPercent : formatNumber,
      false,
    ),
    marks: [
      { kind: 'dots', className: 'equity', points: points.slice(1) },
      { kind: 'dots', className: 'loss best', points: points.slice(0, 1) },
    ],
  });
}

/** An axis over the values of a parameter: to scale for numbers, one place for each other value. */
function parameterAxis(given: readonly SweepRow['params'][string][]): {
  axis: Axis;
  at: (value: SweepRow['params'][string]) => number;
} {
  const numbers = given.filter((value) => typeof value === 'number');
  if (numbers.length === given.length) {
    return { axis: valueAxis(numbers, formatNumber, false), at: Number };
  }
  const places = [...new Set(given.map(String))].toSorted();
  const ticks = places.map((label, at) => ({ at, label }));
  return {
    axis: { from: -0.5, to: places.length - 0.5, ticks },
    at: (value) => places.indexOf(String(value)),
  };
}
