/// <reference lib="dom" />
import type * as Charts from 'lightweight-charts';
import type { PaperSession } from '../../../api/bot-state.ts';
import type { ChartTools } from '../../../base/charts/chart-tools.ts';
import { addTooltip } from '../../../base/charts/tooltip.ts';

declare const LightweightCharts: typeof Charts;
declare const chartTools: ChartTools;

/** A fill, or an order that came to nothing. */
export interface OrderMark {
  /** Opening of its bar, in seconds since the Unix epoch. */
  readonly time: number;
  readonly kind: 'buy' | 'sell' | 'refused';
  readonly text: string;
}

/** Marks fills and refused orders on the price series, and draws lines at the prices of working orders. */
export function addFillMarks(
  chart: Charts.IChartApi,
  element: HTMLElement,
  of: readonly Charts.ISeriesApi<'Candlestick' | 'Custom'>[],
  timeAt: (candle: number) => number | undefined,
) {
  const { color, paint, price } = chartTools;
  const appearance = {
    buy: { shape: 'arrowUp', position: 'belowBar', color: 'equity' },
    sell: { shape: 'arrowDown', position: 'aboveBar', color: 'line-1' },
    refused: { shape: 'square', position: 'aboveBar', color: 'muted' },
  } as const;
  const plugins = of.map((series) => LightweightCharts.createSeriesMarkers(series, []));
  const tooltip = addTooltip(chart, element);
  let marks: readonly OrderMark[] = [];
  let orders: PaperSession['working'] = [];
  let lines: (() => void)[] = [];

  function draw(): void {
    const shown = marks.map(({ time, kind }) => ({
      ...appearance[kind],
      time: time as Charts.UTCTimestamp,
      color: color(appearance[kind].color),
      size: kind === 'refused' ? 0.5 : 1,
    }));
    for (const plugin of plugins) plugin.setMarkers(shown);
    for (const remove of lines) remove();
    lines = orders.flatMap(({ side, type, limit, stop }) =>
      [stop, limit].flatMap((at) => {
        if (at === undefined) return [];
        const options = {
          price: at,
          color: color(side === 'buy' ? 'equity' : 'line-1'),
          lineStyle: LightweightCharts.LineStyle.Dashed,
          lineWidth: 1 as const,
          title: `${side} ${type.replace('_', ' ')} ${price(at)}`,
        };
        return of.map((series) => {
          const line = series.createPriceLine(options);
          return () => series.removePriceLine(line);
        });
      }),
    );
  }
  chart.subscribeCrosshairMove(({ logical, point }) => {
    const time = logical === undefined || point === undefined ? undefined : timeAt(logical);
    if (time === undefined) tooltip.hide();
    else tooltip.show(logical!, textsAt(time));
  });
  function textsAt(time: number): string[] {
    const most = 8;
    const texts = marks.filter((mark) => mark.time === time).map(({ text }) => text);
    const more = texts.length - most;
    return more > 0 ? [...texts.slice(0, most), `and ${more} more`] : texts;
  }
  paint(draw);
  return {
    showMarks(next: readonly OrderMark[]): void {
      marks = next;
      draw();
    },
    showOrders(next: PaperSession['working']): void {
      if (JSON.stringify(next) === JSON.stringify(orders)) return;
      orders = next;
      draw();
    },
  };
}
