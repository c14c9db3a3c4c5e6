/** The figures of a pass of a stress test, by real time and by net time (see `Span`). */
import type { EngineConfig } from '../../engine/config.ts';
import type { Scheduled } from './load-schedule.ts';
import { CLASSES, findMessages, WINDOWS, type MessageClass } from './peaks.ts';
import { computePercentiles, computeSlope, rounded, sum } from './samples.ts';
import type { BarResult } from './stress-load.ts';
import type { Plan } from './stress-plan.ts';

export type PlayedBar = BarResult & {
  readonly phase: Scheduled['phase'];
  /** Durations until the venue answered the orders of this bar, ms. */
  readonly ackMs: readonly number[];
  /** Resident memory after the bar, bytes. */
  readonly rss: number;
  /** Memory in use after the bar, bytes; null if it was not measured. */
  readonly heap: number | null;
};

const BAR_S = 60;
const DAY_S = 86_400;

/** Returns the part of `amount` that was completed within the window by work of duration `ms`. */
function getDoneWithin(window_s: number, ms: number, amount: number): number {
  return amount * Math.min(1, (window_s * 1000) / Math.max(ms, 1e-9));
}

/** Counts the messages of a bar that were completed within one second. @param ms duration of the bar. */
export function countDoneInSecond({ counts }: Pick<BarResult, 'counts'>, ms: number): number {
  return Math.floor(getDoneWithin(1, ms, counts.out));
}

/** Returns how much of the amounts of the bars was done within the best window of that length. */
function computeAchieved(
  bars: readonly BarResult[],
  amounts: readonly number[],
  window_s: number,
  round: (amount: number) => number,
) {
  const doneBy = (clock: 'realMs' | 'netMs'): number =>
    window_s === DAY_S
      ? getDoneWithin(
          DAY_S,
          sum(bars, (bar) => bar[clock]),
          sum(amounts, (amount) => amount),
        )
      : Math.max(0, ...amounts.map((one, at) => getDoneWithin(window_s, bars[at]![clock], one)));
  return { achieved: round(doneBy('realMs')), achieved_net: round(doneBy('netMs')) };
}

export function computeReached(plan: Plan, bars: readonly BarResult[]) {
  return CLASSES.flatMap((one: MessageClass) =>
    WINDOWS.map((window_s) => {
      const target = findMessages(plan.messages, one, window_s)?.count ?? 0;
      const counts = bars.map((bar) => bar.counts[one]);
      // Denied orders count as offered, too.
      const amounts = one === 'out' ? bars.map(countAsked) : counts;
      const offered =
        window_s === DAY_S ? sum(amounts, (amount) => amount) : Math.max(0, ...amounts);
      const done = computeAchieved(bars, counts, window_s, Math.floor);
      return {
        class: one,
        window_s,
        target,
        offered,
        ...done,
        is_reached: done.achieved >= target,
      };
    }),
  );
}

export function computeVolumeReached(plan: Plan, bars: readonly BarResult[]) {
  return plan.volume.map(({ measure, of, window_s, amount: target }) => {
    // The test trades in one currency, so each currency of the target gets its share of the value.
    const same = plan.volume.filter((one) => one.measure === measure && one.window_s === window_s);
    const total = sum(same, ({ amount }) => amount);
    const part = total > 0 ? target / total : 1;
    const amounts = bars.map(({ fills }) => {
      if (measure === 'quantity') return fills[of!]?.quantity ?? 0;
      return sum(Object.values(fills), ({ count, value }) =>
        measure === 'fills' ? count : value * part,
      );
    });
    const done = computeAchieved(bars, amounts, window_s, rounded);
    const is_reached = done.achieved >= target * (1 - 1e-9);
    return { measure, of, window_s, target, ...done, is_reached };
  });
}

function countAsked({ asked }: BarResult): number {
  return asked.orders + asked.cancels;
}

