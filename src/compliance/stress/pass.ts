/** Runs one pass of a stress test: plays the schedule bar by bar and records the results. */
import { createHash } from 'node:crypto';
import type { SessionState } from '../../events/session-state.ts';
import type { SessionEvent } from '../../trading/session-events.ts';
import type { TriedBot } from '../conformance/tried-session.ts';
import { inWorld, type World } from '../conformance/world.ts';
import { digest } from '../evidence-digest.ts';
import { planSchedule, requirePlayable, type Phase, type Scheduled } from './load-schedule.ts';
import { summarizePass, type PassResult, type PlayedBar } from './pass-result.ts';
import { LoadPlayer, type Meters } from './stress-load.ts';
import type { Plan } from './stress-plan.ts';
import { agreesWithVenue } from './venue-agreement.ts';

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

/** @throws ServiceError as `requirePlayable`. */
export async function runPass(
  tried: TriedBot,
  plan: Plan,
  kind: Pick<PassResult, 'limits' | 'lifted'>,
  { seed, meters, holdBars, mostMessages, budgetMs, onBar }: PassOptions,
): Promise<Passed> {
  const ackMs: number[] = [];
  return inWorld(recordAcks(tried, meters, ackMs), { seed, latencyMs: 0 }, async (world) => {
    const { symbols, sizes, config } = world;
    const schedule = planSchedule(plan, { symbols, sizes, config, holdBars, mostMessages });
    requirePlayable(schedule);
    const begun = { rss: meters.rss(), gc: meters.gc().total, cpu: meters.cpu() };
    const pass = new Pass(world, meters, ackMs);
    const until = meters.now() + budgetMs;
    await world.begin();
    for (const scheduled of schedule) {
      if (meters.now() >= until) break;
      await pass.playBar(scheduled);
      onBar(pass.bars.length, schedule.length);
    }
    const state = world.state();
    // Lets pending reconciliations of the session with the venue finish.
    await world.time.pass(SETTLE_MS);
    const { bars, player } = pass;
    const isWhole = bars.length === schedule.length;
    const { total: gc, longest } = meters.gc();
    const result = summarizePass(plan, world.config, bars, {
      ...kind,
      schedule_hash: digest({ seed, schedule }),
      evidence_hash: isWhole ? pass.evidence.digest('hex') : null,
      budgetMs,
      drops: player.countLost(),
      log: player.countLogged(),
      agreesWithVenue: agreesWithVenue(world),
      durations: { decision: player.decisionMs, check: player.checkMs, ack: ackMs },
      rssAtStart: begun.rss,
      gcMs: gc - begun.gc,
      longestGcMs: longest,
      cpuMs: meters.cpu() - begun.cpu,
      hasEnded: world.end !== undefined,
    });
    return { result, sample: pass.sample.slice(0, MOST_SAMPLED), state };
  });
}

/** The bars that a pass has played so far. */
class Pass {
  readonly player: LoadPlayer;
  readonly bars: PlayedBar[] = [];
  /** The first events of the hold. */
  readonly sample: SessionEvent[] = [];
  /** Covers the results of all bars without times. */
  readonly evidence = createHash('sha256');
  readonly #meters: Meters;
  readonly #ackMs: readonly number[];
  #phase: Phase | undefined;

  constructor(world: World, meters: Meters, ackMs: readonly number[]) {
    this.#meters = meters;
    this.#ackMs = ackMs;
    this.player = new LoadPlayer(world, meters, (events) => {
      if (this.#phase !== 'hold' || this.sample.length >= MOST_SAMPLED) return;
      this.sample.push(...events);
    });
  }

  async playBar({ phase, load }: Scheduled): Promise<void> {
    this.#phase = phase;
    const earlier = this.#ackMs.length;
    const bar = await this.player.playBar(load);
    const { realMs: _real, withheldMs: _held, netMs: _net, ...others } = bar;
    const { alertMs: _alert, alertNetMs: _alertNet, ...known } = others;
    this.evidence.update(`${JSON.stringify({ phase, ...known })}\n`);
    this.bars.push({
      phase,
      ...bar,
      ackMs: this.#ackMs.slice(earlier),
      rss: this.#meters.rss(),
      // Measuring it forces a garbage collection.
      heap: phase === 'hold' ? this.#meters.heap() : null,
    });
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
