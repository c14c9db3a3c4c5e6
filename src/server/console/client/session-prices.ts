/// <reference lib="dom" />
import type * as Charts from 'lightweight-charts';
import type { SessionChart } from '../../../api/session-views.ts';
import { addIndicatorLines, styleLines } from '../../../base/charts/indicator-lines.ts';
import { drawLegend } from '../../../base/charts/indicator-legend.ts';
import { addPriceBars } from '../../../base/charts/price-bars.ts';
import type { ChartIndicator } from '../../../base/charts/level.ts';
import type { ChartTools } from '../../../base/charts/chart-tools.ts';
import { addFillMarks } from './fill-marks.ts';

declare const chartTools: ChartTools;

/** Draws the prices of a session with volume, indicators, fills and working orders. */
export function sessionPrices(element: HTMLElement) {
  const { chartOptions, instant, newChart, paint, price, showReadings } = chartTools;
  const legend = element.closest('figure')!.querySelector<HTMLElement>('.indicators')!;
  const chart = newChart(element);
  const bars = addPriceBars(chart, () => {});
  const drawIndicators = addIndicatorLines(chart, element);
  const candles = {
    barsPerCandle: 1,
    time: [] as number[],
    open: [] as number[],
    high: [] as number[],
    low: [] as number[],
    close: [] as number[],
    volume: [] as number[],
  };
  const level = { candles, ranges: [] as { close: (number | null)[] }[], markers: [] };
  const hidden = new Set<string>();
  let indicators: readonly ChartIndicator[] = [];
  let hasVolume = false;
  let updateLegend: (candle: number) => void = () => {};
  paint(() => chart.applyOptions(chartOptions()));
  const marks = addFillMarks(chart, element, bars.series, (candle) => candles.time[candle]);

  const showLast = showReadings(
    element,
    chart,
    () => candles.time.length,
    (at) => {
      updateLegend(at);
      return [
        ['', instant(candles.time[at] as Charts.UTCTimestamp)],
        ['Open', price(candles.open[at]!)],
        ['High', price(candles.high[at]!)],
        ['Low', price(candles.low[at]!)],
        ['Close', price(candles.close[at]!)],
      ];
    },
  );
  function redraw(): void {
    drawIndicators(level, styleLines(indicators), hidden);
    showLast();
  }
  /** Drawn again only if its entries change, so that it keeps the focus of the keyboard. */
  function makeLegend(): void {
    const lines = styleLines(indicators);
    updateLegend = drawLegend(legend, level, lines, hidden, redraw);
  }
  /** Adds the bar of a new time; older bars are ignored. */
  function add(time: number, values: readonly number[]): void {
    if (time <= (candles.time.at(-1) ?? -Infinity)) return;
    const [open, high, low, close, volume] = values as [number, number, number, number, number];
    candles.time.push(time);
    candles.open.push(open);
    candles.high.push(high);
    candles.low.push(low);
    candles.close.push(close);
    candles.volume.push(volume);
    for (const range of level.ranges) range.close.push(null);
    const row = { time: time as Charts.UTCTimestamp, open, high, low, close };
    for (const series of bars.series) series.update(row);
  }

  return {
    chart,
    element,
    marks,
    times: (): readonly number[] => candles.time,
    /** Points at the bar of a time, in seconds since the Unix epoch. */
    showAt(time: number): void {
      const at = candles.time.findLastIndex((one) => one <= time);
      if (at === -1) return;
      const [series] = bars.series;
      chart.setCrosshairPosition(
        candles.close[at]!,
        candles.time[at] as Charts.UTCTimestamp,
        series,
      );
      showLast(at);
    },
    /** Replaces everything. */
    start(next: SessionChart): void {
      for (const column of ['time', 'open', 'high', 'low', 'close', 'volume'] as const) {
        candles[column] = [...next.candles[column]];
      }
      indicators = next.indicators.map(({ lines, ...one }) => ({
        ...one,
        lines: lines.map(({ is_filled: isFilled, ...line }) => ({ ...line, isFilled })),
      }));
      level.ranges = next.lines.map((values) => ({ close: [...values] }));
      hasVolume = candles.volume.some((value) => value > 0);
      bars.draw(candles);
      makeLegend();
      redraw();
    },
    add,
    /**
     * Sets the values of indicators that were computed since.
     * @returns false if the chart must be drawn from its start, because it has other indicators now.
     */
    complete({ candles: next, lines }: SessionChart): boolean {
      if (lines.length !== level.ranges.length) return false;
      const { time, open, high, low, close, volume } = next;
      // The events of the newest bars may arrive later than this answer.
      time.forEach((at, i) => add(at, [open[i]!, high[i]!, low[i]!, close[i]!, volume[i]!]));
      const first = candles.time.indexOf(time[0] ?? Number.NaN);
      if (first === -1) return true;
      lines.forEach((values, line) =>
        level.ranges[line]!.close.splice(first, values.length, ...values),
      );
      if (!hasVolume && volume.some((value) => value > 0)) {
        hasVolume = true;
        makeLegend();
      }
      redraw();
      return true;
    },
  };
}
