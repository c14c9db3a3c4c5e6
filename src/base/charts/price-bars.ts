/// <reference lib="dom" />
import type * as Charts from 'lightweight-charts';
import type { Candles } from './level.ts';
import type { ChartSeries } from './chart-series.ts';
import type { ChartTools } from './chart-tools.ts';

declare const LightweightCharts: typeof Charts;
declare const chartTools: ChartTools;
declare const chartSeries: ChartSeries;

/** Adds the prices to a chart: candles, or a line where they would be too narrow or have no height. */
export function addPriceBars(chart: Charts.IChartApi, onWidth: (isNarrow: boolean) => void) {
  const { color, paint, quiet, priceFormat } = chartTools;
  /** Widest candles, px, that are drawn as a line. */
  const narrow = 3;
  const candles = chart.addSeries(LightweightCharts.CandlestickSeries, {
    ...quiet,
    borderVisible: false,
    priceFormat,
  });
  const closes = chart.addCustomSeries(chartSeries.rangeView(), {
    ...quiet,
    priceFormat,
    lineWidth: 1,
    visible: false,
  });
  let isNarrow = false;
  /** Whether the data have only closes. */
  let isFlat = false;
  const showSeries = (): void => {
    candles.applyOptions({ visible: !isNarrow && !isFlat });
    closes.applyOptions({ visible: isNarrow || isFlat });
  };
  chart.timeScale().subscribeVisibleLogicalRangeChange((range) => {
    if (range === null) return;
    const isNow = chart.timeScale().width() / (range.to - range.from) < narrow;
    if (isNow === isNarrow) return;
    isNarrow = isNow;
    showSeries();
    onWidth(isNarrow);
  });
  paint(() => {
    const [up, down] = [color('gain'), color('loss')];
    candles.applyOptions({ upColor: up, wickUpColor: up, downColor: down, wickDownColor: down });
    closes.applyOptions({ color: color('ink') });
  });
  return {
    series: [candles, closes] as const,
    draw({ time, open, high, low, close }: Candles): void {
      const rows = time.map((at, index) => ({
        time: at as Charts.UTCTimestamp,
        open: open[index]!,
        high: high[index]!,
        low: low[index]!,
        close: close[index]!,
      }));
      candles.setData(rows);
      closes.setData(rows);
      isFlat = rows.every((row) => row.low === row.high);
      showSeries();
    },
  };
}
