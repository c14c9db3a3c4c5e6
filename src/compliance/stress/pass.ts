/** Runs one pass of a stress test: plays the schedule bar by bar and measures the results. */
import { createHash } from 'node:crypto';
import type { SessionEvent } from '../../trading/session-events.ts';
import type { SessionState } from '../../events/session-state.ts';
import { digest } from '../evidence-digest.ts';
import { agreesWithVenue } from './venue-agreement.ts';
import { inWorld, type TriedBot, type World } from '../conformance/world.ts';
import { openLoader, type BarResult, type Durations, type Meters } from './stress-load.ts';
import type { Plan } from './stress-plan.ts';
import {
  countDoneWithin,
  computeQueue,
  computeReached,
  sum,
  computeVolumeReached,
  type Queue,
  type Reached,
  type VolumeReached,
} from './reached.ts';
import { computePercentiles, rounded, computeSlope, type Percentiles } from './samples.ts';
import {
  createLoad,
  requirePlayable,
  planSchedule,
  findTarget,
  type Phase,
} from './load-schedule.ts';

export interface PhaseResult {
  readonly phase: Phase;
  readonly bars: number;
  /** Virtual time at the venue. */
  readonly virtual_s: number;
  readonly asked: number;
  readonly sent: number;
  readonly denied: Readonly<Record<string, number>>;
  readonly real_ms: number;
  /** The part in which the host ran other work. */
  readonly withheld_ms: number;
  readonly ack_ms: Percentiles;
  /** `ack_ms` by net time, see `Span`. */
  readonly ack_net_ms: Percentiles;
}

export interface PassResult {
  readonly limits: 'on' | 'lifted';
  /** Differences from production that apply only to this pass. */
  readonly lifted: readonly string[];
  /** SHA-256 of the planned load, which depends only on plan, limits and seed. */
  readonly schedule_hash: string;
  /** SHA-256 of the results of all bars without times; null if the pass was cut short. */
  readonly evidence_hash: string | null;
  readonly phases: readonly PhaseResult[];
  readonly reached: readonly Reached[];
  readonly volume: readonly VolumeReached[];
  readonly orders: { readonly asked: number; readonly sent: number; readonly denied: number };
  readonly limiter: {
    /** Orders and cancels per second; null without such a limit. */
    readonly limit: number | null;
    /** Number of orders beyond the limit. */
    readonly offered: number;
    /** Number of those that were denied. */
    readonly caught: number;
    /** Number of those that were sent. */
    readonly missed: number;
    /** Number of orders within the limit that it denied. */
    readonly false_blocks: number;
  };
  /** Number of orders that the venue rejected, by reason. */
  readonly venue_rejects: Readonly<Record<string, number>>;
  /** Number of orders that neither reached the venue nor were closed. */
  readonly drops: number;
  /** Number of order events that the session generated, and of those that its log contains. */
  readonly log: { readonly generated: number; readonly persisted: number };
  readonly reconciliation: {
    /** Number of differences found between venue and session. */
    readonly breaks: number;
    /** Whether orders, positions and cash match at the end. */
    readonly agrees: boolean;
  };
  readonly positions: {
    /** Largest position in one instrument, as a share of the equity. */
    readonly largest: number;
    readonly limit: number | null;
  };
  readonly queue: Queue;
  readonly durations_ms: Readonly<Record<keyof Durations | 'alert' | 'alert_net', Percentiles>>;
  readonly host: {
    readonly real_ms: number;
    readonly withheld_ms: number;
    readonly net_ms: number;
    /**
     * Whether the pass was cut short, but would not have been without the time that the host
     * withheld.
     */
    readonly has_cut_short: boolean;
  };
  readonly memory: {
    readonly rss_start: number;
    readonly rss_max: number;
    /** Growth of process memory during the hold, bytes per 1,000 messages; null below three bars. */
    readonly rss_slope: number | null;
    /** Growth of memory in use after garbage collection, in the same unit. */
    readonly heap_slope: number | null;
    /** Number of messages during the measurement. */
    readonly messages: number;
    readonly gc_ms: number;
    readonly gc_longest_ms: number;
  };
  readonly cpu_ms: number;
  /** Whether the session ran until the end. */
  readonly went_on: boolean;
}

