import { setTimeout as delay } from 'node:timers/promises';
import { isMainThread, locks, threadId, type Worker } from 'node:worker_threads';

/** Every thread that can be terminated ends within this time. */
const ENDS_WITHIN_MS = 3000;

const stuck = new Set<Worker>();

const lockOf = (id: number): string => `service-local.thread.${id}`;

/**
 * Runs `work` so that `endThread` waits for it. Needed for native code, such as DuckDB, that would end
 * the process if its thread were terminated. Must not be called within `work`.
 */
export async function beforeThreadEnds<T>(work: () => Promise<T>): Promise<T> {
  if (isMainThread) return work();
  return locks.request(lockOf(threadId), { mode: 'shared' }, work);
}

/** Terminates a thread once its calls of `beforeThreadEnds` have finished. */
export async function endThread(thread: Worker): Promise<void> {
  if (thread.threadId === -1) return;
  stuck.add(thread);
  const ended = new AbortController();
  thread.once('exit', () => {
    stuck.delete(thread);
    ended.abort();
  });
  try {
    const { signal } = ended;
    await locks.request(lockOf(thread.threadId), { signal }, () => terminate(thread));
  } catch (error) {
    // Node keeps the locks of a thread that ends by itself, for example without memory.
    if (!ended.signal.aborted) throw error;
  }
}

/**
 * Waits at most three seconds: V8 does not stop a thread that spends all of its time on garbage
 * collection. The program must then exit with `exitDespiteStuckThreads`.
 */
async function terminate(thread: Worker): Promise<void> {
  const giveUp = new AbortController();
  const late = delay(ENDS_WITHIN_MS, undefined, { signal: giveUp.signal }).catch(() => {});
  await Promise.race([thread.terminate(), late]);
  giveUp.abort();
}

/** Ends the process if a stuck thread would make `process.exit` wait forever; else does nothing. */
export async function exitDespiteStuckThreads(exitCode: number): Promise<void> {
  if (stuck.size === 0) return;
  if (process.platform === 'win32') process.kill(process.pid);
  const { default: koffi } = await import('koffi');
  const exit = koffi.load(null).func('void _exit(int)') as (code: number) => void;
  exit(exitCode);
}
