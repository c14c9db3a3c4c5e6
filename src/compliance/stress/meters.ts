import { constants, PerformanceObserver, type PerformanceEntry } from 'node:perf_hooks';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { openHost } from './host.ts';
import type { Meters } from './stress-load.ts';

interface Detail {
  readonly flags?: number;
}

/** Opens the meters of this thread. Call this before the clocks are replaced, and close the meters at the end. */
export function openMeters(): Meters & { readonly close: () => void } {
  const now = performance.now.bind(performance);
  const gc = { total: 0, longest: 0 };
  const count = (entries: readonly PerformanceEntry[]): void => {
    for (const entry of entries) {
      const { duration, detail } = entry as PerformanceEntry & { readonly detail?: Detail };
      const flags = detail?.flags ?? 0;
      // A collection that `heap` forced does not count.
      if ((flags & constants.NODE_PERFORMANCE_GC_FLAGS_FORCED) !== 0) continue;
      gc.total += duration;
      gc.longest = Math.max(gc.longest, duration);
    }
  };
  const observer = new PerformanceObserver((list) => count(list.getEntries()));
  observer.observe({ entryTypes: ['gc'] });
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const cpu = (): number => {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1000;
  };
  return {
    now,
    cpu,
    ...openHost(now, cpu),
    rss: () => process.memoryUsage.rss(),
    heap() {
      collect();
      const { heapUsed, arrayBuffers } = process.memoryUsage();
      return heapUsed + arrayBuffers;
    },
    gc() {
      count(observer.takeRecords());
      return { ...gc };
    },
    close: () => observer.disconnect(),
  };
}
