/// <reference lib="dom" />
import type * as Charts from 'lightweight-charts';
import type { Candles, Curve, Marker } from '../series.ts';

/** Data of the page's charts, embedded in the page as JSON. */
export interface ChartData {
  /** Whether every step is at midnight UTC, so that times of day are omitted. */
  readonly dateOnly: boolean;
  readonly curve: Curve;
  /** In the order of the options of `#instrument`. */
  readonly instruments: readonly PriceChart[];
}

export interface PriceChart {
  readonly symbol: string;
  readonly candles: Candles;
  readonly markers: readonly Marker[];
  /** Text alternative of the chart. */
  readonly summary: string;
}

/** Defined by the library's bundle, which the page contains before this function. */
declare const LightweightCharts: typeof Charts;

/** Draws `#equity` and `#prices` from the page's data, and updates their colors with the theme. */
export function drawCharts(): void {
  const data = JSON.parse(document.querySelector('#data')!.textContent) as ChartData;
  const {
    createChart,
    createSeriesMarkers,
    AreaSeries,
    CandlestickSeries,
    ColorType,
    CrosshairMode,
    LineSeries,
    TickMarkType,
  } = LightweightCharts;

  const percent = (value: number): string => `${(value * 100).toFixed(1).replace('-', '−')}%`;
  const amount = (value: number, digits = 2): string =>
    value
      .toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits })
      .replace('-', '−');
  /** Six significant digits and at least two decimals, as `formatPrice`. */
  const price = (value: number): string =>
    value.toLocaleString('en-US', {
      minimumFractionDigits: 2,
      maximumFractionDigits: Math.min(12, Math.max(2, 5 - Math.floor(Math.log10(Math.abs(value))))),
    });
  const instant = (time: Charts.Time): string => {
    const text = new Date((time as number) * 1000).toISOString();
    return data.dateOnly ? text.slice(0, 10) : text.slice(0, 19).replace('T', ' ');
  };

  const tick = (time: Charts.Time, kind: Charts.TickMarkType): string => {
    const text = new Date((time as number) * 1000).toISOString();
    if (kind === TickMarkType.Year) return text.slice(0, 4);
    if (kind === TickMarkType.Month) return text.slice(0, 7);
    if (kind === TickMarkType.DayOfMonth) return text.slice(5, 10);
    return text.slice(11, kind === TickMarkType.Time ? 16 : 19);
  };

  const probe = document.body.appendChild(document.createElement('span'));
  probe.hidden = true;
  /** Resolves a CSS variable, because a canvas does not support them. */
  const color = (name: string): string => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };

  const chartOptions = (): Charts.DeepPartial<Charts.TimeChartOptions> => ({
    layout: {
      background: { type: ColorType.Solid, color: color('paper') },
      textColor: color('muted'),
      fontFamily: getComputedStyle(document.body).fontFamily,
      panes: { enableResize: false, separatorColor: color('rule') },
      attributionLogo: false, // The footer of the page has the attribution.
    },
    grid: { vertLines: { visible: false }, horzLines: { color: color('rule') } },
    crosshair: {
      mode: CrosshairMode.Normal,
      vertLine: { color: color('muted'), labelBackgroundColor: color('label') },
      horzLine: { color: color('muted'), labelBackgroundColor: color('label') },
    },
  });
  const newChart = (element: HTMLElement): Charts.IChartApi => {
    const chart = createChart(element, {
      ...chartOptions(),
      autoSize: true,
      localization: { locale: 'en-GB', timeFormatter: instant },
      rightPriceScale: {
        borderVisible: false,
        entireTextOnly: true,
        scaleMargins: { top: 0.06, bottom: 0.06 },
      },
      timeScale: {
        borderVisible: false,
        timeVisible: !data.dateOnly,
        tickMarkFormatter: tick,
        tickMarkMaxCharacterLength: 6,
        minBarSpacing: 0.01,
        fixLeftEdge: true,
        fixRightEdge: true,
      },
      // The wheel and vertical swipes scroll the page; dragging and the buttons move a chart.
      handleScroll: { mouseWheel: false, vertTouchDrag: false },
      handleScale: { mouseWheel: false },
    });
    connectRangeButtons(element.closest('figure')!, chart);
    printAsPicture(element, chart);
    return chart;
  };

  function connectRangeButtons(figure: HTMLElement, chart: Charts.IChartApi): void {
    const scale = chart.timeScale();
    const move = (zoom: number, shift: number): void => {
      const range = scale.getVisibleLogicalRange();
      if (range === null) return;
      const width = range.to - range.from;
      const center = (range.from + range.to) / 2 + shift * width;
      const half = (width * zoom) / 2;
      scale.setVisibleLogicalRange({ from: center - half, to: center + half });
    };
    const actions: Record<string, () => void> = {
      earlier: () => move(1, -0.5),
      later: () => move(1, 0.5),
      closer: () => move(0.5, 0),
      wider: () => move(2, 0),
      all: () => scale.fitContent(),
    };
    const group = figure.querySelector<HTMLElement>('.range')!;
    group.hidden = false;
    for (const button of group.querySelectorAll('button')) {
      button.addEventListener('click', actions[button.value]!);
    }
  }

  /** Prints a scalable picture, because a canvas keeps its screen width and would be cut off. */
  function printAsPicture(element: HTMLElement, chart: Charts.IChartApi): void {
    let picture: HTMLCanvasElement | undefined;
    window.addEventListener('beforeprint', () => {
      picture = chart.takeScreenshot(true);
      picture.className = 'picture';
      picture.removeAttribute('style');
      element.after(picture);
    });
    window.addEventListener('afterprint', () => picture?.remove());
  }

  const repaints: (() => void)[] = [];
  /** Applies colors now and after every change of the theme. */
  function paint(apply: () => void): void {
    apply();
    repaints.push(apply);
  }
  function repaint(): void {
    for (const apply of repaints) apply();
  }
  document.addEventListener('themechange', repaint);
  window.addEventListener('beforeprint', () => {
    document.documentElement.classList.add('printing');
    repaint();
  });
  window.addEventListener('afterprint', () => {
    document.documentElement.classList.remove('printing');
    repaint();
  });

  /** Shows the values under the pointer, or the last ones, in the chart's line of readings. */
  function showReadings(
    element: HTMLElement,
    chart: Charts.IChartApi,
    length: () => number,
    readings: (index: number) => readonly (readonly [name: string, value: string])[],
  ): () => void {
    const line = element.closest('figure')!.querySelector<HTMLElement>('.readings')!;
    const show = (index: number): void => {
      const pairs = readings(index).map(([name, value]) => {
        const pair = document.createElement('span');
        const strong = document.createElement('b');
        strong.textContent = value;
        pair.append(name, ' ', strong);
        return pair;
      });
      line.replaceChildren(...pairs);
    };
    const last = (): void => {
      if (length() > 0) show(length() - 1);
    };
    chart.subscribeCrosshairMove(({ logical, time }) => {
      if (logical === undefined || time === undefined) last();
      else show(logical);
    });
    return last;
  }

  function drawEquity(element: HTMLElement): void {
    const { time, equity, drawdown, benchmark } = data.curve;
    const chart = newChart(element);
    const points = (column: readonly number[]): Charts.LineData[] =>
      column.map((value, index) => ({ time: time[index] as Charts.UTCTimestamp, value }));
    const money: Charts.PriceFormat = {
      type: 'custom',
      minMove: 0.01,
      formatter: (value: number) => amount(value, Math.abs(value) >= 1000 ? 0 : 2),
    };
    const quiet = { lastValueVisible: false, priceLineVisible: false } as const;

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
    showReadings(
      element,
      chart,
      () => time.length,
      (index) => [
        ['', instant(time[index] as Charts.UTCTimestamp)],
        ['Equity', amount(equity[index]!)],
        ['Drawdown', percent(drawdown[index]!)],
        ...(benchmark ? ([['Buy and hold', amount(benchmark[index]!)]] as const) : []),
      ],
    )();
  }

  function drawPrices(element: HTMLElement): void {
    let current = data.instruments[0]!;
    const chart = newChart(element);
    const series = chart.addSeries(CandlestickSeries, {
      borderVisible: false,
      priceLineVisible: false,
      priceFormat: { type: 'custom', minMove: 1e-10, formatter: price },
    });
    const markers = createSeriesMarkers(series, []);
    const appearance = {
      long: { shape: 'arrowUp', position: 'belowBar', color: 'equity' },
      short: { shape: 'arrowDown', position: 'aboveBar', color: 'equity' },
      gain: { shape: 'circle', position: 'aboveBar', color: 'gain' },
      loss: { shape: 'circle', position: 'aboveBar', color: 'loss' },
    } as const;
    const mark = (): void =>
      markers.setMarkers(
        current.markers.map(({ candle, kind, count }) => ({
          time: current.candles.time[candle] as Charts.UTCTimestamp,
          shape: appearance[kind].shape,
          position: appearance[kind].position,
          color: color(appearance[kind].color),
          ...(count > 1 && { text: String(count) }),
        })),
      );
    const showLast = showReadings(
      element,
      chart,
      () => current.candles.time.length,
      (index) => {
        const { time, open, high, low, close } = current.candles;
        return [
          ['', instant(time[index] as Charts.UTCTimestamp)],
          ['Open', price(open[index]!)],
          ['High', price(high[index]!)],
          ['Low', price(low[index]!)],
          ['Close', price(close[index]!)],
        ];
      },
    );
    const show = (instrument: (typeof data.instruments)[number]): void => {
      current = instrument;
      const { time, open, high, low, close } = current.candles;
      markers.setMarkers([]); // The old markers do not match the new candles.
      series.setData(
        time.map((at, index) => ({
          time: at as Charts.UTCTimestamp,
          open: open[index]!,
          high: high[index]!,
          low: low[index]!,
          close: close[index]!,
        })),
      );
      mark();
      chart.timeScale().fitContent();
      document.querySelector('#prices-summary')!.textContent = current.summary;
      showLast();
    };
    paint(() => {
      chart.applyOptions(chartOptions());
      const [up, down] = [color('gain'), color('loss')];
      series.applyOptions({ upColor: up, wickUpColor: up, downColor: down, wickDownColor: down });
      mark();
    });
    show(current);

    const selector = document.querySelector<HTMLSelectElement>('#instrument');
    selector?.addEventListener('change', () => show(data.instruments[selector.selectedIndex]!));
    showTrades((instrument, from, to) => {
      if (selector) selector.selectedIndex = instrument;
      if (current !== data.instruments[instrument]) show(data.instruments[instrument]!);
      const margin = Math.max(15, to - from);
      chart.timeScale().setVisibleLogicalRange({ from: from - margin, to: to + margin });
      element.scrollIntoView({ block: 'center' });
    });
  }

  /** Handles the buttons of the trade table. Arrow keys move between them; only one is a tab stop. */
  function showTrades(show: (instrument: number, from: number, to: number) => void): void {
    const buttons = (): HTMLButtonElement[] => [
      ...document.querySelectorAll<HTMLButtonElement>('button.trade'),
    ];
    const body = document.querySelector('#trades tbody');
    body?.addEventListener('click', ({ target }) => {
      if (!(target instanceof HTMLButtonElement)) return;
      const [instrument, from, to] = target.value.split(' ').map(Number);
      show(instrument!, from!, to!);
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

  const equityElement = document.querySelector<HTMLElement>('#equity');
  if (equityElement) drawEquity(equityElement);
  const pricesElement = document.querySelector<HTMLElement>('#prices');
  if (pricesElement) drawPrices(pricesElement);
}
