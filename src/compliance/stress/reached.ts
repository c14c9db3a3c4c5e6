/** The part of each target that was achieved in time, by real time and by net time (see `Span`). */
import { findTarget } from './load-schedule.ts';
import { CLASSES, WINDOWS, type MessageClass } from './peaks.ts';
import { rounded } from './samples.ts';
import type { BarResult } from './stress-load.ts';
import type { Plan } from './stress-plan.ts';

const DAY_S = 86_400;

/** Returns the share of work of duration `ms` that was completed within the window. */
function getShareWithin(ms: number, window_s: number): number {
  return Math.min(1, (window_s * 1000) / Math.max(ms, 1e-9));
}

/** @param ms duration of the bar. */
export function countDoneWithin(
  { counts }: Pick<BarResult, 'counts'>,
  ms: number,
  of: MessageClass,
  window_s: number,
): number {
  return Math.floor(counts[of] * getShareWithin(ms, window_s));
}

/** Computes how much of the amounts of the bars was done within the best window of that length. */
function computeAchieved(
  bars: readonly BarResult[],
  amounts: readonly number[],
  window_s: number,
  round: (amount: number) => number,
) {
  const doneBy = (clock: 'realMs' | 'netMs'): number => {
    if (window_s === DAY_S) {
      const took = sum(bars, (bar) => bar[clock]);
      return sum(amounts, (amount) => amount) * getShareWithin(took, window_s);
    }
    const done = amounts.map((amount, at) => amount * getShareWithin(bars[at]![clock], window_s));
    return Math.max(0, ...done);
  };
  return { achieved: round(doneBy('realMs')), achieved_net: round(doneBy('netMs')) };
}

export function computeReached(plan: Plan, bars: readonly BarResult[]) {
  return CLASSES.flatMap((one) =>
    WINDOWS.map((window_s) => {
      const target = findTarget(plan, one, window_s)?.count ?? 0;
      const counts = bars.map((bar) => bar.counts[one]);
      // Denied orders count as offered, too.
      const amounts =
        one === 'out' ? bars.map(({ asked }) => asked.orders + asked.cancels) : counts;
      const offered =
        window_s === DAY_S ? sum(amounts, (amount) => amount) : Math.max(0, ...amounts);
      const done = computeAchieved(bars, counts, window_s, Math.floor);
      const is_reached = done.achieved >= target;
      return { class: one, window_s, target, offered, ...done, is_reached };
    }),
  );
}

export function computeVolumeReached(plan: Plan, bars: readonly BarResult[]) {
  return plan.volume.map(({ measure, of, window_s, amount: target }) => {
    // The test trades in one currency, so each currency of the target gets its share of the value.
    const together = sum(
      plan.volume.filter((one) => one.measure === measure && one.window_s === window_s),
      ({ amount }) => amount,
    );
    const part = measure === 'value' && together > 0 ? target / together : 1;
    const amounts = bars.map(({ fills }) => {
      if (measure === 'quantity') return fills[of!]?.quantity ?? 0;
      const all = Object.values(fills);
      return sum(all, ({ count, value }) => (measure === 'fills' ? count : value * part));
    });
    const done = computeAchieved(bars, amounts, window_s, rounded);
    const is_reached = done.achieved >= target * (1 - 1e-9);
    return { measure, of, window_s, target, ...done, is_reached };
  });
}

export function computeQueue(bars: readonly BarResult[]) {
  const waiting = bars.map((bar) => bar.counts.out - countDoneWithin(bar, bar.realMs, 'out', 1));
  return {
    /** Maximum number of messages that still waited one second after they were requested. */
    depth_max: Math.max(0, ...waiting),
    /** Maximum time until all messages of a bar were done, ms. */
    drain_max_ms: rounded(Math.max(0, ...bars.map(({ realMs }) => realMs))),
    drain_net_max_ms: rounded(Math.max(0, ...bars.map(({ netMs }) => netMs))),
  };
}

export function sum<T>(all: readonly T[], of: (one: T) => number): number {
  return all.reduce((made, one) => made + of(one), 0);
}
