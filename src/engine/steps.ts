import type { Bars, Candle } from '../market/bars.ts';

/** The bars that opened at one time, by symbol; instruments that have none then are absent. */
export interface Step {
  /** Milliseconds since the Unix epoch. */
  readonly time: number;
  readonly bars: Readonly<Record<string, Candle>>;
}

/** Histories as the steps in which their bars would have come, oldest first. */
export function* stepsOf(
  instruments: readonly { readonly symbol: string; readonly bars: Bars }[],
): Generator<Step> {
  const cursors = new Uint32Array(instruments.length);
  for (const time of mergeTimes(instruments.map(({ bars }) => bars))) {
    const candles: [string, Candle][] = [];
    for (const [index, { symbol, bars }] of instruments.entries()) {
      const at = cursors[index]!;
      if (at === bars.length || bars.time[at] !== time) continue;
      cursors[index]! += 1;
      const candle = {
        open: bars.open[at]!,
        high: bars.high[at]!,
        low: bars.low[at]!,
        close: bars.close[at]!,
        volume: bars.volume[at]!,
      };
      candles.push([symbol, candle]);
    }
    yield { time, bars: Object.fromEntries(candles) };
  }
}

/**
 * The run's clock: every distinct bar time over all instruments, ascending. One instrument's own
 * times are used as they are, without a copy.
 */
export function mergeTimes(
  histories: readonly { readonly time: Float64Array; readonly length: number }[],
): Float64Array {
  if (histories.length === 1) {
    const { time, length } = histories[0]!;
    return time.length === length ? time : time.subarray(0, length);
  }
  const cursors = new Uint32Array(histories.length);
  const merged = new Float64Array(histories.reduce((sum, bars) => sum + bars.length, 0));
  let steps = 0;
  for (;;) {
    let next = Infinity;
    for (let index = 0; index < histories.length; index += 1) {
      const { time, length } = histories[index]!;
      const cursor = cursors[index]!;
      if (cursor < length && time[cursor]! < next) next = time[cursor]!;
    }
    if (next === Infinity) return merged.slice(0, steps);
    for (let index = 0; index < histories.length; index += 1) {
      if (histories[index]!.time[cursors[index]!] === next) cursors[index]! += 1;
    }
    merged[steps] = next;
    steps += 1;
  }
}
