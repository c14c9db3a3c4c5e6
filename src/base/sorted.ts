/**
 * Returns the first index from `from` on whose value is at least `wanted`, or the length. It is
 * fast if that index is near `from`.
 *
 * @param values ascending
 */
export function firstAtLeast(values: Float64Array, wanted: number, from: number): number {
  let low = from;
  let stride = 1;
  while (low + stride <= values.length && values[low + stride - 1]! < wanted) {
    low += stride;
    stride *= 2;
  }
  let high = Math.min(low + stride - 1, values.length);
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle]! < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}
