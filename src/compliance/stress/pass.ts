/** Runs one pass of a stress test: plays the schedule bar by bar and measures the results. */
import { createHash } from 'node:crypto';
import type { SessionEvent } from '../../trading/session-events.ts';
import type { SessionState } from '../../events/session-state.ts';
import { digest } from '../report/fields.ts';
import { agree } from './agree.ts';
import { inWorld, type TriedBot, type World } from '../conformance/world.ts';
import { openLoad, type Beat, type Durations, type Meters } from './load.ts';
import type { Plan } from './plan.ts';
import {
  doneWithin,
  queueOf,
  reachedOf,
  sum,
  volumeReached,
  type Queue,
  type Reached,
  type VolumeReached,
} from './reached.ts';
import { percentiles, rounded, slope, type Percentiles } from './samples.ts';
import { loadOf, refuseTooMuch, scheduleOf, targetOf, type Phase } from './schedule.ts';

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

/** @throws ServiceError as `refuseTooMuch`. */
export async function runPass(
  tried: TriedBot,
  plan: Plan,
  kind: Pick<PassResult, 'limits' | 'lifted'>,
  { seed, meters, holdBars, mostMessages, budgetMs, onBar }: PassOptions,
): Promise<Passed> {
  const durations: Durations = { decision: [], check: [], ack: [] };
  return inWorld(timed(tried, meters, durations.ack), { seed }, async (world) => {
    const { symbols, sizes, config } = world;
    const schedule = scheduleOf(plan, { symbols, sizes, config, holdBars, mostMessages });
    refuseTooMuch(schedule);
    const sample: SessionEvent[] = [];
    let phase: Phase | undefined;
    const loader = openLoad(world, meters, durations, (events) => {
      if (phase === 'hold' && sample.length < MOST_SAMPLED) sample.push(...events);
    });
    const evidence = createHash('sha256');
    const beats: Played[] = [];
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
      const { realMs, withheldMs, netMs, alertMs, alertNetMs, ...known } = await loader.beat(load);
      const times = { realMs, withheldMs, netMs, alertMs, alertNetMs };
      beats.push({ phase: name, ...times, ...known });
      acks.push(durations.ack.length);
      evidence.update(`${JSON.stringify({ phase: name, ...known })}\n`);
      messages += known.asked.orders + known.asked.cancels;
      rss.max = Math.max(rss.max, meters.rss());
      if (name === 'hold') memory.push({ messages, rss: meters.rss(), heap: meters.heap() });
      onBar(beats.length, schedule.length);
    }
    const state = world.state();
    // Lets pending reconciliations of the session with the venue finish.
    await world.time.pass(SETTLE_MS);
    const isWhole = beats.length === schedule.length;
    const limit = config.risk.max_position_pct;
    const result: PassResult = {
      ...kind,
      schedule_hash: digest({ seed, schedule }),
      evidence_hash: isWhole ? evidence.digest('hex') : null,
      phases: phasesOf(beats, acks, durations.ack),
      reached: reachedOf(plan, beats),
      volume: volumeReached(plan, beats),
      orders: {
        asked: sum(beats, ({ asked }) => asked.orders),
        sent: sum(beats, ({ sent }) => sent.orders),
        denied: total(counted(beats, 'denied')),
      },
      limiter: limiterOf(world, beats),
      venue_rejects: counted(beats, 'rejected'),
      drops: loader.lost(),
      log: loader.logged(),
      reconciliation: { breaks: sum(beats, ({ breaks }) => breaks), agrees: agree(world) },
      positions: {
        largest: rounded(Math.max(0, ...beats.map(({ position }) => position))),
        limit: Number.isFinite(limit) ? limit : null,
      },
      queue: queueOf(beats),
      durations_ms: {
        decision: percentiles(durations.decision),
        check: percentiles(durations.check),
        ack: percentiles(durations.ack),
        alert: percentiles(beats.flatMap(({ alertMs }) => alertMs ?? [])),
        alert_net: percentiles(beats.flatMap(({ alertNetMs }) => alertNetMs ?? [])),
      },
      host: {
        real_ms: rounded(sum(beats, ({ realMs }) => realMs)),
        withheld_ms: rounded(sum(beats, ({ withheldMs }) => withheldMs)),
        net_ms: rounded(sum(beats, ({ netMs }) => netMs)),
        has_cut_short: !isWhole && sum(beats, ({ netMs }) => netMs) < budgetMs,
      },
      memory: {
        rss_start: rss.start,
        rss_max: rss.max,
        rss_slope: perThousand(slope(memory.map((at) => [at.messages, at.rss]))),
        heap_slope: perThousand(slope(memory.map((at) => [at.messages, at.heap]))),
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
    ...([1, 60] as const).map((one) => targetOf(plan, 'out', one)?.count ?? 0),
  );
  return inWorld(tried, { seed }, async (world) => {
    const { symbols } = world;
    const loader = openLoad(world, meters, { decision: [], check: [], ack: [] });
    const beat = (out: number): Promise<Beat> => loader.beat(loadOf(plan, symbols, out, 60));
    const made: Headroom['steps'][number][] = [];
    let broke_by: Headroom['broke_by'] = null;
    await world.begin();
    await beat(Math.ceil(target / plan.multiplier));
    for (let out = target; made.length < steps && broke_by === null; out = Math.ceil(out * 1.5)) {
      const step = await beat(out);
      const done = doneWithin(step, step.realMs, 'out', 1);
      made.push({ offered: out, done, real_ms: rounded(step.realMs) });
      if (world.end !== undefined) broke_by = 'ended';
      else if (step.netMs > 1000) broke_by = 'slow';
      else if (step.realMs > 1000) broke_by = 'host';
    }
    let recovered: boolean | null = broke_by === 'ended' ? null : true;
    for (let bar = 0; bar < RECOVERY_BARS && recovered !== null; bar += 1) {
      const out = Math.ceil((target * 0.5) / plan.multiplier);
      const after = await beat(out);
      // Earlier bars may still process a backlog.
      if (bar < RECOVERY_BARS - 1) continue;
      const isDoneWithin = (ms: number): boolean => doneWithin(after, ms, 'out', 1) >= out;
      recovered = isDoneWithin(after.realMs) || (isDoneWithin(after.netMs) ? null : false);
    }
    const best = Math.max(0, ...made.map(({ done }) => done));
    const times_target = target === 0 ? 0 : rounded(best / target);
    return { messages_per_second: best, times_target, steps: made, broke_by, recovered };
  });
}

type Played = Beat & { readonly phase: Phase };

function phasesOf(
  beats: readonly Played[],
  acks: readonly number[],
  all: readonly number[],
): PhaseResult[] {
  const ofHost = beats.flatMap(({ realMs, netMs }, at) =>
    Array.from({ length: acks[at]! - (acks[at - 1] ?? 0) }, () => realMs - netMs),
  );
  const results: PhaseResult[] = [];
  for (let at = 0; at < beats.length;) {
    const { phase } = beats[at]!;
    const next = beats.findIndex((beat, place) => place > at && beat.phase !== phase);
    const end = next === -1 ? beats.length : next;
    const own = beats.slice(at, end);
    const first = at === 0 ? 0 : acks[at - 1]!;
    const waits = all.slice(first, acks[end - 1]);
    results.push({
      phase,
      bars: own.length,
      virtual_s: own.length * BAR_S,
      asked: sum(own, ({ asked: { orders, cancels } }) => orders + cancels),
      sent: sum(own, ({ counts }) => counts.out),
      denied: counted(own, 'denied'),
      real_ms: rounded(sum(own, ({ realMs }) => realMs)),
      withheld_ms: rounded(sum(own, ({ withheldMs }) => withheldMs)),
      ack_ms: percentiles(waits),
      ack_net_ms: percentiles(waits.map((ms, i) => Math.max(0, ms - ofHost[first + i]!))),
    });
    at = end;
  }
  return results;
}

function limiterOf(world: World, beats: readonly Beat[]): PassResult['limiter'] {
  const { risk, optionalLimits } = world.config;
  const limit = risk.max_messages_per_second;
  const kept = optionalLimits?.messages_kept_for_cancels ?? 0;
  const made = { offered: 0, caught: 0, missed: 0, false_blocks: 0 };
  if (!Number.isFinite(limit)) return { limit: null, ...made };
  for (const { asked, sent, denied } of beats) {
    // Cancels count toward the limit but are never denied.
    const room = Math.max(0, Math.ceil(limit - kept) - asked.cancels);
    const caught =
      (denied['max_messages_per_second'] ?? 0) + (denied['messages_kept_for_cancels'] ?? 0);
    const others = total(denied) - caught;
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

function counted(beats: readonly Beat[], what: 'denied' | 'rejected'): Record<string, number> {
  const all: Record<string, number> = {};
  for (const beat of beats) {
    for (const [reason, count] of Object.entries(beat[what])) {
      all[reason] = (all[reason] ?? 0) + count;
    }
  }
  return all;
}

function total(counts: Readonly<Record<string, number>>): number {
  return sum(Object.values(counts), (count) => count);
}

function perThousand(value: number | null): number | null {
  return value === null ? null : Math.round(value * 1000);
}

/** Wraps the adapter to record how long the venue takes to answer an order, by the real clock. */
function timed(tried: TriedBot, { now }: Meters, acks: number[]): TriedBot {
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
