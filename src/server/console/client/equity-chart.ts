/// <reference lib="dom" />

import type * as Charts from 'lightweight-charts';

/**
 * Equity after a step; `time` in seconds since the Unix epoch, `drawdown` as a share, at most 0.
 */
export interface Point {
  readonly time: Charts.UTCTimestamp;
  readonly equity: number;
  readonly drawdown: number;
}

/** Global that the bundle of the library defines; the page loads it first. */
declare const LightweightCharts: typeof Charts;

/** Draws equity and, in a pane below, drawdown, in the colors of the page. */
export function equityChart(element: HTMLElement): {
  /** @param from index of the first point that is new or changed since the last call. */
  readonly show: (points: readonly Point[], from: number) => void;
} {
  const { createChart, AreaSeries, ColorType, LineStyle } = LightweightCharts;
  /** With more new points than this, all points are set again. */
  const MAX_UPDATES = 50;

  const probe = document.body.appendChild(document.createElement('span'));
  probe.hidden = true;
  /** Resolves a CSS variable, because a canvas cannot use one. */
  const color = (name: string, alpha = 1): string => {
    probe.style.color = `var(--${name})`;
    const [r, g, b] = getComputedStyle(probe).color.match(/[\d.]+/g)!;
    return `rgba(${r}, ${g}, ${b}, ${alpha})`;
  };
  const percent = (value: number): string => `${(value * 100).toFixed(1).replace('-', '−')}%`;
  const amount = (value: number): string =>
    value.toLocaleString('en-US', { maximumFractionDigits: Math.abs(value) >= 1000 ? 0 : 2 });
  const instant = (time: Charts.Time): string =>
    new Date((time as number) * 1000).toISOString().slice(0, 19).replace('T', ' ');

  const chart = createChart(element, {
    autoSize: true,
    // The logo needs a style sheet that the policy forbids; the page credits the library in text.
    layout: { attributionLogo: false },
    localization: { locale: 'en-GB', timeFormatter: instant },
    rightPriceScale: { borderVisible: false, scaleMargins: { top: 0.08, bottom: 0.08 } },
    timeScale: { borderVisible: false, timeVisible: true, minBarSpacing: 0.01 },
    // The wheel and vertical swipes belong to the page.
    handleScroll: { mouseWheel: false, vertTouchDrag: false },
    handleScale: { mouseWheel: false },
  });
  const quiet = { priceLineVisible: false, lastValueVisible: false } as const;
  const equity = chart.addSeries(AreaSeries, {
    ...quiet,
    lineWidth: 2,
    priceFormat: { type: 'custom', minMove: 0.01, formatter: amount },
  });
  const drawdown = chart.addSeries(
    AreaSeries,
    {
      ...quiet,
      lineWidth: 1,
      invertFilledArea: true,
      priceFormat: { type: 'custom', minMove: 0.0001, formatter: percent },
    },
    1,
  );
  const [above, below] = chart.panes();
  above!.setStretchFactor(0.72);
  below!.setStretchFactor(0.28);

  function paint(): void {
    chart.applyOptions({
      layout: {
        background: { type: ColorType.Solid, color: color('paper') },
        textColor: color('muted'),
        fontFamily: getComputedStyle(document.body).fontFamily,
        panes: { enableResize: false, separatorColor: color('rule') },
      },
      grid: { vertLines: { visible: false }, horzLines: { color: color('rule') } },
      crosshair: {
        vertLine: { color: color('muted'), style: LineStyle.Dotted },
        horzLine: { color: color('muted'), style: LineStyle.Dotted },
      },
    });
    equity.applyOptions({
      lineColor: color('accent'),
      topColor: color('accent', 0.25),
      bottomColor: color('accent', 0.02),
    });
    drawdown.applyOptions({
      lineColor: color('bad'),
      topColor: color('bad', 0.02),
      bottomColor: color('bad', 0.25),
    });
  }
  paint();
  document.addEventListener('themechange', paint);
  const fit = (): void => chart.timeScale().fitContent();
  new ResizeObserver(() => requestAnimationFrame(fit)).observe(element);

  return {
    show(points, from) {
      const equityAt = ({ time, equity: value }: Point): Charts.LineData => ({ time, value });
      const drawdownAt = ({ time, drawdown: value }: Point): Charts.LineData => ({ time, value });
      if (from === 0 || points.length - from > MAX_UPDATES) {
        equity.setData(points.map(equityAt));
        drawdown.setData(points.map(drawdownAt));
        if (points.length > 0) fit();
        return;
      }
      for (const point of points.slice(from)) {
        equity.update(equityAt(point));
        drawdown.update(drawdownAt(point));
      }
      if (points.length > from) fit();
    },
  };
}
