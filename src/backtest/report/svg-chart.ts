import { formatPercent } from '../../base/format.ts';
import { html, Html } from '../../base/html.ts';

/** A small chart with two axes as an SVG picture, which needs no script and prints at any size. */
export interface SvgChart {
  /** Id of the picture, unique on the page. */
  readonly id: string;
  readonly title: string;
  readonly caption: string;
  readonly x: Axis;
  readonly y: Axis;
  readonly marks: readonly Mark[];
}

export interface Axis {
  readonly from: number;
  readonly to: number;
  readonly ticks: readonly { readonly at: number; readonly label: string }[];
}

export type Mark =
  | {
      readonly kind: 'line';
      readonly className: string;
      readonly points: readonly (Point | null)[];
    }
  | { readonly kind: 'dots'; readonly className: string; readonly points: readonly Point[] }
  | { readonly kind: 'bars'; readonly className: string; readonly bars: readonly Bar[] };

export type Point = readonly [x: number, y: number];

/** A bar from zero to `y`; `text` is its tooltip. */
export interface Bar {
  readonly from: number;
  readonly to: number;
  readonly y: number;
  readonly text: string;
}

const WIDTH = 440;
const HEIGHT = 230;
const LEFT = 52;
const RIGHT = 8;
const TOP = 8;
const BOTTOM = 24;

/** The figures of a run whose equity overflows go beyond it, where axes and coordinates overflow, too. */
const MOST = 1e300;

const isDrawable = (value: number): boolean => Math.abs(value) <= MOST;

export function svgChart({ id, title, caption, x, y, marks }: SvgChart): Html {
  if (![x.from, x.to, y.from, y.to, ...marks.flatMap(valuesOf)].every(isDrawable)) {
    return html`<figure class="small">
      <h3 id="${id}-title">${title}</h3>
      <p class="note">Not drawn, because some of its values are infinite or too large.</p>
    </figure>`;
  }
  const toX = scaleOf(x, LEFT, WIDTH - RIGHT);
  const toY = scaleOf(y, HEIGHT - BOTTOM, TOP);
  const rows = y.ticks.map(
    ({ at, label }) =>
      html`<path class="${at === 0 ? 'zero' : 'grid'}" d="M${LEFT} ${toY(at)}H${WIDTH - RIGHT}" />
        <text x="${LEFT - 6}" y="${toY(at)}" dy="0.32em" text-anchor="end">${label}</text>`,
  );
  const columns = x.ticks.map(
    ({ at, label }) =>
      html`<text x="${toX(at)}" y="${HEIGHT - 6}" text-anchor="middle">${label}</text>`,
  );
  return html`<figure class="small">
    <h3 id="${id}-title">${title}</h3>
    <svg
      viewBox="0 0 ${WIDTH} ${HEIGHT}"
      role="img"
      aria-labelledby="${id}-title"
      aria-describedby="${id}-text"
    >
      ${rows}${columns}${marks.map((mark) => draw(mark, toX, toY))}
    </svg>
    <figcaption id="${id}-text">${caption}</figcaption>
  </figure>`;
}

function valuesOf(mark: Mark): number[] {
  return mark.kind === 'bars'
    ? mark.bars.flatMap(({ from, to, y }) => [from, to, y])
    : mark.points.flatMap((point) => point ?? []);
}

type Scale = (value: number) => number;

/** Maps an axis to coordinates with one decimal, which keep a path of thousands of points short. */
function scaleOf({ from, to }: Axis, start: number, end: number): Scale {
  const span = to - from || 1;
  return (value) => Math.round((start + ((value - from) / span) * (end - start)) * 10) / 10;
}

function draw(mark: Mark, toX: Scale, toY: Scale): Html {
  if (mark.kind === 'bars') {
    return html`<g class="${mark.className}">
      ${mark.bars.map(({ from, to, y, text }) => {
        const [left, right] = [toX(from), toX(to)];
        const [top, bottom] = [toY(Math.max(0, y)), toY(Math.min(0, y))];
        const size = (value: number): number => Math.max(0.5, Math.round(value * 10) / 10);
        return html`<rect
          x="${left}"
          y="${top}"
          width="${size(right - left)}"
          height="${size(bottom - top)}"
        >
          <title>${text}</title>
        </rect>`;
      })}
    </g>`;
  }
  const path =
    mark.kind === 'line' ? linePath(mark.points, toX, toY) : dotsPath(mark.points, toX, toY);
  return html`<path class="${mark.kind} ${mark.className}" d="${path}" />`;
}

