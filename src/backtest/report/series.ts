import { firstAtLeast } from '../../base/sorted.ts';
import type { Trade } from '../../engine/round-trip.ts';
import type { EntryBars } from '../../engine/series/clock.ts';
import type { Bars } from '../../market/bars.ts';
import type { Candles, Marker, Ranges } from '../../base/charts/level.ts';

/** Equity over time, downsampled for drawing; all columns have the same length. */
export interface Curve {
  /** Seconds since the Unix epoch, UTC, ascending. */
  readonly time: readonly number[];
  readonly equity: readonly number[];
  /** `equity ÷ highest equity so far − 1`, at most zero. */
  readonly drawdown: readonly number[];
  readonly benchmark?: readonly number[];
}

/** The deepest drawdown of an equity curve: `depth` is at most zero, times are milliseconds. */
export interface Drawdown {
  readonly depth: number;
  readonly peakTime: number;
  readonly troughTime: number;
}

/** Returns of the calendar months of a year (UTC). */
export interface YearOfReturns {
  readonly year: number;
  /** Twelve entries: `undefined` for a month without bars, `null` if equity was not positive. */
  readonly months: readonly (number | null | undefined)[];
  readonly total: number | null;
}

/**
 * Downsamples an equity curve to at most `limit` points. Keeps all peaks and troughs visible: of each
 * stretch of steps, it keeps the lowest and highest equity, the deepest drawdown and the extremes of
 * the benchmark.
 */
export function thinCurve(
  time: Float64Array,
  equity: Float64Array,
  drawdowns: Float64Array,
  benchmark: Float64Array | undefined,
  limit: number,
): { curve: Curve; deepest: Drawdown } {
  const chosen = chooseSteps(equity, drawdowns, benchmark, limit);
  let trough = 0;
  for (let step = 1; step < equity.length; step++) {
    if (drawdowns[step]! < drawdowns[trough]!) trough = step;
  }
  // If no step is a peak, the peak is the starting cash at the first step.
  const peak = Math.max(0, drawdowns.lastIndexOf(0, trough));
  const curve: Curve = {
    time: chosen.map((step) => time[step]! / 1000),
    equity: chosen.map((step) => roundForPage(equity[step]!)),
    drawdown: chosen.map((step) => roundForPage(drawdowns[step]!)),
    ...(benchmark && { benchmark: chosen.map((step) => roundForPage(benchmark[step]!)) }),
  };
  return {
    curve,
    deepest: {
      depth: drawdowns[trough] ?? 0,
      peakTime: time[peak] ?? 0,
      troughTime: time[trough] ?? 0,
    },
  };
}

/** Returns all steps, or the same number of steps of every stretch, in ascending order. */
function chooseSteps(
  equity: Float64Array,
  drawdowns: Float64Array,
  benchmark: Float64Array | undefined,
  limit: number,
): number[] {
  const steps = equity.length;
  if (steps <= limit) return Array.from({ length: steps }, (_, step) => step);

  const perStretch = benchmark === undefined ? 3 : 5;
  const stretches = Math.floor((limit - 2) / perStretch);
  const chosen = new Set([0]);
  for (let stretch = 0; stretch < stretches; stretch++) {
    const from = Math.floor((stretch * steps) / stretches);
    const to = Math.floor(((stretch + 1) * steps) / stretches);
    let lowest = from;
    let highest = from;
    let deepest = from;
    for (let step = from; step < to; step++) {
      const value = equity[step]!;
      if (value < equity[lowest]!) lowest = step;
      if (value > equity[highest]!) highest = step;
      if (drawdowns[step]! < drawdowns[deepest]!) deepest = step;
    }
    const kept = new Set([lowest, highest, deepest]);
    if (benchmark !== undefined) for (const step of extremesOf(benchmark, from, to)) kept.add(step);
    // Charts give every point the same width, so a stretch with fewer points would look shorter.
    for (let i = 0; kept.size < perStretch; i++) {
      kept.add(from + Math.floor((i * (to - from)) / perStretch));
    }
    for (const step of [...kept].toSorted((a, b) => a - b)) chosen.add(step);
  }
  chosen.add(steps - 1);
  return [...chosen];
}

function extremesOf(column: Float64Array, from: number, to: number): [number, number] {
  let lowest = from;
  let highest = from;
  for (let step = from; step < to; step++) {
    if (column[step]! < column[lowest]!) lowest = step;
    if (column[step]! > column[highest]!) highest = step;
  }
  return [lowest, highest];
}

