import { mergeTimes } from '../../engine/steps.ts';
import { cutTo, type Window } from './shared-window.ts';
import type { Curve } from '../curve-statistics.ts';

/** Curves of several runs at the same instants; `null` before the first and after the last step of a run. */
export interface OverlaidCurves {
  /** Seconds since the epoch, UTC, ascending. */
  readonly time: readonly number[];
  /** Growth of each run since its first step here, as a share. */
  readonly growth: readonly (readonly (number | null)[])[];
  /** Deepest drawdown since the previous instant, at most zero. */
  readonly drawdown: readonly (readonly (number | null)[])[];
}

/**
 * Cuts the runs to the window, or, without a window, draws each over its own time.
 *
 * @param limit largest number of instants
 */
export function overlayCurves(
  runs: readonly Curve[],
  window: Window | undefined,
  limit: number,
): OverlaidCurves {
  const curves = runs.map((run) => cutTo(run, window ?? { from: -Infinity, to: Infinity }));
  const all = mergeTimes(curves.map(({ time }) => ({ time, length: time.length })));
  const every = Math.ceil(all.length / limit);
  // The last instant is always included.
  const time = all.filter((_, index) => (all.length - 1 - index) % every === 0);
  const lines = curves.map((curve) => linesOf(curve, time));
  return {
    time: Array.from(time, (ms) => ms / 1000),
    growth: lines.map(({ growth }) => growth),
    drawdown: lines.map(({ drawdown }) => drawdown),
  };
}

function linesOf({ time, equity, initialCash }: ReturnType<typeof cutTo>, instants: Float64Array) {
  const growth: (number | null)[] = [];
  const drawdown: (number | null)[] = [];
  let peak = initialCash;
  let step = 0;
  for (const instant of instants) {
    const isOver = step === time.length;
    let lowest = Infinity;
    for (; step < time.length && time[step]! <= instant; step += 1) {
      peak = Math.max(peak, equity[step]!);
      lowest = Math.min(lowest, equity[step]! / peak);
    }
    const isOutside = step === 0 || isOver;
    growth.push(isOutside ? null : round(equity[step - 1]! / initialCash - 1));
    // Other runs can have steps between two of this one.
    if (lowest === Infinity && !isOutside) lowest = equity[step - 1]! / peak;
    drawdown.push(isOutside ? null : round(Math.max(-1, lowest - 1)));
  }
  return { growth, drawdown };
}

function round(value: number): number {
  return Number(value.toPrecision(7));
}
