/// <reference lib="dom" />
import type * as Charts from 'lightweight-charts';
import type { ChartTools } from '../../../base/charts/chart-tools.ts';

declare const LightweightCharts: typeof Charts;
declare const chartTools: ChartTools;

/**
 * Equity after a step; `time` in seconds since the Unix epoch, `drawdown` as a share, at most 0.
 */
export interface Point {
  readonly time: Charts.UTCTimestamp;
  readonly equity: number;
  readonly drawdown: number;
}

/** Draws equity and, in a pane below, drawdown, in the colors of the page. */
export function equityChart(element: HTMLElement) {
  const { amount, chartOptions, color, instant, newChart, paint, percent, quiet, showReadings } =
    chartTools;
  const { AreaSeries } = LightweightCharts;
  /** With more new points than this, all points are set again. */
  const MAX_UPDATES = 50;
  const money = {
    type: 'custom',
    minMove: 0.01,
    formatter: (value: number) => amount(value, Math.abs(value) >= 1000 ? 0 : 2),
  } as const;
  const share = { type: 'custom', minMove: 0.0001, formatter: percent } as const;
  const chart = newChart(element);
  const above = chart.addSeries(AreaSeries, { ...quiet, lineWidth: 2, priceFormat: money });
  const below = chart.addSeries(
    AreaSeries,
    { ...quiet, lineWidth: 1, invertFilledArea: true, priceFormat: share },
    1,
  );
  const [equityPane, drawdownPane] = chart.panes();
  equityPane!.setStretchFactor(0.68);
  drawdownPane!.setStretchFactor(0.32);
  drawdownPane!.priceScale('right').applyOptions({ scaleMargins: { top: 0.1, bottom: 0.1 } });
  paint(() => {
    chart.applyOptions(chartOptions());
    above.applyOptions({
      lineColor: color('equity'),
      topColor: color('equity-fill'),
      bottomColor: color('equity-fade'),
    });
    below.applyOptions({
      lineColor: color('loss'),
      topColor: color('loss-fade'),
      bottomColor: color('loss-fill'),
    });
  });
  let points: readonly Point[] = [];
  const showLast = showReadings(
    element,
    chart,
    () => points.length,
    (at) => {
      const point = points[at]!;
      return [
        ['', instant(point.time)],
        ['Equity', amount(point.equity)],
        ['Drawdown', percent(point.drawdown)],
      ];
    },
  );
  return {
    chart,
    element,
    /** Points at the step of a time, in seconds since the Unix epoch. */
    showAt(time: number): void {
      const at = points.findLastIndex((point) => point.time <= time);
      if (at === -1) return;
      chart.setCrosshairPosition(points[at]!.equity, points[at]!.time, above);
      showLast(at);
    },
    /** @param from index of the first point that is new or changed since the last call. */
    show(next: readonly Point[], from: number): void {
      points = next;
      const equityAt = ({ time, equity: value }: Point): Charts.LineData => ({ time, value });
      const drawdownAt = ({ time, drawdown: value }: Point): Charts.LineData => ({ time, value });
      if (from === 0 || points.length - from > MAX_UPDATES) {
        above.setData(points.map(equityAt));
        below.setData(points.map(drawdownAt));
      } else {
        for (const point of points.slice(from)) {
          above.update(equityAt(point));
          below.update(drawdownAt(point));
        }
      }
      showLast();
    },
  };
}
