/** Counts of values in bins of equal width. */
export interface Histogram {
  /** Lower edge of the first bin. */
  readonly from: number;
  readonly width: number;
  readonly counts: readonly number[];
}

const BINS = 40;

/**
 * Distributes values over at most 40 bins of a round width. Values farther than four standard deviations
 * from the mean are in the first and the last bin, so that an outlier does not make all others one bar.
 */
export function histogramOf(
  values: Float64Array,
  { mean, deviation }: { readonly mean: number; readonly deviation: number },
): Histogram | undefined {
  if (values.length < 2 || !(deviation > 0)) return undefined;
  const smallest = values.reduce((least, value) => Math.min(least, value), Infinity);
  const largest = values.reduce((most, value) => Math.max(most, value), -Infinity);
  const low = Math.max(smallest, mean - 4 * deviation);
  const high = Math.min(largest, mean + 4 * deviation);
  const width = roundUp((high - low) / (BINS - 2));
  const first = Math.floor(low / width);
  const counts = Array.from({ length: Math.floor(high / width) - first + 1 }, () => 0);
  for (const value of values) {
    const bin = Math.floor(value / width) - first;
    counts[Math.min(counts.length - 1, Math.max(0, bin))]! += 1;
  }
  return { from: first * width, width, counts };
}

/** The next of 1, 2, 2.5 and 5 times a power of ten. */
function roundUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return power * [1, 2, 2.5, 5, 10].find((factor) => factor * power >= value * (1 - 1e-9))!;
}
