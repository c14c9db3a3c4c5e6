import { setTimeout as delay } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';

/** A thread that can be ended at all ends within this time. */
const ENDS_WITHIN_MS = 3000;

const stuck = new Set<Worker>();

/**
 * Ends a thread, or gives up after a few seconds: V8 does not stop a thread that spends all its time
 * on collecting garbage. The program must then leave with `exitDespiteStuckThreads`.
 */
export async function endThread(thread: Worker): Promise<void> {
  stuck.add(thread);
  const ended = thread.terminate().finally(() => stuck.delete(thread));
  const giveUp = new AbortController();
  const late = delay(ENDS_WITHIN_MS, undefined, { signal: giveUp.signal }).catch(() => {});
  await Promise.race([ended, late]);
  giveUp.abort();
}

/** Ends the process at once where `process.exit` would wait for ever, for a stuck thread. */
export async function exitDespiteStuckThreads(exitCode: number): Promise<void> {
  if (stuck.size === 0) return;
  if (process.platform === 'win32') process.kill(process.pid);
  const { default: koffi } = await import('koffi');
  const exit = koffi.load(null).func('void _exit(int)') as (code: number) => void;
  exit(exitCode);
}
