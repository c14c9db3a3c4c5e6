import type { SessionChart } from '../../../api/session-views.ts';
import type { PaperSession } from '../../../api/bot-state.ts';
import type { Point } from './equity-chart.ts';

/** Collects the equity of a session, with a resolution that bounds the memory of the page. */
export function sessionCurve() {
  const MAX_POINTS = 6000;
  let points: Point[] = [];
  let peak = -Infinity;
  /** Index of the first point that was added or changed since `takeChanged`. */
  let changed = 0;
  const push = (at: number, equity: number): void => {
    const time = at as Point['time'];
    const last = points.at(-1);
    if (last !== undefined && time < last.time) return;
    peak = Math.max(peak, equity);
    const point = { time, equity, drawdown: peak > 0 ? equity / peak - 1 : 0 };
    if (last?.time === time) points[points.length - 1] = point;
    else points.push(point);
    changed = Math.min(changed, points.length - 1);
    if (points.length <= MAX_POINTS) return;
    points = points.filter((_, i) => i % 2 === 0 || i === points.length - 1);
    changed = 0;
  };
  return {
    points: (): readonly Point[] => points,
    /** Replaces the points since the first of these times; `isWhole` replaces all. */
    put({ time, equity, drawdown }: SessionChart['equity'], isWhole: boolean): void {
      const columns = time.map((at, i) => ({
        time: at as Point['time'],
        equity: equity[i]!,
        drawdown: drawdown[i]!,
      }));
      const first = columns[0];
      const later = first && points.findIndex((point) => point.time >= first.time);
      const kept = later === undefined || later === -1 ? points.length : later;
      points = [...(isWhole ? [] : points.slice(0, kept)), ...columns];
      const last = columns.at(-1);
      if (last !== undefined) peak = last.equity / (1 + last.drawdown);
      // The chart cannot insert points between others.
      if (columns.length > 0 || isWhole) changed = 0;
    },
    add({ time, equity }: Pick<PaperSession, 'time' | 'equity'>): void {
      if (time !== null) push(Date.parse(time) / 1000, equity);
    },
    takeChanged(): number {
      const from = changed;
      changed = points.length;
      return from;
    },
  };
}