/** Draws dots as lines of zero length with round ends. Dots at the same place are drawn once. */
function dotsPath(points: readonly Point[], toX: Scale, toY: Scale): string {
  const drawn = new Set<number>();
  let path = '';
  for (const point of points) {
    const [x, y] = [toX(point[0]), toY(point[1])];
    // One number for both, in tenths like the coordinates: texts would take ten times as long.
    const place = Math.round(x * 10) * 10 * WIDTH + Math.round(y * 10);
    if (drawn.has(place)) continue;
    drawn.add(place);
    path += `M${x} ${y}h0`;
  }
  return path;
}

/** Interrupted where a point is missing. */
function linePath(points: readonly (Point | null)[], toX: Scale, toY: Scale): string {
  let command = 'M';
  return points
    .map((point) => {
      const before = command;
      command = point === null ? 'M' : 'L';
      return point === null ? '' : `${before}${toX(point[0])} ${toY(point[1])}`;
    })
    .join('');
}

/** `0.105` → `10.5%`, `0.1` → `10%`. */
export function tickPercent(value: number): string {
  return formatPercent(value).replace(/\.?0+%$/, '%');
}

/**
 * An axis over the values with round ticks; it includes zero if `hasZero`. Values that no chart can draw
 * are left out.
 */
export function valueAxis(
  values: readonly number[],
  format: (value: number) => string,
  hasZero = true,
): Axis {
  const drawn = values.filter(isDrawable);
  const start = hasZero ? 0 : (drawn[0] ?? 0);
  const lowest = drawn.reduce((least, value) => Math.min(least, value), start);
  const highest = drawn.reduce((most, value) => Math.max(most, value), start);
  const span = highest - lowest || Math.abs(highest) || 1;
  const power = 10 ** Math.floor(Math.log10(span / 4));
  const step = power * [1, 2, 5, 10].find((factor) => span / (factor * power) <= 5)!;
  const first = Math.floor(lowest / step + 1e-9);
  const last = Math.ceil(highest / step - 1e-9);
  const ticks = Array.from({ length: Math.max(1, last - first) + 1 }, (_, index) => {
    const at = Number(((first + index) * step).toPrecision(12));
    return { at, label: format(at) };
  });
  return { from: ticks[0]!.at, to: ticks.at(-1)!.at, ticks };
}

/** An axis of percentages that ends at these values, with round ticks between them. */
export function rangeAxis(from: number, to: number): Axis {
  const { ticks } = valueAxis([from, to], tickPercent, false);
  return { from, to, ticks: ticks.filter(({ at }) => at >= from && at <= to) };
}

/** An axis of time, ms since the epoch, with ticks at the beginnings of years, months or days (UTC). */
export function timeAxis(from: number, to: number): Axis {
  const [start, end] = [new Date(from), new Date(to)];
  const months =
    (end.getUTCFullYear() - start.getUTCFullYear()) * 12 + end.getUTCMonth() - start.getUTCMonth();
  const at: number[] = [];
  if (months >= 3) {
    const every = [1, 2, 3, 6, 12, 24, 60, 120, 240].find((count) => months / count <= 6) ?? 600;
    const first = start.getUTCFullYear() * 12 + start.getUTCMonth();
    for (let month = Math.ceil(first / every) * every; month <= first + months; month += every) {
      at.push(Date.UTC(Math.floor(month / 12), month % 12));
    }
  }
  const ticks = at.filter((tick) => tick >= from && tick <= to);
  const texts = ticks.length > 1 ? ticks : [from, to];
  const isYearly = months > 6 * 6;
  return {
    from,
    to: Math.max(to, from + 1),
    ticks: texts.map((tick) => ({
      at: tick,
      label: new Date(tick).toISOString().slice(0, ticks.length > 1 ? (isYearly ? 4 : 7) : 10),
    })),
  };
}
