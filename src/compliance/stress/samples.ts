export interface Percentiles {
  readonly samples: number;
  /** ms; null with too few samples. */
  readonly p50: number | null;
  readonly p95: number | null;
  readonly p99: number | null;
  readonly p999: number | null;
  readonly max: number | null;
}

/** Minimum number of samples for each percentile. */
const LEAST = { p50: 1, p95: 20, p99: 100, p999: 1000 } as const;

/** Computes percentiles by the nearest rank. @param samples ms. */
export function computePercentiles(samples: readonly number[]): Percentiles {
  const sorted = Float64Array.from(samples).sort();
  const { length } = sorted;
  const at = (share: number, least: number): number | null =>
    length < least ? null : rounded(sorted[Math.ceil(share * length) - 1]!);
  return {
    samples: length,
    p50: at(0.5, LEAST.p50),
    p95: at(0.95, LEAST.p95),
    p99: at(0.99, LEAST.p99),
    p999: at(0.999, LEAST.p999),
    max: length === 0 ? null : rounded(sorted[length - 1]!),
  };
}

/** Computes the slope of the least-squares line through the points; null below three points. */
export function computeSlope(points: readonly (readonly [x: number, y: number])[]): number | null {
  if (points.length < 3) return null;
  const mean = (place: 0 | 1): number =>
    points.reduce((sum, point) => sum + point[place], 0) / points.length;
  const [x, y] = [mean(0), mean(1)];
  let both = 0;
  let alone = 0;
  for (const point of points) {
    both += (point[0] - x) * (point[1] - y);
    alone += (point[0] - x) ** 2;
  }
  return alone === 0 ? null : both / alone;
}

export function rounded(value: number): number {
  return Number(value.toFixed(4));
}
