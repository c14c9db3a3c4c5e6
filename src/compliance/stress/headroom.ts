import type { TriedBot } from '../conformance/tried-session.ts';
import { inWorld } from '../conformance/world.ts';
import { createLoad, findBurst } from './load-schedule.ts';
import type { Meters } from './meters.ts';
import { countDoneInSecond } from './pass-result.ts';
import { rounded } from './samples.ts';
import { LoadPlayer } from './stress-load.ts';
import type { Plan } from './stress-plan.ts';

const RECOVERY_BARS = 3;

/**
 * Raises the load by 50 % per step until one second is not enough, then checks that the session processes
 * all messages within one second at half the peak.
 *
 * @param most maximum number of steps.
 */
export async function findHeadroom(
  tried: TriedBot,
  plan: Plan,
  {
    seed,
    meters,
    steps: most,
  }: { readonly seed: number; readonly meters: Meters; readonly steps: number },
) {
  const target = findBurst(plan);
  return inWorld(tried, { seed, latencyMs: 0 }, async (world) => {
    const player = new LoadPlayer(world, meters);
    const playBar = (out: number) => player.playBar(createLoad(plan, world.symbols, out, 60));
    await world.begin();
    await playBar(Math.ceil(target / plan.multiplier));
    const steps: { readonly offered: number; readonly done: number; readonly real_ms: number }[] =
      [];
    /** `host`: one second would have been enough without the withheld time. */
    let broke_by: 'slow' | 'host' | 'ended' | null = null;
    for (let out = target; steps.length < most && broke_by === null; out = Math.ceil(out * 1.5)) {
      const bar = await playBar(out);
      const done = countDoneInSecond(bar, bar.took.realMs);
      steps.push({ offered: out, done, real_ms: rounded(bar.took.realMs) });
      if (world.end !== undefined) broke_by = 'ended';
      else if (bar.took.netMs > 1000) broke_by = 'slow';
      else if (bar.took.realMs > 1000) broke_by = 'host';
    }
    const best = Math.max(0, ...steps.map(({ done }) => done));
    /** Null if the session ended or the host withheld the time. */
    let recovered: boolean | null = null;
    if (broke_by !== 'ended') {
      const out = Math.ceil((target * 0.5) / plan.multiplier);
      // Earlier bars may still process a backlog.
      for (let bar = 1; bar < RECOVERY_BARS; bar += 1) await playBar(out);
      const last = await playBar(out);
      const isDoneWithin = (ms: number): boolean => countDoneInSecond(last, ms) >= out;
      recovered = isDoneWithin(last.took.realMs) || (isDoneWithin(last.took.netMs) ? null : false);
    }
    return {
      /** Throughput of the best second. */
      messages_per_second: best,
      times_target: target === 0 ? 0 : rounded(best / target),
      steps,
      broke_by,
      recovered,
    };
  });
}
