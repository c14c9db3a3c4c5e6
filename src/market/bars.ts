/**
 * A price history as columns, oldest bar first. `time` is the bar's opening instant in
 * milliseconds since the Unix epoch (UTC); prices are in the quote currency, volume in units.
 */
export interface Bars {
  readonly length: number;
  readonly time: Float64Array<SharedArrayBuffer>;
  readonly open: Float64Array<SharedArrayBuffer>;
  readonly high: Float64Array<SharedArrayBuffer>;
  readonly low: Float64Array<SharedArrayBuffer>;
  readonly close: Float64Array<SharedArrayBuffer>;
  readonly volume: Float64Array<SharedArrayBuffer>;
}

export const BAR_COLUMNS = ['time', 'open', 'high', 'low', 'close', 'volume'] as const;
export type BarColumn = (typeof BAR_COLUMNS)[number];

/** Zeroed columns in shared memory, so that worker threads read them without a copy. */
export function allocateBars(length: number): Bars {
  const column = (): Float64Array<SharedArrayBuffer> =>
    new Float64Array(new SharedArrayBuffer(length * Float64Array.BYTES_PER_ELEMENT));
  return {
    length,
    time: column(),
    open: column(),
    high: column(),
    low: column(),
    close: column(),
    volume: column(),
  };
}

/** The bars `from ≤ index < to`, sharing memory with `bars`. */
export function sliceBars(bars: Bars, from: number, to: number): Bars {
  return {
    length: to - from,
    time: bars.time.subarray(from, to),
    open: bars.open.subarray(from, to),
    high: bars.high.subarray(from, to),
    low: bars.low.subarray(from, to),
    close: bars.close.subarray(from, to),
    volume: bars.volume.subarray(from, to),
  };
}

/** Bars from a list of rows `[time, open, high, low, close, volume]`. */
export function barsFromRows(
  rows: readonly (readonly [number, number, number, number, number, number])[],
): Bars {
  const bars = allocateBars(rows.length);
  rows.forEach((row, index) => {
    BAR_COLUMNS.forEach((name, column) => {
      bars[name][index] = row[column]!;
    });
  });
  return bars;
}
