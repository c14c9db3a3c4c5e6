/** Runs one pass of a stress test: plays the schedule bar by bar and records the results. */
import { createHash } from 'node:crypto';
import type { SessionEvent } from '../../trading/session-events.ts';
import type { TriedBot } from '../conformance/tried-session.ts';
import { inWorld } from '../conformance/world.ts';
import { digest } from '../evidence-digest.ts';
import { planSchedule, requirePlayable, type Scheduled } from './load-schedule.ts';
import type { Meters } from './meters.ts';
import { summarizeMemory, summarizePass, sumTimes, type PlayedBar } from './pass-result.ts';
import { rounded, sum } from './samples.ts';
import { LoadPlayer } from './stress-load.ts';
import type { Plan } from './stress-plan.ts';

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
    const begun = { rss: meters.rss(), gc: meters.gc().total, cpu: meters.cpu() };
    let phase: Scheduled['phase'] | undefined;
    const sample: SessionEvent[] = [];
    const player = new LoadPlayer(world, meters, (events) => {
      if (phase === 'hold' && sample.length < MOST_SAMPLED) sample.push(...events);
    });
    const bars: PlayedBar[] = [];
    const evidence = createHash('sha256');
    const until = meters.now() + BUDGET_MS;
    await world.begin();
    for (const scheduled of schedule) {
      if (meters.now() >= until) break;
      phase = scheduled.phase;
      const earlier = ackMs.length;
      const bar = await player.playBar(scheduled.load);
      const { took: _took, alert: _alert, ...known } = bar;
      evidence.update(`${JSON.stringify({ phase, ...known })}\n`);
      // Measuring the heap forces a garbage collection.
      const heap = phase === 'hold' ? meters.heap() : null;
      bars.push({ phase, ...bar, ackMs: ackMs.slice(earlier), rss: meters.rss(), heap });
      onBar(bars.length, schedule.length);
    }
    const state = world.state();
    await world.time.pass(SETTLE_MS);
    const isWhole = bars.length === schedule.length;
    const netMs = sum(bars, ({ took }) => took.netMs);
    const { total: gc, longest } = meters.gc();
    const result = {
      ...kind,
      schedule_hash: digest({ seed, schedule }),
      /** SHA-256 of the results of all bars without times; null if the pass was cut short. */
      evidence_hash: isWhole ? evidence.digest('hex') : null,
      ...summarizePass(plan, world, player, bars),
      host: {
        ...sumTimes(bars),
        net_ms: rounded(netMs),
        /** Whether the pass was cut short, but would not have been without the withheld time. */
        has_cut_short: !isWhole && netMs < BUDGET_MS,
      },
      memory: {
        rss_start: begun.rss,
        ...summarizeMemory(bars),
        gc_ms: rounded(gc - begun.gc),
        gc_longest_ms: rounded(longest),
      },
      cpu_ms: rounded(meters.cpu() - begun.cpu),
      /** Whether the session ran until the end. */
      went_on: world.end === undefined,
    };
    return { result, sample: sample.slice(0, MOST_SAMPLED), state };
  });
}

export type PassResult = Awaited<ReturnType<typeof runPass>>['result'];

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
