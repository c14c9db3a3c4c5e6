/** Counters of the real world, which continue in virtual time, and durations without the time of a busy host. */
import { readFileSync } from 'node:fs';
import { constants, PerformanceObserver, type PerformanceEntry } from 'node:perf_hooks';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

export interface Meters {
  /** ms from some moment. */
  readonly now: () => number;
  /** Processor time that this thread has used so far, ms. */
  readonly cpu: () => number;
  /** Time so far in which this thread was ready to run but the host ran other work, ms. */
  readonly withheld: () => number;
  /** Duration of a fixed computation now, divided by its fastest duration in this run; at least 1. */
  readonly slowdown: () => number;
  /** Resident memory of the process, bytes. */
  readonly rss: () => number;
  /** Memory in use by this thread after a forced garbage collection, bytes. */
  readonly heap: () => number;
  /** Time spent on garbage collection so far, ms, without the collections that `heap` forces. */
  readonly gc: () => { readonly total: number; readonly longest: number };
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
export function openSpan(
  meters: Pick<Meters, 'now' | 'cpu' | 'withheld' | 'slowdown'>,
): () => Span {
  const begun = { now: meters.now(), cpu: meters.cpu(), withheld: meters.withheld() };
  return () => {
    const realMs = meters.now() - begun.now;
    const withheldMs = Math.min(realMs, Math.max(0, meters.withheld() - begun.withheld));
    const left = realMs - withheldMs;
    const isDisturbed = withheldMs > DISTURBED_SHARE * realMs;
    const own = isDisturbed ? Math.min(left, meters.cpu() - begun.cpu) : left;
    const slowdown = meters.slowdown();
    return { realMs, withheldMs, netMs: slowdown < LEAST_SLOWDOWN ? own : own / slowdown };
  };
}

/**
 * Whether the host may be the only cause of a duration that is too long. A host that withholds most
 * of the time also slows the test while it runs, up to twofold, because caches and memory are shared.
 */
export function mayBeByHost(ms: number, netMs: number, mostMs: number): boolean {
  return netMs <= (ms > 2 * netMs ? 2 * mostMs : mostMs);
}

/** Opens the meters of this thread. Call this before the clocks are replaced, and close the meters at the end. */
export function openMeters(): Meters & { readonly close: () => void } {
  const now = performance.now.bind(performance);
  const cpu = (): number => {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1000;
  };
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  return {
    now,
    cpu,
    withheld: openWithheld(now, cpu),
    slowdown: openSlowdown(cpu),
    rss: () => process.memoryUsage.rss(),
    heap() {
      collect();
      const { heapUsed, arrayBuffers } = process.memoryUsage();
      return heapUsed + arrayBuffers;
    },
    ...openGc(),
  };
}

type Collection = PerformanceEntry & { readonly detail?: { readonly flags?: number } };

function openGc(): Pick<Meters, 'gc'> & { readonly close: () => void } {
  const gc = { total: 0, longest: 0 };
  const count = (entries: readonly PerformanceEntry[]): void => {
    for (const { duration, detail } of entries as readonly Collection[]) {
      const { flags = 0 } = detail ?? {};
      if ((flags & constants.NODE_PERFORMANCE_GC_FLAGS_FORCED) !== 0) continue;
      gc.total += duration;
      gc.longest = Math.max(gc.longest, duration);
    }
  };
  const observer = new PerformanceObserver((list) => count(list.getEntries()));
  observer.observe({ entryTypes: ['gc'] });
  return {
    gc() {
      count(observer.takeRecords());
      return { ...gc };
    },
    close: () => observer.disconnect(),
  };
}

const CALIBRATION_ROUNDS = 20;
const REFERENCE_STEPS = 100_000;
const REFERENCE_ROUNDS = 3;

/** @param cpu processor time of this thread, ms. */
function openSlowdown(cpu: () => number): Meters['slowdown'] {
  let fastest = Infinity;
  const slowdown = (): number => {
    const took = timeReference(cpu);
    fastest = Math.min(fastest, took);
    return took / fastest;
  };
  for (let i = 0; i < CALIBRATION_ROUNDS; i += 1) slowdown();
  return slowdown;
}

/** Returns the processor time of a fixed computation that does not use the heap, ms. */
function timeReference(cpu: () => number): number {
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
 * Adds the time for which this thread waited for a processor to the estimated time that the hypervisor
 * gave to other machines. On systems that do not measure waits, time without processor use is withheld
 * time, because the thread never waits by itself.
 */
function openWithheld(now: () => number, cpu: () => number): Meters['withheld'] {
  let before = { now: now(), ...readTicks() };
  let stolen = 0;
  return () => {
    const [, waitedNs] = readProc('/proc/thread-self/schedstat').split(' ');
    if (waitedNs === undefined) return now() - cpu();
    const after = { now: now(), ...readTicks() };
    const steal = after.steal - before.steal;
    const busy = after.busy - before.busy + steal;
    if (busy > 0) stolen += (after.now - before.now) * (steal / busy);
    before = after;
    return Number(waitedNs) / 1e6 + stolen;
  };
}

/** Clock ticks of all processors since the machine started. */
function readTicks(): { readonly busy: number; readonly steal: number } {
  const [first = ''] = readProc('/proc/stat').split('\n', 1);
  const [, user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = first
    .split(/ +/u)
    .map(Number);
  return { busy: user + nice + system + irq + softirq, steal };
}

/** Returns an empty text on other systems than Linux. */
function readProc(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}
