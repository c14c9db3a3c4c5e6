import type { Trade } from '../../engine/result.ts';
import type { Bars } from '../../market/bars.ts';
import { drawdownsOf } from '../statistics.ts';

/** Equity over time, thinned for drawing; all columns have the same length. */
export interface Curve {
  /** Seconds since the Unix epoch, UTC, ascending. */
  readonly time: readonly number[];
  readonly equity: readonly number[];
  /** `equity ÷ highest equity so far − 1`, never above zero. */
  readonly drawdown: readonly number[];
  readonly benchmark?: readonly number[];
}

/** The deepest fall of an equity curve: `depth` is negative or zero, times are milliseconds. */
export interface Drawdown {
  readonly depth: number;
  readonly peakTime: number;
  readonly troughTime: number;
}

/** Price history of one instrument for drawing; all columns have the same length. */
export interface Candles {
  readonly barsPerCandle: number;
  /** Opening instants in seconds since the Unix epoch, UTC, ascending. */
  readonly time: readonly number[];
  readonly open: readonly number[];
  readonly high: readonly number[];
  readonly low: readonly number[];
  readonly close: readonly number[];
}

/** What trades did within one candle: entries by side, exits by the sign of their summed profit. */
export interface Marker {
  /** Index of the candle. */
  readonly candle: number;
  readonly kind: 'long' | 'short' | 'gain' | 'loss';
  /** How many entries or exits it stands for. */
  readonly count: number;
}

/** Returns of one year's calendar months (UTC). */
export interface YearOfReturns {
  readonly year: number;
  /** Twelve entries: `undefined` where the run has no bars, `null` where equity was not positive. */
  readonly months: readonly (number | null | undefined)[];
  readonly total: number | null;
}

/**
 * An equity curve of at most `limit` points. Of each stretch of steps the lowest and the highest
 * equity, the deepest drawdown and the extremes of the benchmark are kept, so that thinning
 * smooths no peak or trough away.
 */
export function thinCurve(
  time: Float64Array,
  equity: Float64Array,
  initialCash: number,
  benchmark: Float64Array | undefined,
  limit: number,
): { curve: Curve; deepest: Drawdown } {
  const drawdowns = drawdownsOf(equity, initialCash);
  const chosen = chooseSteps(equity, drawdowns, benchmark, limit);
  let trough = 0;
  for (let step = 1; step < equity.length; step++) {
    if (drawdowns[step]! < drawdowns[trough]!) trough = step;
  }
  // Without one, the peak is the starting cash.
  const peak = Math.max(0, drawdowns.lastIndexOf(0, trough));
  const curve: Curve = {
    time: chosen.map((step) => time[step]! / 1000),
    equity: chosen.map((step) => shorten(equity[step]!)),
    drawdown: chosen.map((step) => shorten(drawdowns[step]!)),
    ...(benchmark && { benchmark: chosen.map((step) => shorten(benchmark[step]!)) }),
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

/** Steps in ascending order: all of them, or equally many of every stretch with its extremes. */
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
    // A chart gives every point the same width: fewer points would make a quiet year look short.
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
  for (let from = 0; from < bars.length; from += barsPerCandle) {
    const to = Math.min(from + barsPerCandle, bars.length);
    let highest = bars.high[from]!;
    let lowest = bars.low[from]!;
    for (let bar = from + 1; bar < to; bar++) {
      if (bars.high[bar]! > highest) highest = bars.high[bar]!;
      if (bars.low[bar]! < lowest) lowest = bars.low[bar]!;
    }
    time.push(bars.time[from]! / 1000);
    open.push(shorten(bars.open[from]!));
    high.push(shorten(highest));
    low.push(shorten(lowest));
    close.push(shorten(bars.close[to - 1]!));
  }
  return { barsPerCandle, time, open, high, low, close };
}

/** Index of the candle that holds an instant (ms); -1 when the instant lies before all of them. */
export function candleAt(candles: Candles, instant: number): number {
  let before = -1;
  let after = candles.time.length;
  while (after - before > 1) {
    const middle = (before + after) >> 1;
    if (candles.time[middle]! * 1000 <= instant) before = middle;
    else after = middle;
  }
  return before;
}

/** At most three markers per candle however many trades there are, in order of time. */
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
    const count = (entries.get(key)?.count ?? 0) + 1;
    entries.set(key, { candle, kind: trade.side, count });
  }
  for (const trade of closed) {
    const candle = candleAt(candles, trade.exit_time);
    const { count, pnl } = exits.get(candle) ?? { count: 0, pnl: 0 };
    exits.set(candle, { count: count + 1, pnl: pnl + trade.pnl });
  }
  const markers: Marker[] = [...entries.values()];
  for (const [candle, { count, pnl }] of exits) {
    markers.push({ candle, kind: pnl > 0 ? 'gain' : 'loss', count });
  }
  return markers.filter(({ candle }) => candle >= 0).toSorted((a, b) => a.candle - b.candle);
}

/** Each month's and year's return on the equity at the end of the one before. */
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
    while (step < time.length && time[step]! < nextMonth) step++;
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

/** Ten significant digits: more than a screen can show, and half the bytes of a float64 in JSON. */
function shorten(value: number): number {
  return Number(value.toPrecision(10));
}
