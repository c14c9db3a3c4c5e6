/** Summarizes the bars of a pass of a stress test. */
import type { EngineConfig } from '../../engine/config.ts';
import type { Phase } from './load-schedule.ts';
import { computeQueue, computeReached, computeVolumeReached, sum } from './reached.ts';
import { computePercentiles, computeSlope, rounded } from './samples.ts';
import type { BarResult } from './stress-load.ts';
import type { Plan } from './stress-plan.ts';

export type PlayedBar = BarResult & {
  readonly phase: Phase;
  /** Durations until the venue answered the orders of this bar, ms. */
  readonly ackMs: readonly number[];
  /** Resident memory after the bar, bytes. */
  readonly rss: number;
  /** Memory in use after the bar, bytes; null if it was not measured. */
  readonly heap: number | null;
};

/** Facts about a pass as a whole. */
interface PassRecord {
  readonly limits: 'on' | 'lifted';
  /** Differences from production that apply only to this pass. */
  readonly lifted: readonly string[];
  /** SHA-256 of the planned load, which depends only on plan, limits and seed. */
  readonly schedule_hash: string;
  /** SHA-256 of the results of all bars without times; null if the pass was cut short. */
  readonly evidence_hash: string | null;
  /** Maximum real time of the pass, ms. */
  readonly budgetMs: number;
  /** Number of orders that neither reached the venue nor were closed. */
  readonly drops: number;
  /** Number of order events that the session generated, and of those that its log contains. */
  readonly log: { readonly generated: number; readonly persisted: number };
  /** Whether orders, positions and cash of venue and session match at the end. */
  readonly agreesWithVenue: boolean;
  /** ms. */
  readonly durations: Readonly<Record<'decision' | 'check' | 'ack', readonly number[]>>;
  /** Bytes. */
  readonly rssAtStart: number;
  readonly gcMs: number;
  readonly longestGcMs: number;
  readonly cpuMs: number;
  readonly hasEnded: boolean;
}

export function summarizePass(
  plan: Plan,
  config: EngineConfig,
  bars: readonly PlayedBar[],
  record: PassRecord,
) {
  const { limits, lifted, schedule_hash, evidence_hash, drops, log } = record;
  const mostPosition = config.risk.max_position_pct;
  return {
    limits,
    lifted,
    schedule_hash,
    evidence_hash,
    phases: summarizePhases(bars),
    reached: computeReached(plan, bars),
    volume: computeVolumeReached(plan, bars),
    orders: {
      asked: sum(bars, ({ asked }) => asked.orders),
      sent: sum(bars, ({ sent }) => sent.orders),
      denied: sumAll(sumCounts(bars, 'denied')),
    },
    limiter: summarizeLimiter(config, bars),
    /** Number of orders that the venue rejected, by reason. */
    venue_rejects: sumCounts(bars, 'rejected'),
    drops,
    log,
    reconciliation: {
      /** Number of differences found between venue and session. */
      breaks: sum(bars, ({ breaks }) => breaks),
      agrees: record.agreesWithVenue,
    },
    positions: {
      /** Largest position in one instrument, as a share of the equity. */
      largest: rounded(Math.max(0, ...bars.map(({ position }) => position))),
      limit: Number.isFinite(mostPosition) ? mostPosition : null,
    },
    queue: computeQueue(bars),
    durations_ms: {
      decision: computePercentiles(record.durations.decision),
      check: computePercentiles(record.durations.check),
      ack: computePercentiles(record.durations.ack),
      alert: computePercentiles(bars.flatMap(({ alertMs }) => alertMs ?? [])),
      alert_net: computePercentiles(bars.flatMap(({ alertNetMs }) => alertNetMs ?? [])),
    },
    host: {
      real_ms: rounded(sum(bars, ({ realMs }) => realMs)),
      /** The part in which the host ran other work. */
      withheld_ms: rounded(sum(bars, ({ withheldMs }) => withheldMs)),
      net_ms: rounded(sum(bars, ({ netMs }) => netMs)),
      /** Whether the pass was cut short, but would not have been without the withheld time. */
      has_cut_short: evidence_hash === null && sum(bars, ({ netMs }) => netMs) < record.budgetMs,
    },
    memory: summarizeMemory(bars, record),
    cpu_ms: rounded(record.cpuMs),
    /** Whether the session ran until the end. */
    went_on: !record.hasEnded,
  };
}

export type PassResult = ReturnType<typeof summarizePass>;

const BAR_S = 60;

function summarizePhases(bars: readonly PlayedBar[]) {
  return [...Map.groupBy(bars, ({ phase }) => phase)].map(([phase, own]) => ({
    phase,
    bars: own.length,
    /** Virtual time at the venue. */
    virtual_s: own.length * BAR_S,
    asked: sum(own, ({ asked: { orders, cancels } }) => orders + cancels),
    sent: sum(own, ({ counts }) => counts.out),
    denied: sumCounts(own, 'denied'),
    real_ms: rounded(sum(own, ({ realMs }) => realMs)),
    withheld_ms: rounded(sum(own, ({ withheldMs }) => withheldMs)),
    ack_ms: computePercentiles(own.flatMap(({ ackMs }) => ackMs)),
    /** `ack_ms` by net time, see `Span`. */
    ack_net_ms: computePercentiles(
      own.flatMap(({ ackMs, realMs, netMs }) =>
        ackMs.map((ms) => Math.max(0, ms - (realMs - netMs))),
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
    const asking = asked.orders - (sumAll(denied) - caught);
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

function summarizeMemory(
  bars: readonly PlayedBar[],
  { rssAtStart, gcMs, longestGcMs }: PassRecord,
) {
  let messages = 0;
  const points = bars.flatMap(({ asked, rss, heap }) => {
    messages += asked.orders + asked.cancels;
    return heap === null ? [] : [{ messages, rss, heap }];
  });
  const slopeOf = (what: 'rss' | 'heap'): number | null => {
    const slope = computeSlope(points.map((at) => [at.messages, at[what]]));
    return slope === null ? null : Math.round(slope * 1000);
  };
  return {
    rss_start: rssAtStart,
    rss_max: Math.max(0, ...bars.map(({ rss }) => rss)),
    /** Growth of process memory during the hold, bytes per 1,000 messages; null below three bars. */
    rss_slope: slopeOf('rss'),
    /** Growth of memory in use after garbage collection, in the same unit. */
    heap_slope: slopeOf('heap'),
    /** Number of messages during the measurement. */
    messages: (points.at(-1)?.messages ?? 0) - (points[0]?.messages ?? 0),
    gc_ms: rounded(gcMs),
    gc_longest_ms: rounded(longestGcMs),
  };
}

function sumCounts(
  bars: readonly BarResult[],
  what: 'denied' | 'rejected',
): Record<string, number> {
  const all: Record<string, number> = {};
  for (const bar of bars) {
    for (const [reason, count] of Object.entries(bar[what])) {
      all[reason] = (all[reason] ?? 0) + count;
    }
  }
  return all;
}

function sumAll(counts: Readonly<Record<string, number>>): number {
  return sum(Object.values(counts), (count) => count);
}
