/**
 * Measures the time that the host withholds from the thread under test, to distinguish a busy host
 * from a slow bot.
 */
import { readFileSync } from 'node:fs';

export interface HostMeters {
  /** ms from some moment. */
  readonly now: () => number;
  /** Processor time that this thread has used so far, ms. */
  readonly cpu: () => number;
  /** Time so far in which this thread was ready to run but the host ran other work, ms. */
  readonly withheld: () => number;
  /**
   * Duration of a fixed computation now, divided by its fastest duration in this run; at least 1.
   */
  readonly slowdown: () => number;
}

/** Duration, split into the host's part and the bot's, ms. */
export interface Span {
  readonly realMs: number;
  /** The part in which the host ran other work. */
  readonly withheldMs: number;
  /** The part that counts against the bot. */
  readonly netMs: number;
}

/** A host that withholds more than this share of a span has disturbed it. */
const DISTURBED_SHARE = 0.1;
/** Smaller differences in processor speed are measurement noise. */
const LEAST_SLOWDOWN = 1.25;

/**
 * Starts to measure. On a healthy host, all time counts against the bot, including its own waits.
 * In a disturbed span, only the processor time of the thread counts, since the helper threads on
 * which it waits cannot run either.
 */
export function openSpan(meters: HostMeters): () => Span {
  const begun = { now: meters.now(), cpu: meters.cpu(), withheld: meters.withheld() };
  return () => {
    const realMs = meters.now() - begun.now;
    const withheldMs = Math.min(realMs, Math.max(0, meters.withheld() - begun.withheld));
    const isDisturbed = withheldMs > DISTURBED_SHARE * realMs;
    const own = isDisturbed
      ? Math.min(realMs - withheldMs, meters.cpu() - begun.cpu)
      : realMs - withheldMs;
    const slowdown = meters.slowdown();
    return { realMs, withheldMs, netMs: slowdown < LEAST_SLOWDOWN ? own : own / slowdown };
  };
}

/** @param now monotonic time, ms. @param cpu processor time of this thread, ms. */
export function openHost(
  now: () => number,
  cpu: () => number,
): Pick<HostMeters, 'withheld' | 'slowdown'> {
  let fastest = Infinity;
  const slowdown = (): number => {
    const took = timeOfReference(cpu);
    fastest = Math.min(fastest, took);
    return took / fastest;
  };
  for (let i = 0; i < CALIBRATION_ROUNDS; i += 1) slowdown();
  const stolen = openStolen(now);
  return {
    slowdown,
    withheld() {
      const waited = readRunDelay();
      // On other systems: the thread never waits by itself, so time without processor use is
      // withheld time.
      return waited === undefined ? now() - cpu() : waited + stolen();
    },
  };
}

const CALIBRATION_ROUNDS = 20;
const REFERENCE_STEPS = 100_000;
const REFERENCE_ROUNDS = 3;

/** Processor time of a fixed computation that does not use the heap, ms. */
function timeOfReference(cpu: () => number): number {
  let least = Infinity;
  for (let round = 0; round < REFERENCE_ROUNDS; round += 1) {
    const begun = cpu();
    let value = round + 1;
    for (let step = 0; step < REFERENCE_STEPS; step += 1) {
      value ^= value << 13;
      value ^= value >>> 17;
      value ^= value << 5;
    }
    // The value is never 0, but the compiler cannot know that, so it cannot skip the computation.
    if (value !== 0) least = Math.min(least, cpu() - begun);
  }
  // The processor clock has a resolution of one microsecond.
  return Math.max(least, 0.001);
}

/**
 * Time that this thread has waited for a processor, ms; undefined if the system does not measure
 * it.
 */
function readRunDelay(): number | undefined {
  const [, waited] = readProc('/proc/thread-self/schedstat')?.split(' ') ?? [];
  return waited === undefined ? undefined : Number(waited) / 1e6;
}

/** Estimated time that the hypervisor gave to other machines while this thread ran, ms. */
function openStolen(now: () => number): () => number {
  let before = { now: now(), ...readTicks() };
  let total = 0;
  return () => {
    const after = { now: now(), ...readTicks() };
    const steal = after.steal - before.steal;
    const busy = after.busy - before.busy + steal;
    if (busy > 0) total += (after.now - before.now) * (steal / busy);
    before = after;
    return total;
  };
}

/** Clock ticks of all processors since the machine started. */
function readTicks(): { readonly busy: number; readonly steal: number } {
  const [first = ''] = readProc('/proc/stat')?.split('\n', 1) ?? [];
  const [, user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = first
    .split(/ +/u)
    .map(Number);
  return { busy: user + nice + system + irq + softirq, steal };
}

function readProc(path: string): string | undefined {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return undefined;
  }
}
