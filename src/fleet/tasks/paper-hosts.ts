/**
 * Where sessions run: in threads that hold many of them each, as most sessions wait most of the time.
 * A strategy that does not come back holds up the others of its thread until the watchdog ends it. A
 * thread that dies, or is ended because it hangs, takes its sessions with it: they begin anew, from
 * what was recorded of them.
 */
import { availableParallelism } from 'node:os';
import { MessageChannel, MessagePort, Worker } from 'node:worker_threads';
import { NO_LIVE_MARKETS, type LiveMarkets } from '../../trading/live-markets.ts';
import type { SessionSupervision } from '../../trading/session-supervision.ts';
import { DataShelf } from './data-shelf.ts';
import type { FromSession, Question, ToSession } from './paper-messages.ts';
import type { PaperDone, PaperWork } from './paper-session.ts';
import type { ToWorker } from './paper-worker.ts';
import type { Batch } from './session-record.ts';
import type { RecordedInput } from '../../trading/recorded-inputs.ts';
import { toErrorData } from '../../base/error-data.ts';
import { THREAD_ENV } from '../../base/thread-env.ts';
import { TaskFailure, ThreadDied } from './backtest-thread.ts';

/** What whoever has a session run does for it. */
export interface SessionStore {
  /** What was recorded next that the session was told; none at the end. */
  readonly steps: () => Promise<readonly RecordedInput[]>;
  /** What people have settled by now. */
  readonly readSupervision: () => Promise<SessionSupervision>;
  /** Resolves when it is written. @throws when it cannot be: the session has ended then. */
  readonly record: (batch: Batch) => Promise<void>;
  /** Aborted when the session is to end with what it has come to. */
  readonly stop: AbortSignal;
  /** Aborted when nobody wants to hear of it any more. */
  readonly gone: AbortSignal;
}

export interface SessionHosts {
  /**
   * Runs a session from what was recorded of it to its end.
   * @throws TaskFailure; ThreadDied; what `record` threw; what `gone` was aborted with.
   */
  readonly run: (work: PaperWork, store: SessionStore) => Promise<PaperDone | undefined>;
  /** Ends threads that do not answer within a second. */
  readonly endHung: () => void;
  readonly close: () => Promise<void>;
}

/** Threads; with one for each processor the writing thread has less of them. */
const MOST_HOSTS = Math.max(1, Math.min(4, availableParallelism() - 1));
const ANSWERS_WITHIN_MS = 1000;

interface Host {
  readonly thread: Worker;
  /** Those told when it has ended. */
  readonly sessions: Set<(error: ThreadDied) => void>;
  /** Ends it, unless it shows before that it does not hang. */
  late?: NodeJS.Timeout | undefined;
}

export function startSessionHosts(live: LiveMarkets = NO_LIVE_MARKETS): SessionHosts {
  const hosts = new Set<Host>();
  const shelf = new DataShelf();

  const newHost = (): Host => {
    const file = new URL(`./paper-worker${import.meta.url.slice(-3)}`, import.meta.url);
    const thread = new Worker(file, { env: THREAD_ENV });
    const host: Host = { thread, sessions: new Set() };
    const answered = (): void => {
      clearTimeout(host.late);
      host.late = undefined;
    };
    const end = (why: string): void => {
      answered();
      hosts.delete(host);
      for (const fail of host.sessions) fail(new ThreadDied(`its thread ended: ${why}`));
    };
    thread.on('message', answered);
    thread.on('error', (error: Error) => end(error.message));
    thread.on('exit', (code) => end(`code ${code}`));
    hosts.add(host);
    return host;
  };

  /** The one with the fewest sessions; a new one while there may be more. */
  const findHost = (): Host => {
    const [least] = [...hosts].toSorted((a, b) => a.sessions.size - b.sessions.size);
    return least === undefined || (least.sessions.size > 0 && hosts.size < MOST_HOSTS)
      ? newHost()
      : least;
  };

  const run = async (
    work: PaperWork,
    { steps, readSupervision, record, stop, gone }: SessionStore,
  ): Promise<PaperDone | undefined> => {
    gone.throwIfAborted();
    const { thread, sessions } = findHost();
    const { port1: port, port2 } = new MessageChannel();
    const { promise, resolve, reject } = Promise.withResolvers<PaperDone | undefined>();
    const answer = async (question: Question): Promise<unknown> => {
      if (question.kind === 'steps') return steps();
      if (question.kind === 'supervision') return readSupervision();
      if (question.kind === 'load') return shelf.load(question.options, work.runId);
      if (question.kind === 'live') return live.open(question.source);
      // A batch that cannot be written is the end of it, and no failure of the session.
      return record(question.batch).then(() => true, reject);
    };
    port.on('message', (message: FromSession) => {
      if ('question' in message) {
        const { id, question } = message;
        void answer(question).then(
          (given) =>
            port.postMessage({ id, answer: given }, given instanceof MessagePort ? [given] : []),
          (error: unknown) => {
            const { error: data, bug } = toErrorData(error);
            // A database that does not answer is not a failure of the session.
            if (bug !== undefined || data.code === 'storage_unavailable') reject(error);
            else port.postMessage({ id, error: data } satisfies ToSession);
          },
        );
      } else if ('error' in message) reject(new TaskFailure(message.error, message.bug));
      else resolve(message.done);
    });
    const sendStop = (): void => port.postMessage('stop' satisfies ToSession);
    const abandon = (): void => reject(gone.reason);
    stop.addEventListener('abort', sendStop);
    gone.addEventListener('abort', abandon);
    sessions.add(reject);
    thread.postMessage({ work, port: port2 } satisfies ToWorker, [port2]);
    if (stop.aborted) sendStop();
    try {
      return await promise;
    } finally {
      stop.removeEventListener('abort', sendStop);
      gone.removeEventListener('abort', abandon);
      sessions.delete(reject);
      port.close();
      shelf.release(work.runId);
    }
  };

  return {
    run,
    endHung() {
      for (const host of hosts) {
        if (host.late !== undefined) continue;
        host.late = setTimeout(() => void host.thread.terminate(), ANSWERS_WITHIN_MS);
        host.thread.postMessage('ping' satisfies ToWorker);
      }
    },
    async close() {
      await Promise.all([...hosts].map(({ thread }) => thread.terminate()));
      await shelf.close();
    },
  };
}
