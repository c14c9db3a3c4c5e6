import type { TriedBot } from '../conformance/tried-session.ts';
import { inWorld } from '../conformance/world.ts';
import { createLoad, findBurst } from './load-schedule.ts';
import { countDoneWithin } from './reached.ts';
import { rounded } from './samples.ts';
import { LoadPlayer, type BarResult, type Meters } from './stress-load.ts';
import type { Plan } from './stress-plan.ts';

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
  {
    seed,
    meters,
    steps: mostSteps,
  }: { readonly seed: number; readonly meters: Meters; readonly steps: number },
): Promise<Headroom> {
  const target = findBurst(plan);
  return inWorld(tried, { seed, latencyMs: 0 }, async (world) => {
    const player = new LoadPlayer(world, meters);
    const playBar = (out: number): Promise<BarResult> =>
      player.playBar(createLoad(plan, world.symbols, out, 60));
    await world.begin();
    await playBar(Math.ceil(target / plan.multiplier));
    const steps: Headroom['steps'][number][] = [];
    let broke_by: Headroom['broke_by'] = null;
    for (
      let out = target;
      steps.length < mostSteps && broke_by === null;
      out = Math.ceil(out * 1.5)
    ) {
      const step = await playBar(out);
      const done = countDoneWithin(step, step.realMs, 'out', 1);
      steps.push({ offered: out, done, real_ms: rounded(step.realMs) });
      if (world.end !== undefined) broke_by = 'ended';
      else if (step.netMs > 1000) broke_by = 'slow';
      else if (step.realMs > 1000) broke_by = 'host';
    }
    const best = Math.max(0, ...steps.map(({ done }) => done));
    return {
      messages_per_second: best,
      times_target: target === 0 ? 0 : rounded(best / target),
      steps,
      broke_by,
      recovered:
        broke_by === 'ended'
          ? null
          : await hasRecovered(Math.ceil((target * 0.5) / plan.multiplier), playBar),
    };
  });
}

async function hasRecovered(
  out: number,
  playBar: (out: number) => Promise<BarResult>,
): Promise<boolean | null> {
  // Earlier bars may still process a backlog.
  for (let bar = 1; bar < RECOVERY_BARS; bar += 1) await playBar(out);
  const { realMs, netMs, ...bar } = await playBar(out);
  const isDoneWithin = (ms: number): boolean => countDoneWithin(bar, ms, 'out', 1) >= out;
  if (isDoneWithin(realMs)) return true;
  return isDoneWithin(netMs) ? null : false;
}
