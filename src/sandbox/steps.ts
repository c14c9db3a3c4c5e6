import type { Candle } from '../market/bars.ts';
import type { Step } from '../engine/steps.ts';

/** Numbers of a bar: open, high, low, close, volume. */
const WIDTH = 5;

/** Steps as rows of doubles: the time, and each symbol's bar, NaN where it has none. */
export function encodeSteps(symbols: readonly string[], steps: readonly Step[]): Uint8Array {
  const row = 1 + WIDTH * symbols.length;
  const numbers = new Float64Array(steps.length * row).fill(Number.NaN);
  for (const [i, { time, bars }] of steps.entries()) {
    numbers[i * row] = time;
    for (const [s, symbol] of symbols.entries()) {
      const bar = bars[symbol];
      if (bar === undefined) continue;
      const { open, high, low, close, volume } = bar;
      numbers.set([open, high, low, close, volume], i * row + 1 + WIDTH * s);
    }
  }
  return new Uint8Array(numbers.buffer);
}

/** What `encodeSteps` was given. */
export function decodeSteps(symbols: readonly string[], bytes: Uint8Array): Step[] {
  const row = 1 + WIDTH * symbols.length;
  const numbers = new Float64Array(new Uint8Array(bytes).buffer);
  const steps: Step[] = [];
  for (let at = 0; at < numbers.length; at += row) {
    const bars: Record<string, Candle> = {};
    for (const [s, symbol] of symbols.entries()) {
      const from = at + 1 + WIDTH * s;
      const [open, high, low, close, volume] = numbers.subarray(from, from + WIDTH);
      if (Number.isNaN(open)) continue;
      bars[symbol] = { open: open!, high: high!, low: low!, close: close!, volume: volume! };
    }
    steps.push({ time: numbers[at]!, bars });
  }
  return steps;
}
