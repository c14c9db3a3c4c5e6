import { PerformanceObserver } from 'node:perf_hooks';
import type { Meters } from './load.ts';

/** Of this machine and thread; to be opened before any clock is another one. Closing it ends the observer. */
export function openMeters(): Meters & { readonly close: () => void } {
  const now = performance.now.bind(performance);
  const rss = process.memoryUsage.rss.bind(process.memoryUsage);
  const cpu = process.threadCpuUsage.bind(process);
  const gc = { total: 0, longest: 0 };
  const observer = new PerformanceObserver((list) => count(list.getEntries()));
  const count = (entries: readonly { readonly duration: number }[]): void => {
    for (const { duration } of entries) {
      gc.total += duration;
      gc.longest = Math.max(gc.longest, duration);
    }
  };
  observer.observe({ entryTypes: ['gc'] });
  return {
    now,
    rss,
    gc() {
      count(observer.takeRecords());
      return { ...gc };
    },
    cpu() {
      const { user, system } = cpu();
      return (user + system) / 1000;
    },
    close: () => observer.disconnect(),
  };
}
