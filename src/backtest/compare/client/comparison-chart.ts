/// <reference lib="dom" />
import type * as Charts from 'lightweight-charts';
import type { ChartTools } from '../../../base/charts/chart-tools.ts';
import type { OverlaidCurves } from '../overlaid-curves.ts';

declare const LightweightCharts: typeof Charts;
declare const chartTools: ChartTools;

export interface ComparisonData extends OverlaidCurves {
  /** Whether every instant is at midnight UTC, so that times of day are omitted. */
  readonly dateOnly: boolean;
  readonly labels: readonly string[];
  /** Indexes of the colors of the runs in the palette of lines. */
  readonly hues: readonly number[];
  /** Instant to mark with an arrow, seconds since the epoch. */
  readonly arrowAt?: number | undefined;
}

/** Draws the growth and the drawdown of each run into `#equity`. */
export function drawComparison(): void {
  const { percent, instant, color, chartOptions, newChart, paint, showReadings } = chartTools;
  const { time, growth, drawdown, labels, hues, arrowAt } = chartTools.data as ComparisonData;
  const element = document.querySelector<HTMLElement>('#equity');
  if (element === null) return;
  const chart = newChart(element);
  const quiet = { lastValueVisible: false, priceLineVisible: false } as const;

  function draw(
    columns: readonly (readonly (number | null)[])[],
    pane: number,
    base: number,
  ): void {
    columns.forEach((column, run) => {
      const priceFormat: Charts.PriceFormat = {
        type: 'custom',
        minMove: 0.0001,
        formatter: (value: number) => percent(value - base),
      };
      const line = chart.addSeries(
        LightweightCharts.LineSeries,
        { ...quiet, lineWidth: pane === 0 ? 2 : 1, priceFormat },
        pane,
      );
      line.setData(
        column.map((value, index) => {
          const at = time[index] as Charts.UTCTimestamp;
          return value === null ? { time: at } : { time: at, value: base + value };
        }),
      );
      paint(() => line.applyOptions({ color: color(`line-${hues[run]}`) }));
      if (arrowAt !== undefined && pane === 0 && run === 0) addArrow(line, arrowAt);
    });
  }
  function addArrow(line: Charts.ISeriesApi<'Line'>, seconds: number): void {
    const at = { time: seconds as Charts.UTCTimestamp, position: 'aboveBar' } as const;
    const plugin = LightweightCharts.createSeriesMarkers(line, []);
    paint(() => plugin.setMarkers([{ ...at, shape: 'arrowDown', color: color('ink') }]));
  }

  // A logarithmic scale needs positive values: 1 is the start.
  draw(growth, 0, 1);
  draw(drawdown, 1, 0);
  chart.panes().forEach((pane, index) => pane.setStretchFactor(index === 0 ? 0.72 : 0.28));
  paint(() => chart.applyOptions(chartOptions()));
  chart.timeScale().fitContent();
  const text = (value: number | null | undefined): string =>
    value === null || value === undefined ? '—' : percent(value);
  showReadings(
    element,
    chart,
    () => time.length,
    (index) => [
      ['', instant(time[index] as Charts.UTCTimestamp)],
      ...labels.map(
        (label, run) =>
          [label, `${text(growth[run]![index])} (${text(drawdown[run]![index])})`] as const,
      ),
    ],
  )();
}
