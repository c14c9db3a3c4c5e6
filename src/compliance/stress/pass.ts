/** Runs one pass of a stress test: plays the schedule bar by bar and records the results. */
import { createHash } from 'node:crypto';
import type { SessionEvent } from '../../trading/session-events.ts';
import type { TriedBot } from '../conformance/tried-session.ts';
import { inWorld, type World } from '../conformance/world.ts';
import { digest } from '../evidence-digest.ts';
import { planSchedule, requirePlayable, type Scheduled } from './load-schedule.ts';
import type { Meters } from './meters.ts';
import {
  addCounts,
  computeReached,
  computeVolumeReached,
  summarizeLimiter,
  summarizeMemory,
  summarizePhases,
  summarizeQueue,
  sumOf,
  type PlayedBar,
} from './pass-result.ts';
import { computePercentiles, rounded, sum } from './samples.ts';
import { LoadPlayer } from './stress-load.ts';
import type { Plan } from './stress-plan.ts';
import { agreesWithVenue } from './venue-agreement.ts';

export interface PassOptions {
  readonly seed: number;
  readonly meters: Meters;
  readonly holdBars: number;
  readonly mostMessages: number;
  /** Called after each bar with the number of completed bars and their total. */
  readonly onBar: (done: number, of: number) => void;
}

/** Which limits apply, and all differences from production. */
interface Kind {
  readonly limits: 'on' | 'lifted';
  readonly lifted: readonly string[];
}

/** Time that late retries and reconciliations of the session with the venue take, ms. */
const SETTLE_MS = 40_000;
/** Real time after which a pass is cut short, ms. */
const BUDGET_MS = 300_000;
const MOST_SAMPLED = 4000;

/** @throws ServiceError as `requirePlayable`. */
export async function runPass(tried: TriedBot, plan: Plan, kind: Kind, options: PassOptions) {
  const { seed, meters, onBar } = options;
  const ackMs: number[] = [];
  return inWorld(recordAcks(tried, meters, ackMs), { seed, latencyMs: 0 }, async (world) => {
    const { symbols, sizes, config } = world;
    const schedule = planSchedule(plan, { symbols, sizes, config, ...options });
    requirePlayable(schedule);
    const pass = new Pass(world, meters, ackMs);
    const until = meters.now() + BUDGET_MS;
    await world.begin();
    for (const scheduled of schedule) {
      if (meters.now() >= until) break;
      await pass.playBar(scheduled);
      onBar(pass.bars.length, schedule.length);
    }
    const state = world.state();
    await world.time.pass(SETTLE_MS);
    const isWhole = pass.bars.length === schedule.length;
    const result = {
      ...kind,
      schedule_hash: digest({ seed, schedule }),
      ...pass.summarize(plan, isWhole),
    };
    return { result, sample: pass.sample.slice(0, MOST_SAMPLED), state };
  });
}

export type PassResult = Awaited<ReturnType<typeof runPass>>['result'];

/** The bars that a pass has played so far. */
class Pass {
  readonly bars: PlayedBar[] = [];
  /** The first events of the hold. */
  readonly sample: SessionEvent[] = [];
  readonly #world: World;
  readonly #meters: Meters;
  readonly #ackMs: readonly number[];
  readonly #begun: { readonly rss: number; readonly gc: number; readonly cpu: number };
  readonly #player: LoadPlayer;
  readonly #evidence = createHash('sha256');
  #phase: Scheduled['phase'] | undefined;

  constructor(world: World, meters: Meters, ackMs: readonly number[]) {
    this.#world = world;
    this.#meters = meters;
    this.#ackMs = ackMs;
    this.#begun = { rss: meters.rss(), gc: meters.gc().total, cpu: meters.cpu() };
    this.#player = new LoadPlayer(world, meters, (events) => {
      if (this.#phase !== 'hold' || this.sample.length >= MOST_SAMPLED) return;
      this.sample.push(...events);
    });
  }

  async playBar({ phase, load }: Scheduled): Promise<void> {
    this.#phase = phase;
    const earlier = this.#ackMs.length;
    const bar = await this.#player.playBar(load);
    const { realMs: _real, withheldMs: _held, netMs: _net, ...others } = bar;
    const { alertMs: _alert, alertNetMs: _alertNet, ...known } = others;
    this.#evidence.update(`${JSON.stringify({ phase, ...known })}\n`);
    this.bars.push({
      phase,
      ...bar,
      ackMs: this.#ackMs.slice(earlier),
      rss: this.#meters.rss(),
      // Measuring it forces a garbage collection.
      heap: phase === 'hold' ? this.#meters.heap() : null,
    });
  }

  /** @param isWhole whether the pass was not cut short. */
  summarize(plan: Plan, isWhole: boolean) {
    const [bars, world, player] = [this.bars, this.#world, this.#player];
    const { max_position_pct: limit } = world.config.risk;
    const { total: gc, longest } = this.#meters.gc();
    const netMs = sum(bars, (bar) => bar.netMs);
    return {
      /** SHA-256 of the results of all bars without times; null if the pass was cut short. */
      evidence_hash: isWhole ? this.#evidence.digest('hex') : null,
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
        ack: computePercentiles(this.#ackMs),
        alert: computePercentiles(bars.flatMap(({ alertMs }) => alertMs ?? [])),
        alert_net: computePercentiles(bars.flatMap(({ alertNetMs }) => alertNetMs ?? [])),
      },
      host: {
        real_ms: rounded(sum(bars, ({ realMs }) => realMs)),
        withheld_ms: rounded(sum(bars, ({ withheldMs }) => withheldMs)),
        net_ms: rounded(netMs),
        /** Whether the pass was cut short, but would not have been without the withheld time. */
        has_cut_short: !isWhole && netMs < BUDGET_MS,
      },
      memory: {
        rss_start: this.#begun.rss,
        ...summarizeMemory(bars),
        gc_ms: rounded(gc - this.#begun.gc),
        gc_longest_ms: rounded(longest),
      },
      cpu_ms: rounded(this.#meters.cpu() - this.#begun.cpu),
      /** Whether the session ran until the end. */
      went_on: world.end === undefined,
    };
  }
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
