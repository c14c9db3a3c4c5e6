/// <reference lib="dom" />
import type * as Charts from 'lightweight-charts';
import type { ChartData, ShownTrade } from './chart-data.ts';
import type { Level } from '../../../base/charts/level.ts';
import type { ChartTools } from '../../../base/charts/chart-tools.ts';

declare const LightweightCharts: typeof Charts;
declare const chartTools: ChartTools;
declare const addTooltip: typeof import('../../../base/charts/tooltip.ts').addTooltip;

type MarkedSeries = readonly (Charts.ISeriesApi<'Candlestick'> | Charts.ISeriesApi<'Custom'>)[];

/** The line of a trade from its entry to its exit. */
export function tradeLine(chart: Charts.IChartApi, pnl: number): Charts.ISeriesApi<'Line'> {
  const { color, quiet, priceFormat } = chartTools;
  return chart.addSeries(LightweightCharts.LineSeries, {
    ...quiet,
    color: color(pnl < 0 ? 'loss' : 'gain'),
    lineStyle: LightweightCharts.LineStyle.Dashed,
    lineWidth: 2,
    crosshairMarkerVisible: false,
    priceFormat,
  });
}

/**
 * The entries and exits of a level, smaller and without their number where candles are narrow. There,
 * more than `MOST_NARROW_MARKS` of `price-charts.ts` would cover the prices.
 */
export function marksOf({ candles, markers }: Level, isNarrow: boolean) {
  const { color } = chartTools;
  const appearance = {
    long: { shape: 'arrowUp', position: 'belowBar', color: 'equity' },
    short: { shape: 'arrowDown', position: 'aboveBar', color: 'equity' },
    gain: { shape: 'circle', position: 'aboveBar', color: 'gain' },
    loss: { shape: 'square', position: 'aboveBar', color: 'loss' },
  } as const;
  if (isNarrow && markers.length > 1000) return [];
  return markers.map(([candle, kind, count]) => ({
    ...appearance[kind],
    time: candles.time[candle] as Charts.UTCTimestamp,
    color: color(appearance[kind].color),
    size: isNarrow ? 0.5 : 1,
    ...(count > 1 && !isNarrow && { text: String(count) }),
  }));
}

/** Adds entries and exits to the series, a tooltip with their profits, and the line of a chosen trade. */
export function addTradeMarks(chart: Charts.IChartApi, element: HTMLElement, of: MarkedSeries) {
  const { amount, price, paint } = chartTools;
  const { currency } = chartTools.data as ChartData;
  const plugins = of.map((series) => LightweightCharts.createSeriesMarkers(series as never, []));
  const tooltip = addTooltip(chart, element);
  let level: Level | undefined;
  let isNarrow = false;
  const at = (candle: number): Charts.UTCTimestamp =>
    level!.candles.time[candle] as Charts.UTCTimestamp;
  function mark(): void {
    const markers = level === undefined ? [] : marksOf(level, isNarrow);
    for (const plugin of plugins) plugin.setMarkers(markers);
  }
  const signed = (value: number): string => `${value > 0 ? '+' : ''}${amount(value)} ${currency}`;
  function linesOf(candle: number): string[] {
    return (level?.markers ?? [])
      .filter(([marked]) => marked === candle)
      .map(([, kind, count, pnl]) => {
        const number = count === 1 ? 'One' : count;
        if (pnl !== undefined) return `${number} exit${count === 1 ? '' : 's'}: ${signed(pnl)}`;
        return `${number} ${kind} ${count === 1 ? 'entry' : 'entries'}`;
      });
  }
  chart.subscribeCrosshairMove(({ logical, point }) => {
    if (logical === undefined || point === undefined) tooltip.hide();
    else tooltip.show(logical, linesOf(logical));
  });
  paint(mark);

  let line: Charts.ISeriesApi<'Line'> | undefined;
  function hideTrade(): void {
    if (line) chart.removeSeries(line);
    line = undefined;
    tooltip.hide();
  }
  return {
    narrow(isNow: boolean): void {
      isNarrow = isNow;
      mark();
    },
    /** Removes the marks of the level before, whose times the series may no longer have. */
    clear(): void {
      hideTrade();
      for (const plugin of plugins) plugin.setMarkers([]);
    },
    draw(shown: Level): void {
      level = shown;
      mark();
    },
    /** Draws a line from the entry to the exit, in the candles `from` and `to`. */
    showTrade([id, , , , entry, exit, pnl, isOpen]: ShownTrade, from: number, to: number): void {
      hideTrade();
      line = tradeLine(chart, pnl);
      const points = [
        { time: at(from), value: entry },
        { time: at(to), value: exit },
      ];
      line.setData(from === to ? points.slice(1) : points);
      const state = isOpen === 1 ? 'open, valued at' : 'profit';
      const texts = [`Trade ${id}: ${price(entry)} → ${price(exit)}`, `${state} ${signed(pnl)}`];
      // The chart moves to the range in its next frame.
      requestAnimationFrame(() => requestAnimationFrame(() => tooltip.show(to, texts)));
    },
  };
}
