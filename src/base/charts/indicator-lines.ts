/// <reference lib="dom" />
import type * as Charts from 'lightweight-charts';
import type { ChartIndicator, Level } from './level.ts';
import type { ChartSeries } from './chart-series.ts';
import type { ChartTools } from './chart-tools.ts';

declare const LightweightCharts: typeof Charts;
declare const chartTools: ChartTools;
declare const chartSeries: ChartSeries;

/** A line of an indicator, with its place among all lines, its color and its dash pattern. */
export interface StyledLine {
  readonly indicator: ChartIndicator;
  readonly lineIndex: number;
  readonly index: number;
  readonly hue: number;
  readonly dash: readonly number[];
}

/** Gives each line a color, and a dash pattern that differs within its pane. */
export function styleLines(indicators: readonly ChartIndicator[]): StyledLine[] {
  const hues = 8;
  const dashes = [[], [6, 3], [2, 3], [8, 3, 2, 3]] as const;
  const inPane = new Map<string, number>();
  let index = -1;
  return indicators.flatMap((indicator) =>
    indicator.lines.map(({ pane }, lineIndex) => {
      const place = inPane.get(pane) ?? 0;
      inPane.set(pane, place + 1);
      index += 1;
      const dash = dashes[place % dashes.length]!;
      return { indicator, lineIndex, index, hue: (index + 1) % hues, dash };
    }),
  );
}

/** Adds the volume of each candle to a pane. */
export function addVolumeBars(
  chart: Charts.IChartApi,
  { time, volume }: Level['candles'],
  pane: number,
): Charts.ISeriesApi<'Histogram'> {
  const { quiet, volumeFormat } = chartTools;
  const options = { ...quiet, priceFormat: volumeFormat };
  const bars = chart.addSeries(LightweightCharts.HistogramSeries, options, pane);
  bars.setData(volume.map((value, index) => ({ time: time[index] as Charts.UTCTimestamp, value })));
  return bars;
}

/** Returns a function that draws the volume and indicators, except hidden ones, in panes below the prices. */
export function addIndicatorLines(chart: Charts.IChartApi, element: HTMLElement) {
  const { color, paint, quiet, priceFormat, volumeFormat } = chartTools;
  const paneHeight = 110;
  let removable: Charts.ISeriesApi<Charts.SeriesType>[] = [];
  let paints: (() => void)[] = [];
  const panes = new Map<string, number>();
  const paneOf = (name: string): number => {
    if (!panes.has(name)) panes.set(name, panes.size);
    return panes.get(name)!;
  };
  const add = <T extends Charts.SeriesType>(series: Charts.ISeriesApi<T>): typeof series => {
    removable.push(series);
    return series;
  };

  function drawLine({ indicator, lineIndex, index, hue, dash }: StyledLine, level: Level): void {
    const { pane, style, isFilled } = indicator.lines[lineIndex]!;
    const { close, low = close, high = close } = level.ranges[index]!;
    const at = (candle: number) => level.candles.time[candle] as Charts.UTCTimestamp;
    if (isFilled) {
      const second = level.ranges[index + 1]!.close;
      const area = add(chart.addCustomSeries(chartSeries.areaView(), quiet, paneOf(pane)));
      area.setData(
        close.map((value, candle) =>
          value === null || second[candle] === null
            ? { time: at(candle) }
            : { time: at(candle), first: value, second: second[candle]! },
        ),
      );
      paints.push(() => area.applyOptions({ color: color(`line-${hue}-fill`) }));
    }
    const format = pane === 'volume' ? volumeFormat : priceFormat;
    const options = { ...quiet, priceFormat: format, style, dash };
    const line = add(chart.addCustomSeries(chartSeries.rangeView(), options, paneOf(pane)));
    line.setData(
      close.map((value, candle) =>
        value === null
          ? { time: at(candle) }
          : { time: at(candle), low: low[candle]!, high: high[candle]!, close: value },
      ),
    );
    paints.push(() => line.applyOptions({ color: color(`line-${hue}`) }));
  }

  const repaint = (): void => paints.forEach((apply) => apply());
  paint(repaint);
  return (level: Level, lines: readonly StyledLine[], hidden: ReadonlySet<string>): void => {
    for (const series of removable) chart.removeSeries(series);
    removable = [];
    paints = [];
    panes.clear();
    panes.set('price', 0);
    const hasVolume = level.candles.volume.some((value) => value > 0);
    if (hasVolume && !hidden.has('volume')) {
      const bars = add(addVolumeBars(chart, level.candles, paneOf('volume')));
      paints.push(() => bars.applyOptions({ color: color('volume') }));
    }
    for (const line of lines) if (!hidden.has(line.indicator.label)) drawLine(line, level);
    const below = chart.panes().length - 1;
    element.style.height = below === 0 ? '' : `calc(var(--prices) + ${below * paneHeight}px)`;
    chart.panes().forEach((pane, index) => pane.setStretchFactor(index === 0 ? 3.4 : 1));
    repaint();
  };
}
