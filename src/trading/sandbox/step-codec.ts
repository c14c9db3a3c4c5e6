import type { Signals } from '../../engine/model-signals.ts';
import type { Step } from '../../engine/steps.ts';
import type { Candle } from '../../market/bars.ts';

/** Values per bar: open, high, low, close, volume. Its signals follow them. */
const WIDTH = 5;

/**
 * Encodes steps as rows of doubles: the time, then the bar and signals of each symbol. They are NaN
 * for a symbol without a bar.
 *
 * @param sentBars count of bars of each symbol already sent; updated by this call.
 */
export function encodeSteps(
  symbols: readonly string[],
  steps: readonly Step[],
  signals: Signals | undefined,
  sentBars: Uint32Array,
): Uint8Array {
  const width = WIDTH + (signals?.names.length ?? 0);
  const row = 1 + width * symbols.length;
  const numbers = new Float64Array(steps.length * row).fill(Number.NaN);
  for (const [i, { time, bars }] of steps.entries()) {
    numbers[i * row] = time;
    for (const [s, symbol] of symbols.entries()) {
      // A symbol may be named like a property that every object inherits.
      if (!Object.hasOwn(bars, symbol)) continue;
      const { open, high, low, close, volume } = bars[symbol]!;
      const at = sentBars[s]!;
      const values = signals?.columns[s]!.map((column) => column[at]!) ?? [];
      numbers.set([open, high, low, close, volume, ...values], i * row + 1 + width * s);
      sentBars[s] = at + 1;
    }
  }
  return new Uint8Array(numbers.buffer);
}

/**
 * Decodes the output of `encodeSteps`.
 *
 * @param onSignals receives the signals of each bar, in the order of the bars.
 */
export function decodeSteps(
  symbols: readonly string[],
  bytes: Uint8Array,
  signals: number,
  onSignals: (symbol: number, values: readonly number[]) => void,
): Step[] {
  const width = WIDTH + signals;
  const row = 1 + width * symbols.length;
  const numbers = new Float64Array(new Uint8Array(bytes).buffer);
  const steps: Step[] = [];
  for (let at = 0; at < numbers.length; at += row) {
    const bars: Record<string, Candle> = {};
    for (const [s, symbol] of symbols.entries()) {
      const from = at + 1 + width * s;
      const [open, high, low, close, volume, ...values] = numbers.subarray(from, from + width);
      if (Number.isNaN(open)) continue;
      bars[symbol] = { open: open!, high: high!, low: low!, close: close!, volume: volume! };
      onSignals(s, values);
    }
    steps.push({ time: numbers[at]!, bars });
  }
  return steps;
}
