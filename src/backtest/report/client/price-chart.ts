/// <reference lib="dom" />
import type * as Charts from 'lightweight-charts';
import type { ChartData, ChartIndicator, ShownTrade } from './chart-data.ts';
import type { ChartSeries } from './chart-series.ts';
import type { ChartTools } from './chart-tools.ts';

declare const LightweightCharts: typeof Charts;
declare const chartTools: ChartTools;
declare const chartSeries: ChartSeries;

/** Draws `#prices` with volume, indicators and trades, and the legend with their toggles. */
export function drawPrices(): void {
  const { amount, price, instant, color, chartOptions, newChart, paint, showReadings } = chartTools;
  const data = chartTools.data as ChartData;
  const { createSeriesMarkers, CandlestickSeries, HistogramSeries, LineSeries } = LightweightCharts;
  const element = document.querySelector<HTMLElement>('#prices');
  if (element === null) return;
  const figure = element.closest('figure')!;
  const quiet = { lastValueVisible: false, priceLineVisible: false } as const;
  const priceFormat = { type: 'custom', minMove: 1e-10, formatter: price } as const;
  const volumeFormat = { type: 'volume' } as const;
  /** Widest candles, px, that are drawn as a line. */
  const narrow = 3;
  const paneHeight = 110;
  const hues = 8;
  const dashes = [[], [6, 3], [2, 3], [8, 3, 2, 3]] as const;

  let current = data.instruments[0]!;
  /** Labels of hidden indicators, of all instruments. */
  const hidden = new Set<string>();
  const chart = newChart(element);
  const candles = chart.addSeries(CandlestickSeries, {
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
  const markersOf = [createSeriesMarkers(candles, []), createSeriesMarkers(closes, [])];
  const at = (candle: number): Charts.UTCTimestamp =>
    current.candles.time[candle] as Charts.UTCTimestamp;

  // Trades

  const appearance = {
    long: { shape: 'arrowUp', position: 'belowBar', color: 'equity', text: 'long entry' },
    short: { shape: 'arrowDown', position: 'aboveBar', color: 'equity', text: 'short entry' },
    gain: { shape: 'circle', position: 'aboveBar', color: 'gain', text: 'exit' },
    loss: { shape: 'square', position: 'aboveBar', color: 'loss', text: 'exit' },
  } as const;
  let isNarrow = false;
  function mark(): void {
    const markers = current.markers.map(([candle, kind, count]) => ({
      time: at(candle),
      shape: appearance[kind].shape,
      position: appearance[kind].position,
      color: color(appearance[kind].color),
      size: isNarrow ? 0.5 : 1,
      ...(count > 1 && !isNarrow && { text: String(count) }),
    }));
    for (const plugin of markersOf) plugin.setMarkers(markers);
  }

  const signed = (value: number): string =>
    `${value > 0 ? '+' : ''}${amount(value)} ${data.currency}`;
  const tooltip = element.appendChild(document.createElement('div'));
  tooltip.className = 'tooltip';
  tooltip.hidden = true;
  tooltip.ariaLive = 'polite';
  function showTooltip(candle: number, lines: readonly string[]): void {
    const x = chart.timeScale().logicalToCoordinate(candle as Charts.Logical);
    tooltip.hidden = lines.length === 0 || x === null;
    if (tooltip.hidden) return;
    tooltip.replaceChildren(
      ...lines.map((text) => Object.assign(document.createElement('div'), { textContent: text })),
    );
    const left = Math.min(x! + 12, element!.clientWidth - tooltip.offsetWidth - 64);
    tooltip.style.left = `${Math.max(4, left)}px`;
  }
  function markerLines(candle: number): string[] {
    return current.markers
      .filter(([marked]) => marked === candle)
      .map(([, kind, count, pnl]) => {
        const what = `${count === 1 ? 'One' : count} ${appearance[kind].text}${count === 1 ? '' : 's'}`;
        return pnl === undefined ? what.replace('entrys', 'entries') : `${what}: ${signed(pnl)}`;
      });
  }

  let shownTrade: Charts.ISeriesApi<'Line'> | undefined;
  function showTrade(trade: ShownTrade): void {
    const [id, instrument, from, to, entry, exit, pnl, isOpen] = trade;
    const selector = document.querySelector<HTMLSelectElement>('#instrument');
    if (selector) selector.selectedIndex = instrument;
    if (current !== data.instruments[instrument]) show(data.instruments[instrument]!);
    const margin = Math.max(15, to - from);
    chart.timeScale().setVisibleLogicalRange({ from: from - margin, to: to + margin });
    hideTrade();
    shownTrade = chart.addSeries(LineSeries, {
      ...quiet,
      color: color(pnl < 0 ? 'loss' : 'gain'),
      lineStyle: LightweightCharts.LineStyle.Dashed,
      lineWidth: 2,
      crosshairMarkerVisible: false,
      priceFormat,
    });
    const points = [
      { time: at(from), value: entry },
      { time: at(to), value: exit },
    ];
    shownTrade.setData(from === to ? points.slice(1) : points);
    const state = isOpen === 1 ? 'open, valued at' : 'profit';
    const lines = [`Trade ${id}: ${price(entry)} → ${price(exit)}`, `${state} ${signed(pnl)}`];
    element!.scrollIntoView({ block: 'center' });
    // The chart moves to the range in its next frame.
    requestAnimationFrame(() => requestAnimationFrame(() => showTooltip(to, lines)));
  }
  function hideTrade(): void {
    if (shownTrade) chart.removeSeries(shownTrade);
    shownTrade = undefined;
  }

  // Indicators

  interface Drawn {
    readonly indicator: ChartIndicator;
    readonly lineIndex: number;
    readonly hue: number;
    readonly dash: readonly number[];
  }
  let drawn: readonly Drawn[] = [];
  let removable: Charts.ISeriesApi<Charts.SeriesType>[] = [];
  let repaintIndicators = (): void => {};

  /** Lines in order, each with a color, and with a dash pattern that differs within its pane. */
  function layOut(): void {
    const inPane = new Map<string, number>();
    let hue = 0;
    drawn = current.indicators.flatMap((indicator) =>
      indicator.lines.map(({ pane }, lineIndex) => {
        const place = inPane.get(pane) ?? 0;
        inPane.set(pane, place + 1);
        hue += 1;
        return { indicator, lineIndex, hue: hue % hues, dash: dashes[place % dashes.length]! };
      }),
    );
  }

  function drawIndicators(): void {
    for (const series of removable) chart.removeSeries(series);
    removable = [];
    const paints: (() => void)[] = [];
    const add = <T extends Charts.SeriesType>(series: Charts.ISeriesApi<T>): typeof series => {
      removable.push(series);
      return series;
    };
    const panes = new Map([['price', 0]]);
    const paneOf = (name: string): number => {
      if (!panes.has(name)) panes.set(name, panes.size);
      return panes.get(name)!;
    };
    const { volume } = current.candles;
    if (volume.some((value) => value > 0) && !hidden.has('volume')) {
      const options = { ...quiet, priceFormat: volumeFormat };
      const bars = add(chart.addSeries(HistogramSeries, options, paneOf('volume')));
      bars.setData(volume.map((value, index) => ({ time: at(index), value })));
      paints.push(() => bars.applyOptions({ color: color('volume') }));
    }
    for (const { indicator, lineIndex, hue, dash } of drawn) {
      if (hidden.has(indicator.label)) continue;
      const { pane, style, isFilled, ranges } = indicator.lines[lineIndex]!;
      const format = pane === 'volume' ? volumeFormat : priceFormat;
      const { close, low = close, high = close } = ranges;
      if (isFilled) {
        const second = indicator.lines[lineIndex + 1]!.ranges.close;
        const area = add(chart.addCustomSeries(chartSeries.areaView(), quiet, paneOf(pane)));
        area.setData(
          close.map((value, index) =>
            value === null || second[index] === null
              ? { time: at(index) }
              : { time: at(index), first: value, second: second[index]! },
          ),
        );
        paints.push(() => area.applyOptions({ color: color(`line-${hue}-fill`) }));
      }
      const options = { ...quiet, priceFormat: format, style, dash };
      const line = add(chart.addCustomSeries(chartSeries.rangeView(), options, paneOf(pane)));
      line.setData(
        close.map((value, index) =>
          value === null
            ? { time: at(index) }
            : { time: at(index), low: low[index]!, high: high[index]!, close: value },
        ),
      );
      paints.push(() => line.applyOptions({ color: color(`line-${hue}`) }));
    }
    const below = chart.panes().length - 1;
    element!.style.height = below === 0 ? '' : `calc(var(--prices) + ${below * paneHeight}px)`;
    chart.panes().forEach((pane, index) => pane.setStretchFactor(index === 0 ? 3.4 : 1));
    repaintIndicators = () => paints.forEach((apply) => apply());
    repaintIndicators();
  }

  // Legend

  const legend = figure.querySelector<HTMLElement>('.indicators')!;
  let readings: (() => void)[] = [];
  let hovered = 0;

  function key({ hue, dash }: Drawn): SVGElement {
    const name = 'http://www.w3.org/2000/svg';
    const svg = document.createElementNS(name, 'svg');
    const line = svg.appendChild(document.createElementNS(name, 'line'));
    const shape = { x1: 0, y1: 4, x2: 24, y2: 4, 'stroke-dasharray': dash.join(' ') || 'none' };
    for (const [attribute, value] of Object.entries(shape)) {
      line.setAttribute(attribute, String(value));
    }
    svg.setAttribute('class', `line-${hue}`);
    svg.setAttribute('viewBox', '0 0 24 8');
    svg.setAttribute('aria-hidden', 'true');
    return svg;
  }

  function toggle(label: string, parts: readonly (Node | string)[]): HTMLButtonElement {
    const button = document.createElement('button');
    button.type = 'button';
    button.ariaPressed = String(!hidden.has(label));
    button.append(...parts);
    button.addEventListener('click', () => {
      if (!hidden.delete(label)) hidden.add(label);
      button.ariaPressed = String(!hidden.has(label));
      drawIndicators();
    });
    return button;
  }

  function reading(text: (index: number) => string): HTMLElement {
    const value = document.createElement('output');
    readings.push(() => (value.textContent = text(hovered)));
    return value;
  }

  function drawLegend(): void {
    readings = [];
    const newElement = (tag: string, text: string): HTMLElement =>
      Object.assign(document.createElement(tag), { textContent: text });
    const entries = current.indicators.map((indicator) => {
      const own = drawn.filter((line) => line.indicator === indicator);
      const values = own.flatMap((line) => {
        const { name, pane, ranges } = indicator.lines[line.lineIndex]!;
        const value = reading((index) => {
          const found = ranges.close[index];
          if (found === null || found === undefined) return '—';
          return pane === 'volume' ? amount(found, 0) : price(found);
        });
        return [key(line), ...(name === '' ? [] : [newElement('small', name)]), value];
      });
      const name = indicator.name === '' ? [] : [newElement('b', indicator.name)];
      return toggle(indicator.label, [...name, newElement('span', indicator.label), ...values]);
    });
    const { volume } = current.candles;
    if (volume.some((value) => value > 0)) {
      const value = reading((index) => amount(volume[index] ?? 0, 0));
      entries.push(toggle('volume', [newElement('span', 'Volume'), value]));
    }
    legend.replaceChildren(...entries);
  }

  // Prices

  function drawBars(): void {
    const { time, open, high, low, close } = current.candles;
    for (const plugin of markersOf) plugin.setMarkers([]); // The old ones do not match new candles.
    const rows = time.map((_, index) => ({
      time: at(index),
      open: open[index]!,
      high: high[index]!,
      low: low[index]!,
      close: close[index]!,
    }));
    candles.setData(rows);
    closes.setData(rows);
    mark();
  }

  const showLast = showReadings(
    element,
    chart,
    () => current.candles.time.length,
    (index) => {
      const { time, open, high, low, close } = current.candles;
      hovered = index;
      for (const update of readings) update();
      return [
        ['', instant(time[index] as Charts.UTCTimestamp)],
        ['Open', price(open[index]!)],
        ['High', price(high[index]!)],
        ['Low', price(low[index]!)],
        ['Close', price(close[index]!)],
      ];
    },
  );

  function show(instrument: typeof current): void {
    current = instrument;
    hideTrade();
    tooltip.hidden = true;
    drawBars();
    layOut();
    drawIndicators();
    drawLegend();
    chart.timeScale().fitContent();
    document.querySelector('#prices-summary')!.textContent = current.summary;
    showLast();
  }

  chart.timeScale().subscribeVisibleLogicalRangeChange((range) => {
    if (range === null) return;
    const isNow = chart.timeScale().width() / (range.to - range.from) < narrow;
    if (isNow === isNarrow) return;
    isNarrow = isNow;
    candles.applyOptions({ visible: !isNarrow });
    closes.applyOptions({ visible: isNarrow });
    mark();
  });
  chart.subscribeCrosshairMove(({ logical, point }) => {
    if (logical === undefined || point === undefined) tooltip.hidden = true;
    else showTooltip(logical, markerLines(logical));
  });
  paint(() => {
    chart.applyOptions(chartOptions());
    const [up, down] = [color('gain'), color('loss')];
    candles.applyOptions({ upColor: up, wickUpColor: up, downColor: down, wickDownColor: down });
    closes.applyOptions({ color: color('ink') });
    mark();
    repaintIndicators();
  });
  show(current);
  const selector = document.querySelector<HTMLSelectElement>('#instrument');
  selector?.addEventListener('change', () => show(data.instruments[selector.selectedIndex]!));

  /** Handles the buttons of the trade table. Arrow keys move between them; only one is a tab stop. */
  function connectTrades(): void {
    const buttons = (): HTMLButtonElement[] => [
      ...document.querySelectorAll<HTMLButtonElement>('button.trade'),
    ];
    buttons().forEach((button, index) => {
      button.ariaLabel = `Show trade ${button.textContent} on the chart`;
      // The column is a single tab stop.
      button.tabIndex = index === 0 ? 0 : -1;
    });
    const body = document.querySelector('#trades tbody');
    body?.addEventListener('click', ({ target }) => {
      if (target instanceof HTMLButtonElement) showTrade(JSON.parse(target.value) as ShownTrade);
    });
    body?.addEventListener('keydown', (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[(event as KeyboardEvent).key];
      const all = buttons();
      const next = all[all.indexOf(event.target as HTMLButtonElement) + (step ?? 0)];
      if (step === undefined || next === undefined) return;
      event.preventDefault();
      for (const button of all) button.tabIndex = button === next ? 0 : -1;
      next.focus();
    });
  }
  connectTrades();
}
