/** The part of each target that was achieved in time, by real time and by net time. */
import type { BarResult } from './stress-load.ts';
import { CLASSES, WINDOWS, type MessageClass } from './peaks.ts';
import type { Plan } from './stress-plan.ts';
import { rounded } from './samples.ts';
import { findTarget } from './load-schedule.ts';

export interface Reached {
  readonly class: MessageClass;
  readonly window_s: number;
  readonly target: number;
  readonly offered: number;
  /** The part of `offered` that was done within the window, by real time. */
  readonly achieved: number;
  /** The same by net time, see `Span`. */
  readonly achieved_net: number;
  readonly is_reached: boolean;
}

export interface VolumeReached {
  readonly measure: string;
  readonly of: string | null;
  readonly window_s: number;
  readonly target: number;
  /** Volume within the window, by real time. */
  readonly achieved: number;
  /** The same by net time. */
  readonly achieved_net: number;
  readonly is_reached: boolean;
}

/** Returns the share of work of duration `ms` that was completed within the window. */
function getShareWithin(ms: number, window_s: number): number {
  return Math.min(1, (window_s * 1000) / Math.max(ms, 1e-9));
}

/** @param ms duration of the bar. */
export function countDoneWithin(
  bar: BarResult,
  ms: number,
  of: MessageClass,
  window_s: number,
): number {
  return Math.floor(bar.counts[of] * getShareWithin(ms, window_s));
}

/** Duration of a bar by real time or by net time. */
type Clock = 'realMs' | 'netMs';

export function computeReached(plan: Plan, bars: readonly BarResult[]): Reached[] {
  return CLASSES.flatMap((one) =>
    WINDOWS.map((window_s) => {
      const target = findTarget(plan, one, window_s)?.count ?? 0;
      const isDay = window_s === 86_400;
      const all = sum(bars, ({ counts }) => counts[one]);
      // Denied orders count as offered, too.
      const amounts = bars.map(({ asked, counts }) =>
        one === 'out' ? asked.orders + asked.cancels : counts[one],
      );
      const offered = isDay ? sum(amounts, (count) => count) : Math.max(0, ...amounts);
      const doneBy = (clock: Clock): number => {
        const took = sum(bars, (bar) => bar[clock]);
        return isDay
          ? Math.floor(all * getShareWithin(took, window_s))
          : Math.max(0, ...bars.map((bar) => countDoneWithin(bar, bar[clock], one, window_s)));
      };
      const [achieved, achieved_net] = [doneBy('realMs'), doneBy('netMs')];
      const is_reached = achieved >= target;
      return { class: one, window_s, target, offered, achieved, achieved_net, is_reached };
    }),
  );
}

export function computeVolumeReached(plan: Plan, bars: readonly BarResult[]): VolumeReached[] {
  return plan.volume.map(({ measure, of, window_s, amount: target }) => {
    // The test trades in one currency, so each currency of the target gets its share of the value.
    const together = sum(
      plan.volume.filter((one) => one.measure === measure && one.window_s === window_s),
      ({ amount }) => amount,
    );
    const part = measure === 'value' && together > 0 ? target / together : 1;
    const amounts = bars.map(({ fills }) =>
      Object.entries(fills).reduce((all, [symbol, filled]) => {
        if (measure === 'quantity') return symbol === of ? all + filled.quantity : all;
        return all + (measure === 'fills' ? filled.count : filled.value * part);
      }, 0),
    );
    const doneBy = (clock: Clock): number => {
      const took = sum(bars, (bar) => bar[clock]);
      return rounded(
        window_s === 86_400
          ? sum(amounts, (amount) => amount) * getShareWithin(took, window_s)
          : Math.max(
              0,
              ...amounts.map((one, at) => one * getShareWithin(bars[at]![clock], window_s)),
            ),
      );
    };
    const [achieved, achieved_net] = [doneBy('realMs'), doneBy('netMs')];
    const is_reached = achieved >= target * (1 - 1e-9);
    return { measure, of, window_s, target, achieved, achieved_net, is_reached };
  });
}

export interface Queue {
  /** Maximum number of messages that still waited one second after they were requested. */
  readonly depth_max: number;
  /** Maximum time until all messages of a bar were done, ms. */
  readonly drain_max_ms: number;
  readonly drain_net_max_ms: number;
}

export function computeQueue(bars: readonly BarResult[]): Queue {
  const waiting = bars.map((bar) => bar.counts.out - countDoneWithin(bar, bar.realMs, 'out', 1));
  const longest = (clock: Clock): number => rounded(Math.max(0, ...bars.map((bar) => bar[clock])));
  return {
    depth_max: Math.max(0, ...waiting),
    drain_max_ms: longest('realMs'),
    drain_net_max_ms: longest('netMs'),
  };
}

export function sum<T>(all: readonly T[], of: (one: T) => number): number {
  return all.reduce((made, one) => made + of(one), 0);
}
