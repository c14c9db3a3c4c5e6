import { formatCount } from '../../base/format.ts';
import { formatFigure } from '../../base/format-figure.ts';
import { html, type Html, nothing } from '../../base/html.ts';
import { RUN_FIGURES } from '../../base/run-figures.ts';
import type { Goal } from '../search/goal.ts';
import type { SweepRow } from './sweep-row.ts';

/** With more lines, they would hide each other. */
const MAX_LINES = 400;
const WIDTH = 1000;
const HEIGHT = 300;
const TOP = 34;
const BOTTOM = 26;
const SIDE = 70;
/** Share of the lines that are emphasized. */
const BEST_SHARE = 0.1;

interface ParallelAxis {
  readonly label: string;
  readonly ends: readonly [low: string, high: string];
  /** Position of each line on the axis, from 0 to 1; undefined if the line has no value. */
  readonly places: readonly (number | undefined)[];
}

/** Draws each trial as a line over its parameters and its figure, with the best ones in color. */
export function parallelSection(rows: readonly SweepRow[], objectives: Goal['objectives']): Html {
  const drawn = spread(rows);
  if (drawn.length < 2) return nothing;
  const [{ figure }] = objectives;
  const axes: readonly ParallelAxis[] = [
    ...Object.keys(drawn[0]!.params).map((name) => paramAxis(name, drawn)),
    numberAxis(
      RUN_FIGURES[figure].label,
      drawn.map(({ metrics }) => metrics[figure]),
      (value) => formatFigure(figure, value),
    ),
  ];
  const best = Math.max(1, Math.round(drawn.length * BEST_SHARE));
  const shown =
    drawn.length < rows.length
      ? `${formatCount(drawn.length)} of ${formatCount(rows.length)} trials`
      : `${formatCount(drawn.length)} trials`;
  return html`<section aria-labelledby="parallel">
    <h2 id="parallel">Parallel coordinates</h2>
    <div class="scroll" tabindex="0" role="group" aria-labelledby="parallel">
      <svg class="parallel" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-labelledby="parallel">
        ${drawn.map((_, line) => drawLine(axes, line, line < best)).toReversed()}
        ${axes.map(drawAxis(axes.length))}
      </svg>
    </div>
    <p class="note">
      Each line is a trial: its parameters, then its result. The best tenth of ${shown} is in color.
      The parameters on whose axes the colored lines are close together affect the result most.
    </p>
  </section>`;
}

/** At most `MAX_LINES` trials, best first, spread evenly over the ranking. */
function spread(rows: readonly SweepRow[]): readonly SweepRow[] {
  if (rows.length <= MAX_LINES) return rows;
  const step = (rows.length - 1) / (MAX_LINES - 1);
  return Array.from({ length: MAX_LINES }, (_, line) => rows[Math.round(line * step)]!);
}

function paramAxis(name: string, rows: readonly SweepRow[]): ParallelAxis {
  const values = rows.map(({ params }) => params[name]!);
  if (values.every((value) => typeof value === 'number')) {
    return numberAxis(name, values, String);
  }
  const names = [...new Set(values.map(String))].toSorted();
  return {
    label: name,
    ends: [names[0]!, names.at(-1)!],
    places: values.map((value) =>
      names.length === 1 ? 0.5 : names.indexOf(String(value)) / (names.length - 1),
    ),
  };
}

function numberAxis(
  label: string,
  values: readonly (number | null)[],
  format: (value: number) => string,
): ParallelAxis {
  const defined = values.filter((value) => value !== null);
  const [low, high] = [Math.min(...defined), Math.max(...defined)];
  if (defined.length === 0) return { label, ends: ['', ''], places: values.map(() => undefined) };
  return {
    label,
    ends: [format(low), format(high)],
    places: values.map((value) => {
      if (value === null) return undefined;
      return high === low ? 0.5 : (value - low) / (high - low);
    }),
  };
}

const xOf = (axis: number, count: number): number =>
  SIDE + (axis * (WIDTH - 2 * SIDE)) / Math.max(1, count - 1);
const yOf = (place: number): number => HEIGHT - BOTTOM - place * (HEIGHT - TOP - BOTTOM);

function drawLine(axes: readonly ParallelAxis[], line: number, isBest: boolean): Html {
  const points = axes.flatMap(({ places }, axis) => {
    const place = places[line];
    if (place === undefined) return [];
    return `${xOf(axis, axes.length).toFixed(1)},${yOf(place).toFixed(1)}`;
  });
  return html`<polyline
    class="${isBest ? 'best' : 'trial'}"
    points="${points.join(' ')}"
  ></polyline>`;
}

function drawAxis(count: number) {
  return ({ label, ends: [low, high] }: ParallelAxis, axis: number): Html => {
    const x = xOf(axis, count).toFixed(1);
    return html`<g class="axis">
      <line x1="${x}" x2="${x}" y1="${TOP}" y2="${HEIGHT - BOTTOM}"></line>
      <text x="${x}" y="14" class="name">${label}</text>
      <text x="${x}" y="28">${high}</text>
      <text x="${x}" y="${HEIGHT - 8}">${low}</text>
    </g>`;
  };
}
