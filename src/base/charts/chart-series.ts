/// <reference lib="dom" />
import type * as Charts from 'lightweight-charts';

declare const LightweightCharts: typeof Charts;

/** The values of a line within one candle. */
export interface RangePoint extends Charts.CustomData<Charts.UTCTimestamp> {
  readonly low: number;
  readonly high: number;
  readonly close: number;
}

export interface RangeOptions extends Charts.CustomSeriesOptions {
  readonly style: 'line' | 'dots' | 'histogram';
  /** Lengths of dashes and gaps, CSS pixels. */
  readonly dash: readonly number[];
  readonly lineWidth: number;
}

/** The two edges of a filled area at one candle. */
export interface AreaPoint extends Charts.CustomData<Charts.UTCTimestamp> {
  readonly first: number;
  readonly second: number;
}

/**
 * Returns the series that the library does not have; the page assigns them to the constant
 * `chartSeries`.
 */
export function prepareSeries() {
  const { customSeriesDefaultOptions } = LightweightCharts;
  type View<
    P extends Charts.CustomData,
    O extends Charts.CustomSeriesOptions,
  > = Charts.ICustomSeriesPaneView<Charts.Time, P, O>;
  type Canvas = Parameters<
    Parameters<
      Parameters<Charts.ICustomSeriesPaneRenderer['draw']>[0]['useBitmapCoordinateSpace']
    >[0]
  >[0];

  /**
   * Calls `draw` with the visible points and a function that returns device pixels of a price. Draws
   * without them while no point is visible.
   */
  function view<P extends Charts.CustomData, O extends Charts.CustomSeriesOptions>(
    parts: Pick<View<P, O>, 'priceValueBuilder' | 'defaultOptions'> & {
      readonly key: keyof P;
      readonly draw: (
        canvas: Canvas,
        points: readonly { readonly x: number; readonly point: P }[],
        style: {
          readonly y: (price: number) => number;
          readonly spacing: number;
          readonly options: O;
        },
      ) => void;
    },
  ): View<P, O> {
    let data: Charts.PaneRendererCustomData<Charts.Time, P> | undefined;
    let options: O;
    return {
      ...parts,
      isWhitespace: (point): point is Charts.CustomSeriesWhitespaceData<Charts.Time> =>
        !(parts.key in point),
      update(next, given) {
        data = next;
        options = given;
      },
      renderer: () => ({
        draw(target, convert) {
          const { bars, visibleRange, barSpacing } = data!;
          if (visibleRange === null) return;
          target.useBitmapCoordinateSpace((canvas) => {
            // The coordinates of other points are not current.
            const points = bars
              .slice(visibleRange.from, visibleRange.to)
              .map(({ x, originalData }) => ({
                x: x * canvas.horizontalPixelRatio,
                point: originalData,
              }));
            const y = (price: number): number => (convert(price) ?? 0) * canvas.verticalPixelRatio;
            const spacing = barSpacing * canvas.horizontalPixelRatio;
            parts.draw(canvas, points, { y, spacing, options });
          });
        },
      }),
    };
  }

  /** A line through the last value of each candle, and from its lowest to its highest value. */
  const rangeView = (): View<RangePoint, RangeOptions> =>
    view<RangePoint, RangeOptions>({
      key: 'close',
      priceValueBuilder: ({ low, high, close }) => [low, high, close],
      defaultOptions: () => ({
        ...customSeriesDefaultOptions,
        style: 'line',
        dash: [],
        lineWidth: 1.5,
      }),
      draw({ context, verticalPixelRatio: ratio }, points, { y, spacing, options }) {
        context.strokeStyle = options.color;
        context.fillStyle = options.color;
        context.lineWidth = options.lineWidth * ratio;
        context.lineJoin = 'round';
        context.beginPath();
        if (options.style === 'histogram') {
          const width = Math.max(1, 0.7 * spacing);
          for (const { x, point } of points) {
            const [top, bottom] = [y(Math.max(0, point.high)), y(Math.min(0, point.low))];
            context.rect(x - width / 2, top, width, Math.max(1, bottom - top));
          }
          context.fill();
          return;
        }
        if (options.style === 'dots') {
          const radius = Math.min(2.2 * ratio, Math.max(0.8 * ratio, 0.3 * spacing));
          for (const { x, point } of points) {
            for (const price of new Set([point.low, point.high, point.close])) {
              context.moveTo(x + radius, y(price));
              context.arc(x, y(price), radius, 0, 2 * Math.PI);
            }
          }
          context.fill();
          return;
        }
        context.setLineDash(options.dash.map((length) => length * ratio));
        let previous = -Infinity;
        for (const { x, point } of points) {
          const isNext = x - previous < 1.5 * spacing;
          if (isNext) context.lineTo(x, y(point.close));
          else context.moveTo(x, y(point.close));
          if (point.high > point.low) {
            context.moveTo(x, y(point.high));
            context.lineTo(x, y(point.low));
            context.moveTo(x, y(point.close));
          }
          previous = x;
        }
        context.stroke();
        context.setLineDash([]);
      },
    });

  /** The area between two lines. */
  const areaView = (): View<AreaPoint, Charts.CustomSeriesOptions> =>
    view<AreaPoint, Charts.CustomSeriesOptions>({
      key: 'first',
      priceValueBuilder: ({ first, second }) => [first, second],
      defaultOptions: () => customSeriesDefaultOptions,
      draw({ context }, points, { y, spacing, options }) {
        context.fillStyle = options.color;
        context.beginPath();
        points.forEach(({ x, point }, index) => {
          const next = points[index + 1];
          if (next === undefined || next.x - x >= 1.5 * spacing) return;
          context.moveTo(x, y(point.first));
          context.lineTo(next.x, y(next.point.first));
          context.lineTo(next.x, y(next.point.second));
          context.lineTo(x, y(point.second));
          context.closePath();
        });
        context.fill();
      },
    });

  return { rangeView, areaView };
}

export type ChartSeries = ReturnType<typeof prepareSeries>;
