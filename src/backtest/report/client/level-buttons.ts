/// <reference lib="dom" />
import type * as Charts from 'lightweight-charts';
import type { Level } from '../../../base/charts/level.ts';

/** Times in seconds since the Unix epoch. */
export interface TimeRange {
  readonly from: number;
  readonly to: number;
  readonly center: number;
}

/** The first and the last visible time of a level. */
export function visibleTimes(chart: Charts.IChartApi, { candles: { time } }: Level): TimeRange {
  const at = (index: number): number =>
    time[Math.min(time.length - 1, Math.max(0, Math.round(index)))]!;
  const { from, to } = chart.timeScale().getVisibleLogicalRange() ?? { from: 0, to: 0 };
  return { from: at(from), to: at(to), center: at((from + to) / 2) };
}

/** The stretch of single bars that is nearest to the center of the visible times. */
export function nearestStretch(
  stretches: readonly Level[],
  { center }: TimeRange,
): Level | undefined {
  const distance = ({ candles }: Level): number =>
    Math.max(candles.time[0]! - center, center - candles.time.at(-1)!, 0);
  return stretches.reduce<Level | undefined>(
    (best, each) => (best === undefined || distance(each) < distance(best) ? each : best),
    undefined,
  );
}

/** The stretch that zooming in to the overview shows, unless the candles are still too many. */
export function closerStretch(
  stretches: readonly Level[],
  chart: Charts.IChartApi,
  overview: Level,
): Level | undefined {
  const times = visibleTimes(chart, overview);
  const next = nearestStretch(stretches, times);
  if (next === undefined) return undefined;
  const { time } = next.candles;
  const isVisible = time[0]! <= times.to && time.at(-1)! >= times.from;
  const { from, to } = chart.timeScale().getVisibleLogicalRange()!;
  // A stretch outside of the visible times is too far away until the candles are few.
  return to - from < (isVisible ? 400 : 24) ? next : undefined;
}

/**
 * Connects the buttons of a chart with its levels of detail: zooming in far or pressing `.single` shows
 * the nearest single bars, "Earlier" and "Later" at their edge show the next ones, and zooming out of
 * them or "All" shows the overview.
 *
 * @returns updates the buttons after another level is drawn
 */
export function connectLevels(
  chart: Charts.IChartApi,
  figure: HTMLElement,
  read: () => { level: Level; overview: Level; stretches: readonly Level[] },
  show: (level: Level) => void,
): () => void {
  /** Number of candles around the single bars that zooming out shows. */
  const around = 24;
  const scale = chart.timeScale();
  const button = figure.querySelector<HTMLButtonElement>('.single');

  function nearest(): Level | undefined {
    const { level, stretches } = read();
    return nearestStretch(stretches, visibleTimes(chart, level));
  }

  function showOverview(): void {
    const { level, overview } = read();
    const start = level.candles.time[0]!;
    show(overview);
    const at = overview.candles.time.findLastIndex((time) => time <= start);
    scale.setVisibleLogicalRange({ from: at - around, to: at + around });
  }

  /** Whether the action changed the level, instead of the range within it. */
  function isHandled(action: string): boolean {
    const { level, overview, stretches } = read();
    const range = scale.getVisibleLogicalRange();
    if (range === null || stretches.length === 0) return false;
    const isFar = range.to - range.from >= level.candles.time.length - 2;
    if (level === overview) {
      const next = action === 'closer' ? closerStretch(stretches, chart, level) : undefined;
      if (next !== undefined) show(next);
      return next !== undefined;
    }
    if (action === 'all') show(overview);
    else if (action === 'wider' && isFar) showOverview();
    else {
      const isAtEnd = range.to >= level.candles.time.length - 1.5;
      const step = { earlier: range.from <= 0.5 ? -1 : 0, later: isAtEnd ? 1 : 0 }[action];
      const neighbor = step ? stretches[stretches.indexOf(level) + step] : undefined;
      if (neighbor === undefined) return false;
      show(neighbor);
    }
    return true;
  }
  figure.querySelector('.range')!.addEventListener(
    'click',
    (event) => {
      const { target } = event;
      if (target instanceof HTMLButtonElement && isHandled(target.value)) event.stopPropagation();
    },
    { capture: true },
  );
  button?.addEventListener('click', () => {
    const { level, overview } = read();
    if (level !== overview) showOverview();
    else show(nearest() ?? overview);
  });
  return () => {
    if (button === null) return;
    const { level, overview, stretches } = read();
    button.hidden = stretches.length === 0;
    button.ariaPressed = String(level !== overview);
  };
}
