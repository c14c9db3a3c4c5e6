import { Worker } from 'node:worker_threads';
import { THREAD_ENV } from './thread-env.ts';

/** Long enough for whoever works through a list, short enough to give the memory back. */
const KEEP_MS = 10_000;

interface Kept {
  readonly thread: Worker;
  readonly forget: () => void;
}

/** By file; each has nothing to do. */
const threads = new Map<string, Kept>();

/**
 * A thread that runs the file, which takes its work by messages. To load the code takes most threads
 * longer than to do the work, so one that has done some is used again.
 */
export function acquireThread(file: URL): Worker {
  const kept = threads.get(file.href);
  if (kept === undefined) return new Worker(file, { env: THREAD_ENV });
  kept.forget();
  kept.thread.ref();
  return kept.thread;
}

/** Lays a thread up that has nothing to do, for the next who takes one, unless one lies there. */
export function releaseThread(file: URL, thread: Worker): void {
  unlisten(thread);
  // Its end tells of it.
  thread.on('error', () => {});
  if (threads.has(file.href)) return void thread.terminate();
  const timer = setTimeout(() => {
    forget();
    void thread.terminate();
  }, KEEP_MS);
  const forget = (): void => {
    clearTimeout(timer);
    threads.delete(file.href);
    unlisten(thread);
  };
  thread.on('exit', forget);
  threads.set(file.href, { thread, forget });
  timer.unref();
  thread.unref();
}

/** Of no other event: Node itself listens to what a thread gets for listeners. */
function unlisten(thread: Worker): void {
  for (const event of ['message', 'error', 'exit']) thread.removeAllListeners(event);
}
