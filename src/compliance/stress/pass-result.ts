/** The figures of a pass of a stress test, by real time and by net time (see `Span`). */
import type { EngineConfig } from '../../engine/config.ts';
import type { World } from '../conformance/world.ts';
import type { Scheduled } from './load-schedule.ts';
import { CLASSES, findMessages, WINDOWS, type MessageClass } from './peaks.ts';
import { computePercentiles, computeSlope, rounded, sum } from './samples.ts';
import type { BarResult, LoadPlayer } from './stress-load.ts';
import type { Plan } from './stress-plan.ts';
import { agreesWithVenue } from './venue-agreement.ts';

export type PlayedBar = BarResult & {
  readonly phase: Scheduled['phase'];
  /** Durations until the venue answered the orders of this bar, ms. */
  readonly ackMs: readonly number[];
  /** Resident memory after the bar, bytes. */
  readonly rss: number;
  /** Memory in use after the bar, bytes; null if it was not measured. */
  readonly heap: number | null;
};

export function summarizePass(
  plan: Plan,
  world: World,
  player: LoadPlayer,
  bars: readonly PlayedBar[],
) {
  const { max_position_pct: limit } = world.config.risk;
  return {
    phases: summarizePhases(bars),
    reached: computeReached(plan, bars),
    volume: computeVolumeReached(plan, bars),
    orders: {
      asked: sum(bars, ({ asked }) => asked.orders),
      sent: sum(bars, ({ sent }) => sent.orders),
      denied: sum(bars, ({ denied }) => sumOf(denied)),
    },
    limiter: summarizeLimiter(world.config, bars),
    /** Number of orders that the venue rejected, by reason. */
    venue_rejects: addCounts(bars.map(({ rejected }) => rejected)),
    /** Number of orders that neither reached the venue nor were closed. */
    drops: player.lost,
    log: player.countLogged(),
    reconciliation: {
      /** Number of differences found between venue and session. */
      breaks: sum(bars, ({ breaks }) => breaks),
      /** Whether orders, positions and cash of venue and session match at the end. */
      agrees: agreesWithVenue(world),
    },
    positions: {
      /** Largest position in one instrument, as a share of the equity. */
      largest: rounded(Math.max(0, ...bars.map(({ position }) => position))),
      limit: Number.isFinite(limit) ? limit : null,
    },
    queue: summarizeQueue(bars),
    durations_ms: {
      decision: computePercentiles(player.decisionMs),
      check: computePercentiles(player.checkMs),
      ack: computePercentiles(bars.flatMap(({ ackMs }) => ackMs)),
      alert: computePercentiles(bars.flatMap(({ alert }) => alert?.ms ?? [])),
      alert_net: computePercentiles(bars.flatMap(({ alert }) => alert?.netMs ?? [])),
    },
  };
}

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
          sum(bars, ({ took }) => took[clock]),
          sum(amounts, (amount) => amount),
        )
      : Math.max(
          0,
          ...amounts.map((one, at) => getDoneWithin(window_s, bars[at]!.took[clock], one)),
        );
  return { achieved: round(doneBy('realMs')), achieved_net: round(doneBy('netMs')) };
}

function computeReached(plan: Plan, bars: readonly BarResult[]) {
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

function computeVolumeReached(plan: Plan, bars: readonly BarResult[]) {
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

function summarizeQueue(bars: readonly BarResult[]) {
  const waiting = bars.map((bar) => bar.counts.out - countDoneInSecond(bar, bar.took.realMs));
  return {
    /** Maximum number of messages that still waited one second after they were requested. */
    depth_max: Math.max(0, ...waiting),
    /** Maximum time until all messages of a bar were done, ms. */
    drain_max_ms: rounded(Math.max(0, ...bars.map(({ took }) => took.realMs))),
    drain_net_max_ms: rounded(Math.max(0, ...bars.map(({ took }) => took.netMs))),
  };
}

function summarizePhases(bars: readonly PlayedBar[]) {
  return [...Map.groupBy(bars, ({ phase }) => phase)].map(([phase, own]) => ({
    phase,
    bars: own.length,
    /** Virtual time at the venue. */
    virtual_s: own.length * BAR_S,
    asked: sum(own, countAsked),
    sent: sum(own, ({ counts }) => counts.out),
    denied: addCounts(own.map(({ denied }) => denied)),
    ...sumTimes(own),
    ack_ms: computePercentiles(own.flatMap(({ ackMs }) => ackMs)),
    ack_net_ms: computePercentiles(
      own.flatMap(({ ackMs, took }) =>
        ackMs.map((ms) => Math.max(0, ms - (took.realMs - took.netMs))),
      ),
    ),
  }));
}

function summarizeLimiter({ risk, optionalLimits }: EngineConfig, bars: readonly BarResult[]) {
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

export function sumTimes(bars: readonly BarResult[]) {
  return {
    real_ms: rounded(sum(bars, ({ took }) => took.realMs)),
    withheld_ms: rounded(sum(bars, ({ took }) => took.withheldMs)),
  };
}

/** Adds counts by reason. */
function addCounts(all: readonly Readonly<Record<string, number>>[]) {
  const total: Record<string, number> = {};
  for (const [reason, count] of all.flatMap((counts) => Object.entries(counts))) {
    total[reason] = (total[reason] ?? 0) + count;
  }
  return total;
}

function sumOf(counts: Readonly<Record<string, number>>): number {
  return sum(Object.values(counts), (count) => count);
}
