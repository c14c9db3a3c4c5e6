import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { endThread } from './end-thread.ts';
import { THREAD_ENV } from './thread-env.ts';

/** Time after which an idle thread is terminated to free its memory. */
const KEEP_MS = 10_000;

interface IdleThread {
  readonly thread: Worker;
  readonly forget: () => void;
}

/** At most one idle thread per file, by URL. */
const idle = new Map<string, IdleThread>();

/**
 * Returns an idle thread for the file, or starts one. The thread receives its work as messages.
 * Threads are reused because loading the code usually takes longer than the work.
 */
export function acquireThread(file: URL): Worker {
  const found = idle.get(file.href);
  if (found === undefined) return new Worker(file, { env: THREAD_ENV });
  found.forget();
  found.thread.ref();
  return found.thread;
}

/** Keeps a thread that has finished its work for reuse, or terminates it if another one is idle. */
export function releaseThread(file: URL, thread: Worker): void {
  removeListeners(thread);
  // Without a listener, the error would end the process; `exit` follows it.
  thread.on('error', () => {});
  if (idle.has(file.href)) return void endThread(thread);
  const timer = setTimeout(() => {
    forget();
    void endThread(thread);
  }, KEEP_MS);
  const forget = (): void => {
    clearTimeout(timer);
    idle.delete(file.href);
    removeListeners(thread);
  };
  thread.on('exit', forget);
  idle.set(file.href, { thread, forget });
  timer.unref();
  thread.unref();
}

const STOP_WITHIN_MS = 2000;

/** Terminates a thread that may have processes of its own, which the message `stop` lets it end. */
export async function stopThread(thread: Worker): Promise<void> {
  thread.postMessage('stop');
  const signal = AbortSignal.timeout(STOP_WITHIN_MS);
  if (thread.threadId !== -1) await once(thread, 'exit', { signal }).catch(() => {});
  await endThread(thread);
}

/** Leaves other events alone, because Node itself listens to them. */
function removeListeners(thread: Worker): void {
  for (const event of ['message', 'error', 'exit']) thread.removeAllListeners(event);
}
