/// <reference lib="dom" />
import type * as Charts from 'lightweight-charts';
import type { ChartData } from './chart-data.ts';
import type { ChartTools } from '../../../base/charts/chart-tools.ts';

declare const LightweightCharts: typeof Charts;
declare const chartTools: ChartTools;

/** Draws `#equity`. */
export function drawEquity(): void {
  const { percent, amount, instant, color, chartOptions, newChart, paint, quiet, showReadings } =
    chartTools;
  const { AreaSeries, LineSeries } = LightweightCharts;
  const element = document.querySelector<HTMLElement>('#equity');
  if (element === null) return;
  const { curve, benchmark: benchmarkName } = chartTools.data as ChartData;
  const { time, equity, drawdown, benchmark } = curve;
  const chart = newChart(element);
  const points = (column: readonly number[]): Charts.LineData[] =>
    column.map((value, index) => ({ time: time[index] as Charts.UTCTimestamp, value }));
  const money: Charts.PriceFormat = {
    type: 'custom',
    minMove: 0.01,
    formatter: (value: number) => amount(value, Math.abs(value) >= 1000 ? 0 : 2),
  };

  if (benchmark !== undefined) {
    const line = chart.addSeries(LineSeries, { ...quiet, lineWidth: 1, priceFormat: money });
    line.setData(points(benchmark));
    paint(() => line.applyOptions({ color: color('benchmark') }));
  }
  const equityArea = chart.addSeries(AreaSeries, { ...quiet, lineWidth: 2, priceFormat: money });
  equityArea.setData(points(equity));
  const drawdownArea = chart.addSeries(
    AreaSeries,
    {
      ...quiet,
      lineWidth: 1,
      invertFilledArea: true,
      priceFormat: { type: 'custom', minMove: 0.0001, formatter: percent },
    },
    1,
  );
  drawdownArea.setData(points(drawdown));
  const [equityPane, drawdownPane] = chart.panes();
  drawdownPane!.priceScale('right').applyOptions({ scaleMargins: { top: 0.1, bottom: 0.1 } });
  equityPane!.setStretchFactor(0.72);
  drawdownPane!.setStretchFactor(0.28);
  paint(() => {
    chart.applyOptions(chartOptions());
    equityArea.applyOptions({
      lineColor: color('equity'),
      topColor: color('equity-fill'),
      bottomColor: color('equity-fade'),
    });
    drawdownArea.applyOptions({
      lineColor: color('loss'),
      topColor: color('loss-fade'),
      bottomColor: color('loss-fill'),
    });
  });
  chart.timeScale().fitContent();
  const showLast = showReadings(
    element,
    chart,
    () => time.length,
    (index) => [
      ['', instant(time[index] as Charts.UTCTimestamp)],
      ['Equity', amount(equity[index]!)],
      ['Drawdown', percent(drawdown[index]!)],
      ...(benchmark ? ([[benchmarkName, amount(benchmark[index]!)]] as const) : []),
    ],
  );
  showLast();

  showLinkedPoint(chart, equityArea, time, equity, showLast);
}

/** Zooms to the time that the fragment of the address names in seconds, such as `#at=951955200`. */
export function showLinkedPoint(
  chart: Charts.IChartApi,
  series: Charts.ISeriesApi<'Area'>,
  time: readonly number[],
  values: readonly number[],
  onShown: (index: number) => void,
): void {
  const [, seconds] = /^#at=(\d{1,12})$/.exec(location.hash) ?? [];
  if (seconds === undefined) return;
  const index = Math.max(
    0,
    time.findLastIndex((one) => one <= Number(seconds)),
  );
  const margin = Math.max(15, time.length / 20);
  const range = { from: index - margin, to: index + margin };
  const steps = [
    () => chart.timeScale().setVisibleLogicalRange(range),
    () => chart.chartElement().scrollIntoView({ block: 'center' }),
    () => {
      chart.setCrosshairPosition(values[index]!, time[index] as Charts.UTCTimestamp, series);
      onShown(index);
    },
  ];
  // The page has its layout by the next frame, and the chart moves to the range in the one after it.
  const run = ([step, ...rest]: readonly (() => void)[]): void => {
    if (step === undefined) return;
    requestAnimationFrame(() => {
      step();
      run(rest);
    });
  };
  run(steps);
}
