import { firstAtLeast } from '../../base/sorted.ts';
import type { Trade } from '../../engine/round-trip.ts';
import type { EntryBars } from '../../engine/series/clock.ts';
import type { Bars } from '../../market/bars.ts';
import type { Candles, Marker } from '../../base/charts/level.ts';
import { bySize } from './largest-trades.ts';
import { roundForPage } from './series.ts';

/** Consecutive bars of an instrument, from `from` to before `to`. */
export interface Stretch {
  readonly from: number;
  readonly to: number;
}

export interface SingleBars {
  /** In order of time, with gaps between them. */
  readonly stretches: readonly Stretch[];
  /** Number of closed trades that they contain. */
  readonly trades: number;
}

/** Bars before the entry and after the exit of a trade. */
const MARGIN = 30;

/** An instrument whose candles are several bars each. */
export interface LongHistory {
  readonly symbol: string;
  readonly bars: Bars;
  /** Numbers that a page holds for each of its bars. */
  readonly numbersPerBar: number;
}

/**
 * Chooses the bars around trades that a page shows one by one, up to about `most` numbers. Trades
 * with the largest profits and losses come first, and those that do not fit are left out.
 */
export function chooseSingleBars(
  histories: readonly LongHistory[],
  closed: readonly Trade[],
  most: number,
): Map<string, SingleBars> {
  const chosen = new Map(
    histories.map((history) => [
      history.symbol,
      { history, isChosen: new Uint8Array(history.bars.length), trades: 0 },
    ]),
  );
  let left = most;
  for (const trade of bySize(closed)) {
    if (left < most / 100) break;
    const found = chosen.get(trade.symbol);
    if (found === undefined) continue;
    const { bars, numbersPerBar } = found.history;
    const from = Math.max(0, firstAtLeast(bars.time, trade.entry_time, 0) - MARGIN);
    const to = Math.min(bars.length, firstAtLeast(bars.time, trade.exit_time, from) + MARGIN + 1);
    if ((to - from) * numbersPerBar > most) continue;
    let added = 0;
    for (let bar = from; bar < to; bar++) added += 1 - found.isChosen[bar]!;
    if (added * numbersPerBar > left) continue;
    left -= added * numbersPerBar;
    found.isChosen.fill(1, from, to);
    found.trades += 1;
  }
  return new Map(
    [...chosen].map(([symbol, { isChosen, trades }]) => [
      symbol,
      { stretches: stretchesOf(isChosen), trades },
    ]),
  );
}

function stretchesOf(isChosen: Uint8Array): Stretch[] {
  const stretches: Stretch[] = [];
  for (let from = isChosen.indexOf(1); from !== -1;) {
    const end = isChosen.indexOf(0, from);
    const to = end === -1 ? isChosen.length : end;
    stretches.push({ from, to });
    from = isChosen.indexOf(1, to);
  }
  return stretches;
}

/** The bars of all stretches, as candles of one bar each. */
export function singleCandles(bars: Bars, stretches: readonly Stretch[]): Candles {
  const pick = (column: Float64Array): number[] => {
    const picked: number[] = [];
    for (const { from, to } of stretches) {
      for (let bar = from; bar < to; bar++) picked.push(column[bar]!);
    }
    return picked;
  };
  return {
    barsPerCandle: 1,
    time: pick(bars.time).map((time) => time / 1000),
    open: pick(bars.open),
    high: pick(bars.high),
    low: pick(bars.low),
    close: pick(bars.close),
    volume: pick(bars.volume),
  };
}

/** The values of a line at the bars of all stretches. Between the entries of a slower line, its value holds. */
export function singleValues(
  values: Float64Array,
  { before, rows }: EntryBars,
  stretches: readonly Stretch[],
): number[] {
  const picked: number[] = [];
  let entry = 0;
  for (const { from, to } of stretches) {
    for (let bar = before + from; bar < before + to; bar++) {
      if (rows === undefined) picked.push(values[bar] ?? Number.NaN);
      else {
        while (entry < values.length && rows[entry]! <= bar) entry++;
        picked.push(values[entry - 1] ?? Number.NaN);
      }
    }
  }
  return picked;
}

/** Markers of the entries and exits that are among these bars. */
export function singleMarkers(
  candles: Candles,
  closed: readonly Trade[],
  open: readonly Trade[],
): Marker[] {
  const times = Float64Array.from(candles.time, (time) => time * 1000);
  const indexOf = (time: number): number | undefined => {
    const index = firstAtLeast(times, time, 0);
    return times[index] === time ? index : undefined;
  };
  const markers: Marker[] = [];
  for (const { side, entry_time } of [...closed, ...open]) {
    const entry = indexOf(entry_time);
    if (entry !== undefined) markers.push([entry, side, 1]);
  }
  for (const { exit_time, pnl } of closed) {
    const exit = indexOf(exit_time);
    if (exit !== undefined) markers.push([exit, pnl > 0 ? 'gain' : 'loss', 1, roundForPage(pnl)]);
  }
  return markers.toSorted(([a], [b]) => a - b);
}