export interface PassOptions {
  readonly seed: number;
  readonly meters: Meters;
  readonly holdBars: number;
  readonly mostMessages: number;
  readonly budgetMs: number;
  /** Called after each bar with the number of completed bars and their total. */
  readonly onBar: (done: number, of: number) => void;
}

export interface Passed {
  readonly result: PassResult;
  /** The first events of the hold. */
  readonly sample: readonly SessionEvent[];
  /** State of the session after the last bar. */
  readonly state: SessionState | undefined;
}

const SETTLE_MS = 40_000;
const MOST_SAMPLED = 4000;
const BAR_S = 60;

/** @throws ServiceError as `requirePlayable`. */
export async function runPass(
  tried: TriedBot,
  plan: Plan,
  kind: Pick<PassResult, 'limits' | 'lifted'>,
  { seed, meters, holdBars, mostMessages, budgetMs, onBar }: PassOptions,
): Promise<Passed> {
  const durations: Durations = { decision: [], check: [], ack: [] };
  return inWorld(recordAcks(tried, meters, durations.ack), { seed }, async (world) => {
    const { symbols, sizes, config } = world;
    const schedule = planSchedule(plan, { symbols, sizes, config, holdBars, mostMessages });
    requirePlayable(schedule);
    const sample: SessionEvent[] = [];
    let phase: Phase | undefined;
    const loader = openLoader(world, meters, durations, (events) => {
      if (phase === 'hold' && sample.length < MOST_SAMPLED) sample.push(...events);
    });
    const evidence = createHash('sha256');
    const bars: PlayedBar[] = [];
    const acks: number[] = [];
    const memory: { messages: number; rss: number; heap: number }[] = [];
    const rss = { start: meters.rss(), max: 0 };
    const begun = { gc: meters.gc().total, cpu: meters.cpu() };
    const until = meters.now() + budgetMs;
    let messages = 0;
    await world.begin();
    for (const { phase: name, load } of schedule) {
      if (meters.now() >= until) break;
      phase = name;
      const { realMs, withheldMs, netMs, alertMs, alertNetMs, ...known } =
        await loader.playBar(load);
      const times = { realMs, withheldMs, netMs, alertMs, alertNetMs };
      bars.push({ phase: name, ...times, ...known });
      acks.push(durations.ack.length);
      evidence.update(`${JSON.stringify({ phase: name, ...known })}\n`);
      messages += known.asked.orders + known.asked.cancels;
      rss.max = Math.max(rss.max, meters.rss());
      if (name === 'hold') memory.push({ messages, rss: meters.rss(), heap: meters.heap() });
      onBar(bars.length, schedule.length);
    }
    const state = world.state();
    // Lets pending reconciliations of the session with the venue finish.
    await world.time.pass(SETTLE_MS);
    const isWhole = bars.length === schedule.length;
    const limit = config.risk.max_position_pct;
    const result: PassResult = {
      ...kind,
      schedule_hash: digest({ seed, schedule }),
      evidence_hash: isWhole ? evidence.digest('hex') : null,
      phases: summarizePhases(bars, acks, durations.ack),
      reached: computeReached(plan, bars),
      volume: computeVolumeReached(plan, bars),
      orders: {
        asked: sum(bars, ({ asked }) => asked.orders),
        sent: sum(bars, ({ sent }) => sent.orders),
        denied: sumAll(sumCounts(bars, 'denied')),
      },
      limiter: summarizeLimiter(world, bars),
      venue_rejects: sumCounts(bars, 'rejected'),
      drops: loader.lost(),
      log: loader.logged(),
      reconciliation: {
        breaks: sum(bars, ({ breaks }) => breaks),
        agrees: agreesWithVenue(world),
      },
      positions: {
        largest: rounded(Math.max(0, ...bars.map(({ position }) => position))),
        limit: Number.isFinite(limit) ? limit : null,
      },
      queue: computeQueue(bars),
      durations_ms: {
        decision: computePercentiles(durations.decision),
        check: computePercentiles(durations.check),
        ack: computePercentiles(durations.ack),
        alert: computePercentiles(bars.flatMap(({ alertMs }) => alertMs ?? [])),
        alert_net: computePercentiles(bars.flatMap(({ alertNetMs }) => alertNetMs ?? [])),
      },
      host: {
        real_ms: rounded(sum(bars, ({ realMs }) => realMs)),
        withheld_ms: rounded(sum(bars, ({ withheldMs }) => withheldMs)),
        net_ms: rounded(sum(bars, ({ netMs }) => netMs)),
        has_cut_short: !isWhole && sum(bars, ({ netMs }) => netMs) < budgetMs,
      },
      memory: {
        rss_start: rss.start,
        rss_max: rss.max,
        rss_slope: perThousand(computeSlope(memory.map((at) => [at.messages, at.rss]))),
        heap_slope: perThousand(computeSlope(memory.map((at) => [at.messages, at.heap]))),
        messages: (memory.at(-1)?.messages ?? 0) - (memory[0]?.messages ?? 0),
        gc_ms: rounded(meters.gc().total - begun.gc),
        gc_longest_ms: rounded(meters.gc().longest),
      },
      cpu_ms: rounded(meters.cpu() - begun.cpu),
      went_on: world.end === undefined,
    };
    return { result, sample: sample.slice(0, MOST_SAMPLED), state };
  });
}

