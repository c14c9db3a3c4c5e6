import { availableParallelism } from 'node:os';
import { MessageChannel, MessagePort, Worker } from 'node:worker_threads';
import { endThread } from '../../../base/end-thread.ts';
import { toErrorData } from '../../../base/error-data.ts';
import { ServiceError } from '../../../base/errors.ts';
import { THREAD_ENV } from '../../../base/thread-env.ts';
import { TaskFailure, ThreadDied } from '../../../base/thread-failures.ts';
import type { LiveMarkets } from '../../live-markets.ts';
import { DataShelf } from './data-shelf.ts';
import type {
  Call,
  FromSession,
  SessionWork,
  ToSession,
  ToThread,
  WorkerCalls,
} from './session-work.ts';

/** Where a session is recorded, and who may end it. */
export interface SessionStore extends Pick<WorkerCalls, 'inputs' | 'readSupervision' | 'record'> {
  /** Aborted when the session must end with its present result. */
  readonly stop: AbortSignal;
  /** Aborted when the session no longer belongs to this worker. */
  readonly gone: AbortSignal;
}

/** The thread that writes to the database needs a processor too. */
const MOST_THREADS = Math.max(1, Math.min(4, availableParallelism() - 1));
const ANSWERS_WITHIN_MS = 1000;

interface Thread {
  readonly worker: Worker;
  /** Reject the sessions of the thread. */
  readonly sessions: Set<(error: ThreadDied) => void>;
  /** Ends the thread unless it answers before. */
  late?: NodeJS.Timeout | undefined;
}

/**
 * Hosts paper sessions in threads, many in each, because most of them wait most of the time. Custom
 * code that places very many orders blocks the other sessions of its thread until the watchdog ends it.
 * When a thread ends, its sessions must be run again from their records.
 */
export class SessionThreads<Done> {
  readonly #file: URL;
  readonly #live: LiveMarkets;
  readonly #threads = new Set<Thread>();
  readonly #shelf = new DataShelf();

  /** @param file module that calls `serveSessions`. */
  constructor(file: URL, live: LiveMarkets) {
    this.#file = file;
    this.#live = live;
  }

  /**
   * Runs a session from its records to its end.
   *
   * @returns undefined if it was stopped before its first bars.
   * @throws TaskFailure; ThreadDied; errors of `record`; the reason of `gone`.
   */
  async run(work: SessionWork, store: SessionStore): Promise<Done | undefined> {
    const { stop, gone } = store;
    gone.throwIfAborted();
    const thread = this.#findThread();
    const { worker, sessions } = thread;
    const { port1: port, port2 } = new MessageChannel();
    const { promise, resolve, reject } = Promise.withResolvers<Done | undefined>();
    const calls: WorkerCalls = {
      ...store,
      load: (options) =>
        this.#shelf.load(options, work.runId).catch((error: unknown) => {
          throw work.recorded.batches > 0 ? cannotResume(error) : error;
        }),
      live: async (source) => this.#live.open(source),
    };
    const answerCall = async ({ id, name, argument }: Call): Promise<void> => {
      try {
        const answer = await calls[name](argument as never);
        port.postMessage({ id, answer }, answer instanceof MessagePort ? [answer] : []);
      } catch (error) {
        const { error: data, bug } = toErrorData(error);
        // A batch that cannot be written, or a database that does not answer, is no failure of the session.
        const isOurs = name === 'record' || data.code === 'storage_unavailable';
        if (isOurs || bug !== undefined) reject(error);
        else port.postMessage({ id, error: data } satisfies ToSession);
      }
    };
    port.on('message', (message: FromSession<Done>) => {
      if ('name' in message) void answerCall(message);
      else if ('error' in message) reject(new TaskFailure(message.error, message.bug));
      else resolve(message.done);
    });
    const sendStop = (): void => port.postMessage('stop' satisfies ToSession);
    const abandon = (): void => {
      reject(gone.reason);
      // The session may be gone because its thread hangs.
      endIfHung(thread);
    };
    stop.addEventListener('abort', sendStop);
    gone.addEventListener('abort', abandon);
    sessions.add(reject);
    worker.postMessage({ work, port: port2 } satisfies ToThread, [port2]);
    if (stop.aborted) sendStop();
    try {
      return await promise;
    } finally {
      stop.removeEventListener('abort', sendStop);
      gone.removeEventListener('abort', abandon);
      sessions.delete(reject);
      port.close();
      this.#shelf.release(work.runId);
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#threads].map(({ worker }) => endThread(worker)));
    await this.#shelf.close();
  }

  /** The thread with the fewest sessions; a new one while more threads are allowed. */
  #findThread(): Thread {
    const [least] = [...this.#threads].toSorted((a, b) => a.sessions.size - b.sessions.size);
    const isFull = least === undefined || least.sessions.size > 0;
    return isFull && this.#threads.size < MOST_THREADS ? this.#start() : least!;
  }

  #start(): Thread {
    const worker = new Worker(this.#file, { env: THREAD_ENV });
    const thread: Thread = { worker, sessions: new Set() };
    const noteAnswer = (): void => {
      clearTimeout(thread.late);
      thread.late = undefined;
    };
    const end = (why: string): void => {
      noteAnswer();
      this.#threads.delete(thread);
      for (const reject of thread.sessions) reject(new ThreadDied(`its thread ended: ${why}`));
    };
    worker.on('message', noteAnswer);
    worker.on('error', (error: Error) => end(error.message));
    worker.on('exit', (code) => end(`code ${code}`));
    this.#threads.add(thread);
    return thread;
  }
}

/** Ends the thread if it does not answer within a second. */
function endIfHung(thread: Thread): void {
  if (thread.late !== undefined) return;
  thread.late = setTimeout(() => void endThread(thread.worker), ANSWERS_WITHIN_MS);
  thread.worker.postMessage('ping' satisfies ToThread);
}

/** Names the remedy if a session has traded on bars that this process does not have. */
function cannotResume(error: unknown): unknown {
  if (!(error instanceof ServiceError) || error.code !== 'file_not_found') return error;
  return new ServiceError(error.code, `the session cannot resume: ${error.message}`, {
    remedy:
      'Give each worker the catalogue with which the session began (--catalogue-dir), and start another session: this one has failed.',
    cause: error,
  });
}