/** Aggregates consecutive bars into at most `limit` candles. */
export function toCandles(bars: Bars, limit: number): Candles {
  const barsPerCandle = Math.max(1, Math.ceil(bars.length / limit));
  const time: number[] = [];
  const open: number[] = [];
  const high: number[] = [];
  const low: number[] = [];
  const close: number[] = [];
  const volume: number[] = [];
  for (let from = 0; from < bars.length; from += barsPerCandle) {
    const to = Math.min(from + barsPerCandle, bars.length);
    let highest = bars.high[from]!;
    let lowest = bars.low[from]!;
    let traded = bars.volume[from]!;
    for (let bar = from + 1; bar < to; bar++) {
      if (bars.high[bar]! > highest) highest = bars.high[bar]!;
      if (bars.low[bar]! < lowest) lowest = bars.low[bar]!;
      traded += bars.volume[bar]!;
    }
    time.push(bars.time[from]! / 1000);
    open.push(bars.open[from]!);
    high.push(highest);
    low.push(lowest);
    close.push(bars.close[to - 1]!);
    volume.push(traded);
  }
  return { barsPerCandle, time, open, high, low, close, volume };
}

/** Aggregates the values of a line by candle. Between the entries of a slower line, its value holds. */
export function toRanges(
  values: Float64Array,
  { before, rows }: EntryBars,
  { barsPerCandle, time }: Candles,
): Ranges {
  const low: (number | null)[] = [];
  const high: (number | null)[] = [];
  const close: (number | null)[] = [];
  const rowOf = (entry: number): number => rows?.[entry] ?? entry;
  let entry = 0;
  while (entry < values.length && rowOf(entry) < before) entry++;
  for (let candle = 0; candle < time.length; candle++) {
    const end = before + (candle + 1) * barsPerCandle;
    let last = rows === undefined ? Number.NaN : values[entry - 1]!;
    let lowest = Infinity;
    let highest = -Infinity;
    for (; entry < values.length && rowOf(entry) < end; entry++) {
      last = values[entry]!;
      if (last < lowest) lowest = last;
      if (last > highest) highest = last;
    }
    const isEmpty = lowest > highest;
    close.push(toPage(last));
    low.push(toPage(isEmpty ? last : lowest));
    high.push(toPage(isEmpty ? last : highest));
  }
  return barsPerCandle === 1 ? { close } : { low, high, close };
}

function toPage(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}

/** Index of the candle that contains an instant (ms); −1 if the instant is before all candles. */
function candleAt(candles: Candles, instant: number): number {
  let before = -1;
  let after = candles.time.length;
  while (after - before > 1) {
    const middle = (before + after) >> 1;
    if (candles.time[middle]! * 1000 <= instant) before = middle;
    else after = middle;
  }
  return before;
}

/** Returns markers in order of time, at most three per candle. */
export function toMarkers(
  candles: Candles,
  closed: readonly Trade[],
  open: readonly Trade[],
): Marker[] {
  const entries = new Map<string, Marker>();
  const exits = new Map<number, { count: number; pnl: number }>();
  for (const trade of [...closed, ...open]) {
    const candle = candleAt(candles, trade.entry_time);
    const key = `${candle} ${trade.side}`;
    const count = (entries.get(key)?.[2] ?? 0) + 1;
    entries.set(key, [candle, trade.side, count]);
  }
  for (const trade of closed) {
    const candle = candleAt(candles, trade.exit_time);
    const { count, pnl } = exits.get(candle) ?? { count: 0, pnl: 0 };
    exits.set(candle, { count: count + 1, pnl: pnl + trade.pnl });
  }
  const markers: Marker[] = [...entries.values()];
  for (const [candle, { count, pnl }] of exits) {
    markers.push([candle, pnl > 0 ? 'gain' : 'loss', count, roundForPage(pnl)]);
  }
  return markers.filter(([candle]) => candle >= 0).toSorted(([a], [b]) => a - b);
}

/** Computes the returns of months and years on the equity at the end of the previous one. */
export function monthlyReturns(
  time: Float64Array,
  equity: Float64Array,
  initialCash: number,
): YearOfReturns[] {
  const years: { year: number; months: (number | null | undefined)[]; total: number | null }[] = [];
  let yearBase = initialCash;
  let monthBase = initialCash;
  let step = 0;
  while (step < time.length) {
    const date = new Date(time[step]!);
    const year = date.getUTCFullYear();
    const month = date.getUTCMonth();
    const nextMonth = Date.UTC(year, month + 1);
    step = firstAtLeast(time, nextMonth, step);
    const end = equity[step - 1]!;

    if (years.at(-1)?.year !== year) {
      yearBase = monthBase;
      years.push({ year, months: Array.from({ length: 12 }, () => undefined), total: null });
    }
    const current = years.at(-1)!;
    current.months[month] = returnOn(monthBase, end);
    current.total = returnOn(yearBase, end);
    monthBase = end;
  }
  return years;
}

function returnOn(base: number, end: number): number | null {
  return base > 0 ? end / base - 1 : null;
}

/** Rounds to ten significant digits: enough for any screen, and half the size of a float64 in JSON. */
export function roundForPage(value: number): number {
  return Number(value.toPrecision(10));
}
