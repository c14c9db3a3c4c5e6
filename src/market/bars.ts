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

/** One bar without its time; units as in `Bars`. */
export interface Candle {
  readonly open: number;
  readonly high: number;
  readonly low: number;
  readonly close: number;
  readonly volume: number;
}

/** Allocates zeroed columns in shared memory, which worker threads can read without a copy. */
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

/** Returns the bars `from ≤ index < to`, which share memory with `bars`. */
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

/** Concatenates bars. The result shares their memory if they are adjacent in it; otherwise it is a copy. */
export function followedBy(before: Bars, after: Bars): Bars {
  if (after.length === 0) return before;
  const isAdjacent = BAR_COLUMNS.every((name) => {
    const [one, other] = [before[name], after[name]];
    return one.buffer === other.buffer && one.byteOffset + one.byteLength === other.byteOffset;
  });
  if (!isAdjacent) return joinBars(before, after);
  const length = before.length + after.length;
  const columnOf = ({ buffer, byteOffset }: Float64Array<SharedArrayBuffer>) =>
    new Float64Array(buffer, byteOffset, length);
  return {
    length,
    time: columnOf(before.time),
    open: columnOf(before.open),
    high: columnOf(before.high),
    low: columnOf(before.low),
    close: columnOf(before.close),
    volume: columnOf(before.volume),
  };
}

/**
 * Returns `bars` with one later bar appended. The columns are shared with `bars`, which must not be
 * appended to again. They double when full, so they may be longer than `length`.
 */
export function appendBar(bars: Bars, time: number, candle: Candle): Bars {
  const at = bars.length;
  const columns = at < bars.time.length ? bars : extendBars(bars, 2);
  columns.time[at] = time;
  columns.open[at] = candle.open;
  columns.high[at] = candle.high;
  columns.low[at] = candle.low;
  columns.close[at] = candle.close;
  columns.volume[at] = candle.volume;
  return { ...columns, length: at + 1 };
}

/** Like `appendBar`, for the bars of `more`, which are copied. */
export function appendBars(bars: Bars, more: Bars): Bars {
  const length = bars.length + more.length;
  const columns =
    length <= bars.time.length ? bars : resizeBars(bars, Math.max(length, 2 * bars.length));
  for (const name of BAR_COLUMNS) {
    columns[name].set(more[name].subarray(0, more.length), bars.length);
  }
  return { ...columns, length };
}

const LEAST_CAPACITY = 64;

/** Returns a copy whose columns are longer by the factor. Added times are NaN. */
export function extendBars(bars: Bars, factor: number): Bars {
  return resizeBars(bars, Math.max(LEAST_CAPACITY, Math.ceil(factor * bars.length)));
}

function resizeBars(bars: Bars, capacity: number): Bars {
  const columns = allocateBars(capacity);
  for (const name of BAR_COLUMNS) columns[name].set(bars[name].subarray(0, bars.length));
  // Unused places must not match any instant, and 0 is one.
  columns.time.fill(Number.NaN, bars.length);
  return columns;
}

/** Returns the bars of all parts, in their order, in new columns. */
export function joinBars(...parts: readonly Bars[]): Bars {
  const bars = allocateBars(parts.reduce((total, { length }) => total + length, 0));
  let at = 0;
  for (const part of parts) {
    for (const name of BAR_COLUMNS) bars[name].set(part[name].subarray(0, part.length), at);
    at += part.length;
  }
  return bars;
}

/** @param rows `[time, open, high, low, close, volume]` */
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
