/** Computes percentiles by the nearest rank; null with too few samples. @param samples ms. */
export function computePercentiles(samples: readonly number[]) {
  const sorted = Float64Array.from(samples).sort();
  const { length } = sorted;
  const at = (share: number, least: number): number | null =>
    length < least ? null : rounded(sorted[Math.ceil(share * length) - 1]!);
  return {
    samples: length,
    p50: at(0.5, 1),
    p95: at(0.95, 20),
    p99: at(0.99, 100),
    p999: at(0.999, 1000),
    max: at(1, 1),
  };
}

/** Computes the slope of the least-squares line through the points; null below three points. */
export function computeSlope(points: readonly (readonly [x: number, y: number])[]): number | null {
  if (points.length < 3) return null;
  const meanX = sum(points, ([x]) => x) / points.length;
  const meanY = sum(points, ([, y]) => y) / points.length;
  const spread = sum(points, ([x]) => (x - meanX) ** 2);
  return spread === 0 ? null : sum(points, ([x, y]) => (x - meanX) * (y - meanY)) / spread;
}

export function sum<T>(all: readonly T[], of: (one: T) => number): number {
  return all.reduce((total, one) => total + of(one), 0);
}

export function rounded(value: number): number {
  return Number(value.toFixed(4));
}