/** How far beyond the target the bot keeps up. */
export interface Headroom {
  /** Throughput of the best second. */
  readonly messages_per_second: number;
  readonly times_target: number;
  /** Results of each step, which offers 50 % more than the previous one. */
  readonly steps: readonly {
    readonly offered: number;
    readonly done: number;
    readonly real_ms: number;
  }[];
  /**
   * `slow`: one second was not enough; `host`: it would have been enough without the withheld time;
   * `ended`: the session ended; null: not determined.
   */
  readonly broke_by: 'slow' | 'host' | 'ended' | null;
  /**
   * Whether the session afterwards processes all messages within one second at half the peak; null if
   * the session ended or the host withheld the time.
   */
  readonly recovered: boolean | null;
}

const RECOVERY_BARS = 3;

/** Raises the load by 50 % per step until one second is not enough, then checks recovery at half the peak. */
export async function findHeadroom(
  tried: TriedBot,
  plan: Plan,
  { seed, meters, steps }: { readonly seed: number; readonly meters: Meters; steps: number },
): Promise<Headroom> {
  const target = Math.max(
    ...([1, 60] as const).map((one) => findTarget(plan, 'out', one)?.count ?? 0),
  );
  return inWorld(tried, { seed }, async (world) => {
    const { symbols } = world;
    const loader = openLoader(world, meters, { decision: [], check: [], ack: [] });
    const playBar = (out: number): Promise<BarResult> =>
      loader.playBar(createLoad(plan, symbols, out, 60));
    const made: Headroom['steps'][number][] = [];
    let broke_by: Headroom['broke_by'] = null;
    await world.begin();
    await playBar(Math.ceil(target / plan.multiplier));
    for (let out = target; made.length < steps && broke_by === null; out = Math.ceil(out * 1.5)) {
      const step = await playBar(out);
      const done = countDoneWithin(step, step.realMs, 'out', 1);
      made.push({ offered: out, done, real_ms: rounded(step.realMs) });
      if (world.end !== undefined) broke_by = 'ended';
      else if (step.netMs > 1000) broke_by = 'slow';
      else if (step.realMs > 1000) broke_by = 'host';
    }
    let recovered: boolean | null = broke_by === 'ended' ? null : true;
    for (let bar = 0; bar < RECOVERY_BARS && recovered !== null; bar += 1) {
      const out = Math.ceil((target * 0.5) / plan.multiplier);
      const after = await playBar(out);
      // Earlier bars may still process a backlog.
      if (bar < RECOVERY_BARS - 1) continue;
      const isDoneWithin = (ms: number): boolean => countDoneWithin(after, ms, 'out', 1) >= out;
      recovered = isDoneWithin(after.realMs) || (isDoneWithin(after.netMs) ? null : false);
    }
    const best = Math.max(0, ...made.map(({ done }) => done));
    const times_target = target === 0 ? 0 : rounded(best / target);
    return { messages_per_second: best, times_target, steps: made, broke_by, recovered };
  });
}

