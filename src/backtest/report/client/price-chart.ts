/// <reference lib="dom" />
import type * as Charts from 'lightweight-charts';
import type { ChartData, ShownTrade } from './chart-data.ts';
import type { Candles, Level } from '../../../base/charts/level.ts';
import type { ChartTools } from '../../../base/charts/chart-tools.ts';

declare const chartTools: ChartTools;
declare const unpackLevels: typeof import('./unpack-levels.ts').unpackLevels;
declare const addPriceBars: typeof import('../../../base/charts/price-bars.ts').addPriceBars;
declare const addTradeMarks: typeof import('./trade-marks.ts').addTradeMarks;
declare const addIndicatorLines: typeof import('../../../base/charts/indicator-lines.ts').addIndicatorLines;
declare const styleLines: typeof import('../../../base/charts/indicator-lines.ts').styleLines;
declare const drawLegend: typeof import('../../../base/charts/indicator-legend.ts').drawLegend;
declare const connectLevels: typeof import('./level-buttons.ts').connectLevels;
declare const connectTrades: typeof import('./trade-buttons.ts').connectTrades;

/** The values of a candle, with their labels. */
export function readCandle(
  { barsPerCandle, time, open, high, low, close }: Candles,
  candle: number,
  hasLevels: boolean,
): (readonly [label: string, value: string])[] {
  const { price, instant } = chartTools;
  return [
    ['', instant(time[candle] as Charts.UTCTimestamp)],
    ['Open', price(open[candle]!)],
    ['High', price(high[candle]!)],
    ['Low', price(low[candle]!)],
    ['Close', price(close[candle]!)],
    ...(hasLevels ? ([['Bars per candle', String(barsPerCandle)]] as const) : []),
  ];
}

/** The single bars that include both times, in seconds since the Unix epoch. */
export function stretchWith(
  stretches: readonly Level[],
  from: number,
  to: number,
): Level | undefined {
  return stretches.find(({ candles: { time } }) => time[0]! <= from && to <= time.at(-1)!);
}

/** Index of the candle that contains a time, in seconds since the Unix epoch. */
export function candleOf({ candles }: Level, seconds: number): number {
  return Math.max(
    0,
    candles.time.findLastIndex((time) => time <= seconds),
  );
}

/**
 * The trade that the fragment of the address names, as JSON with the symbol instead of the index of
 * the instrument, such as `#trade=[12,"SPX",…]`.
 */
export function tradeOfHash(
  hash: string,
  instruments: readonly { readonly symbol: string }[],
): ShownTrade | undefined {
  if (!hash.startsWith('#trade=')) return undefined;
  let named: unknown;
  try {
    named = JSON.parse(decodeURIComponent(hash.slice('#trade='.length)));
  } catch {
    return undefined;
  }
  if (!Array.isArray(named) || named.length !== 8) return undefined;
  const [id, symbol, ...numbers] = named as unknown[];
  const index = instruments.findIndex((one) => one.symbol === symbol);
  const all = [id, index, ...numbers];
  const isTrade = index >= 0 && all.every((value) => Number.isFinite(value));
  return isTrade ? (all as unknown as ShownTrade) : undefined;
}

/** Draws `#prices` with volume, indicators and trades, and connects what the reader can choose. */
export function drawPrices(): void {
  const { chartOptions, newChart, paint, showReadings } = chartTools;
  const { instruments } = chartTools.data as ChartData;
  const element = document.querySelector<HTMLElement>('#prices');
  if (element === null) return;
  const figure = element.closest('figure')!;
  const legend = figure.querySelector<HTMLElement>('.indicators')!;
  const chart = newChart(element);
  const bars = addPriceBars(chart, (isNarrow) => marks.narrow(isNarrow));
  const marks = addTradeMarks(chart, element, bars.series);
  const drawIndicators = addIndicatorLines(chart, element);
  /** Labels of hidden indicators, of all instruments. */
  const hidden = new Set<string>();
  let current = instruments[0]!;
  let levels = unpackLevels(current);
  let level = levels.overview;
  let updateLegend: (candle: number) => void;
  paint(() => chart.applyOptions(chartOptions()));

  function show(next: Level): void {
    level = next;
    marks.clear();
    bars.draw(level.candles);
    marks.draw(level);
    const lines = styleLines(current.indicators);
    const draw = (): void => drawIndicators(level, lines, hidden);
    draw();
    updateLegend = drawLegend(legend, level, lines, hidden, draw);
    chart.timeScale().fitContent();
    updateButtons();
    showLast();
  }
  function choose(index: number): void {
    current = instruments[index]!;
    levels = unpackLevels(current);
    document.querySelector('#prices-summary')!.textContent = current.summary;
    show(levels.overview);
  }
  const showLast = showReadings(
    element,
    chart,
    () => level.candles.time.length,
    (candle) => {
      updateLegend(candle);
      return readCandle(level.candles, candle, levels.stretches.length > 0);
    },
  );
  const updateButtons = connectLevels(chart, figure, () => ({ level, ...levels }), show);
  const selector = document.querySelector<HTMLSelectElement>('#instrument');
  selector?.addEventListener('change', () => choose(selector.selectedIndex));

  function showTrade(trade: ShownTrade): void {
    const [, instrument, entered, exited] = trade;
    if (selector) selector.selectedIndex = instrument;
    if (current !== instruments[instrument]) choose(instrument);
    show(stretchWith(levels.stretches, entered, exited) ?? levels.overview);
    const [from, to] = [entered, exited].map((time) => candleOf(level, time)) as [number, number];
    const margin = Math.max(15, to - from);
    chart.timeScale().setVisibleLogicalRange({ from: from - margin, to: to + margin });
    marks.showTrade(trade, from, to);
    element!.scrollIntoView({ block: 'center' });
  }
  choose(0);
  connectTrades(showTrade);
  const asked = tradeOfHash(location.hash, instruments);
  // The page has its layout by the next frame.
  if (asked !== undefined) requestAnimationFrame(() => showTrade(asked));
}
