/// <reference lib="dom" />
import type * as Charts from 'lightweight-charts';

/** Defined by the library's bundle, which the page contains before this function. */
declare const LightweightCharts: typeof Charts;

/** Data of the charts of a page. */
interface PageData {
  /** Whether every instant is at midnight UTC, so that times of day are omitted. */
  readonly dateOnly: boolean;
}

/** Returns what all charts need; the page assigns it to the constant `chartTools`. */
export function prepareCharts(data: PageData) {
  const { createChart, ColorType, CrosshairMode, PriceScaleMode, TickMarkType } = LightweightCharts;

  const percent = (value: number): string =>
    `${(value * 100)
      .toFixed(1)
      .replace(/^-0\.0$/, '0.0')
      .replace('-', '−')}%`;
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
  const quiet = { lastValueVisible: false, priceLineVisible: false } as const;
  const priceFormat = { type: 'custom', minMove: 1e-10, formatter: price } as const;
  const volumeFormat = { type: 'volume' } as const;
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
        tickMarkMaxCharacterLength: 10,
        minBarSpacing: 0.01,
        fixLeftEdge: true,
        fixRightEdge: true,
      },
      // The wheel and vertical swipes scroll the page; dragging and the buttons move a chart.
      handleScroll: { mouseWheel: false, vertTouchDrag: false },
      handleScale: { mouseWheel: false },
      kineticScroll: { touch: !matchMedia('(prefers-reduced-motion: reduce)').matches },
    });
    connectRangeButtons(element.closest('figure')!, chart);
    connectLogButton(element.closest('figure')!, chart);
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
    const group = figure.querySelector<HTMLElement>('.range');
    if (group === null) return;
    group.hidden = false;
    for (const button of group.querySelectorAll('button')) {
      button.addEventListener('click', actions[button.value]!);
    }
  }

  /** The button is absent for values at or below zero. */
  function connectLogButton(figure: HTMLElement, chart: Charts.IChartApi): void {
    const button = figure.querySelector<HTMLButtonElement>('.log');
    if (button === null) return;
    button.hidden = false;
    button.addEventListener('click', () => {
      const isLog = button.ariaPressed !== 'true';
      button.ariaPressed = String(isLog);
      const mode = isLog ? PriceScaleMode.Logarithmic : PriceScaleMode.Normal;
      chart.panes()[0]!.priceScale('right').applyOptions({ mode });
    });
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

  /**
   * Shows the values under the pointer, or the last ones, in the chart's line of readings.
   * @returns shows them again; with an index, as if the pointer were there.
   */
  function showReadings(
    element: HTMLElement,
    chart: Charts.IChartApi,
    length: () => number,
    readings: (index: number) => readonly (readonly [name: string, value: string])[],
  ): (at?: number) => void {
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
    let pointed: number | undefined;
    const update = (at?: number): void => {
      pointed = at ?? pointed;
      if (length() > 0) show(Math.min(pointed ?? Infinity, length() - 1));
    };
    chart.subscribeCrosshairMove(({ logical, time }) => {
      pointed = time === undefined ? undefined : logical;
      update();
    });
    return update;
  }

  return {
    data,
    percent,
    amount,
    price,
    priceFormat,
    volumeFormat,
    quiet,
    instant,
    color,
    chartOptions,
    newChart,
    paint,
    showReadings,
  };
}

export type ChartTools = ReturnType<typeof prepareCharts>;
