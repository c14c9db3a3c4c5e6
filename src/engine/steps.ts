import type { Bars } from '../market/bars.ts';

/**
 * The run's clock: every distinct bar time over all instruments, ascending. One instrument's own
 * times are used as they are, without a copy.
 */
export function mergeTimes(histories: readonly Bars[]): Float64Array {
  if (histories.length === 1) return histories[0]!.time;
  const cursors = new Uint32Array(histories.length);
  const merged = new Float64Array(histories.reduce((sum, bars) => sum + bars.length, 0));
  let steps = 0;
  for (;;) {
    let next = Infinity;
    histories.forEach((bars, index) => {
      const cursor = cursors[index]!;
      if (cursor < bars.length) next = Math.min(next, bars.time[cursor]!);
    });
    if (next === Infinity) return merged.slice(0, steps);
    histories.forEach((bars, index) => {
      if (bars.time[cursors[index]!] === next) cursors[index]! += 1;
    });
    merged[steps] = next;
    steps += 1;
  }
}