type PlayedBar = BarResult & { readonly phase: Phase };

function summarizePhases(
  bars: readonly PlayedBar[],
  acks: readonly number[],
  all: readonly number[],
): PhaseResult[] {
  const hostMs = bars.flatMap(({ realMs, netMs }, at) =>
    Array.from({ length: acks[at]! - (acks[at - 1] ?? 0) }, () => realMs - netMs),
  );
  const results: PhaseResult[] = [];
  for (let at = 0; at < bars.length;) {
    const { phase } = bars[at]!;
    const next = bars.findIndex((bar, place) => place > at && bar.phase !== phase);
    const end = next === -1 ? bars.length : next;
    const own = bars.slice(at, end);
    const first = at === 0 ? 0 : acks[at - 1]!;
    const waits = all.slice(first, acks[end - 1]);
    results.push({
      phase,
      bars: own.length,
      virtual_s: own.length * BAR_S,
      asked: sum(own, ({ asked: { orders, cancels } }) => orders + cancels),
      sent: sum(own, ({ counts }) => counts.out),
      denied: sumCounts(own, 'denied'),
      real_ms: rounded(sum(own, ({ realMs }) => realMs)),
      withheld_ms: rounded(sum(own, ({ withheldMs }) => withheldMs)),
      ack_ms: computePercentiles(waits),
      ack_net_ms: computePercentiles(waits.map((ms, i) => Math.max(0, ms - hostMs[first + i]!))),
    });
    at = end;
  }
  return results;
}

function summarizeLimiter(world: World, bars: readonly BarResult[]): PassResult['limiter'] {
  const { risk, optionalLimits } = world.config;
  const limit = risk.max_messages_per_second;
  const kept = optionalLimits?.messages_kept_for_cancels ?? 0;
  const made = { offered: 0, caught: 0, missed: 0, false_blocks: 0 };
  if (!Number.isFinite(limit)) return { limit: null, ...made };
  for (const { asked, sent, denied } of bars) {
    // Cancels count toward the limit but are never denied.
    const room = Math.max(0, Math.ceil(limit - kept) - asked.cancels);
    const caught =
      (denied['max_messages_per_second'] ?? 0) + (denied['messages_kept_for_cancels'] ?? 0);
    const others = sumAll(denied) - caught;
    // An order that another limit denied is not counted here.
    made.offered += Math.max(0, asked.orders - others - room);
    made.caught += caught;
    made.missed += Math.max(0, sent.orders - room);
    made.false_blocks += Math.max(
      0,
      Math.min(asked.orders - others, room) - (asked.orders - others - caught),
    );
  }
  return { limit, ...made };
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

function perThousand(value: number | null): number | null {
  return value === null ? null : Math.round(value * 1000);
}

/** Wraps the adapter to record how long the venue takes to answer an order, by the real clock. */
function recordAcks(tried: TriedBot, { now }: Meters, acks: number[]): TriedBot {
  return {
    ...tried,
    adapter(venue, context) {
      const own = tried.adapter?.(venue, context) ?? venue;
      return {
        ...own,
        async place(order) {
          const begun = now();
          try {
            return await own.place(order);
          } finally {
            acks.push(now() - begun);
          }
        },
      };
    },
  };
}