export function summarizeQueue(bars: readonly BarResult[]) {
  const waiting = bars.map((bar) => bar.counts.out - countDoneInSecond(bar, bar.realMs));
  return {
    /** Maximum number of messages that still waited one second after they were requested. */
    depth_max: Math.max(0, ...waiting),
    /** Maximum time until all messages of a bar were done, ms. */
    drain_max_ms: rounded(Math.max(0, ...bars.map(({ realMs }) => realMs))),
    drain_net_max_ms: rounded(Math.max(0, ...bars.map(({ netMs }) => netMs))),
  };
}

export function summarizePhases(bars: readonly PlayedBar[]) {
  return [...Map.groupBy(bars, ({ phase }) => phase)].map(([phase, own]) => ({
    phase,
    bars: own.length,
    /** Virtual time at the venue. */
    virtual_s: own.length * BAR_S,
    asked: sum(own, countAsked),
    sent: sum(own, ({ counts }) => counts.out),
    denied: addCounts(own.map(({ denied }) => denied)),
    real_ms: rounded(sum(own, ({ realMs }) => realMs)),
    withheld_ms: rounded(sum(own, ({ withheldMs }) => withheldMs)),
    ack_ms: computePercentiles(own.flatMap(({ ackMs }) => ackMs)),
    ack_net_ms: computePercentiles(
      own.flatMap(({ ackMs, realMs, netMs }) =>
        ackMs.map((ms) => Math.max(0, ms - (realMs - netMs))),
      ),
    ),
  }));
}

export function summarizeLimiter(
  { risk, optionalLimits }: EngineConfig,
  bars: readonly BarResult[],
) {
  const isLimited = Number.isFinite(risk.max_messages_per_second);
  const most = risk.max_messages_per_second - (optionalLimits?.messages_kept_for_cancels ?? 0);
  const orders = (isLimited ? bars : []).map(({ asked, sent, denied }) => {
    // Cancels count toward the limit but are never denied.
    const room = Math.max(0, Math.ceil(most) - asked.cancels);
    const caught =
      (denied['max_messages_per_second'] ?? 0) + (denied['messages_kept_for_cancels'] ?? 0);
    // An order that another limit denied is not counted here.
    const asking = asked.orders - (sumOf(denied) - caught);
    return { asking, room, caught, sent: sent.orders };
  });
  return {
    /** Orders and cancels per second; null without such a limit. */
    limit: isLimited ? risk.max_messages_per_second : null,
    /** Number of orders beyond the limit. */
    offered: sum(orders, ({ asking, room }) => Math.max(0, asking - room)),
    /** Number of those that were denied, and of those that were sent. */
    caught: sum(orders, ({ caught }) => caught),
    missed: sum(orders, ({ sent, room }) => Math.max(0, sent - room)),
    /** Number of orders within the limit that it denied. */
    false_blocks: sum(orders, ({ asking, room, caught }) =>
      Math.max(0, Math.min(asking, room) - (asking - caught)),
    ),
  };
}

export function summarizeMemory(bars: readonly PlayedBar[]) {
  let messages = 0;
  const points = bars.flatMap((bar) => {
    messages += countAsked(bar);
    return bar.heap === null ? [] : [{ messages, rss: bar.rss, heap: bar.heap }];
  });
  const slopeOf = (what: 'rss' | 'heap'): number | null => {
    const slope = computeSlope(points.map((at) => [at.messages, at[what]]));
    return slope === null ? null : Math.round(slope * 1000);
  };
  return {
    rss_max: Math.max(0, ...bars.map(({ rss }) => rss)),
    /** Growth of process memory during the hold, bytes per 1,000 messages; null below three bars. */
    rss_slope: slopeOf('rss'),
    /** Growth of memory in use after garbage collection, in the same unit. */
    heap_slope: slopeOf('heap'),
    /** Number of messages during the measurement. */
    messages: (points.at(-1)?.messages ?? 0) - (points[0]?.messages ?? 0),
  };
}

/** Adds counts by reason. */
export function addCounts(all: readonly Readonly<Record<string, number>>[]) {
  const total: Record<string, number> = {};
  for (const [reason, count] of all.flatMap((counts) => Object.entries(counts))) {
    total[reason] = (total[reason] ?? 0) + count;
  }
  return total;
}

export function sumOf(counts: Readonly<Record<string, number>>): number {
  return sum(Object.values(counts), (count) => count);
}
