/** Watches the memory of a thread that runs a strategy, from the thread that started it. */
import type { ResourceLimits, Worker } from 'node:worker_threads';

export const MB = 1024 * 1024;
const WATCH_EVERY_MS = 25;
/** A thread that does not answer within this time may be busy with garbage collection. */
const SILENT_MS = 1000;

/**
 * V8's own limits, well above the limit that `watchMemory` enforces: when V8 runs out of heap in a
 * single allocation, it ends the whole process.
 */
export function heapLimits(memoryMb: number): ResourceLimits {
  return { maxOldGenerationSizeMb: Math.max(4 * memoryMb, 2048) };
}

/**
 * Calls `onFull` when the thread's objects, typed arrays and buffers together exceed the limit, which
 * `resourceLimits` cannot do. If the thread does not answer, the growth of the process counts instead.
 *
 * @returns a function that stops watching
 */
export function watchMemory(thread: Worker, memoryMb: number, onFull: () => void): () => void {
  const before = process.memoryUsage.rss();
  let askedAt: number | undefined;
  const look = async (): Promise<void> => {
    if (askedAt !== undefined) {
      const isSilent = performance.now() - askedAt > SILENT_MS;
      if (isSilent && process.memoryUsage.rss() - before > memoryMb * MB) onFull();
      return;
    }
    askedAt = performance.now();
    try {
      const { used_heap_size: heap, external_memory: external } = await thread.getHeapStatistics();
      if (heap + external > memoryMb * MB) onFull();
    } catch {
      // The thread has ended; its `exit` event reports that.
    }
    askedAt = undefined;
  };
  const timer = setInterval(() => void look(), WATCH_EVERY_MS);
  return () => clearInterval(timer);
}

/** Whether a thread ended because its heap was full. */
export function isHeapFull(error: Error): boolean {
  return 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY';
}
