import type { MessagePort } from 'node:worker_threads';
import { toErrorData, fromErrorData } from '../../../base/error-data.ts';
import { parseInput, type SessionInput } from '../../session-events.ts';
import type {
  Call,
  FromSession,
  SessionWork,
  ToSession,
  ToThread,
  WorkerCalls,
} from './session-work.ts';
import { runSession, type EndedSession, type UnnumberedBatch } from './threaded-session.ts';

/** A session waits while more events than this wait to be written. */
const MOST_WAITING = 512;

/** Creates the result of an ended session. */
export type Finish<Done> = (work: SessionWork, ended: EndedSession) => Promise<Done>;

/** Serves sessions in this thread, as `SessionThreads` requests them through the port. */
export function serveSessions<Done>(requests: MessagePort, finish: Finish<Done>): void {
  requests.on('message', (message: ToThread) => {
    if (message === 'ping') requests.postMessage('pong');
    else void serve(message.work, message.port, finish);
  });
}

async function serve<Done>(
  work: SessionWork,
  port: MessagePort,
  finish: Finish<Done>,
): Promise<void> {
  const worker = new WorkerPort(port);
  const batches = new BatchQueue(worker, work.recorded.batches);
  let last: FromSession<Done>;
  try {
    const ended = await runSession(work, {
      inputs: recordedInputs(worker),
      load: (options) => worker.call('load', options),
      live: (source) => worker.call('live', source),
      readSupervision: () => worker.call('readSupervision'),
      record: (batch) => batches.add(batch),
      stop: worker.stop.signal,
      gone: worker.gone.signal,
    });
    const done = ended && (await finish(work, ended));
    await batches.written;
    last = { done };
  } catch (error) {
    await batches.written?.catch(() => {});
    last = toErrorData(error);
  }
  port.postMessage(last);
}

async function* recordedInputs(worker: WorkerPort): AsyncGenerator<SessionInput> {
  for (;;) {
    const recorded = await worker.call('inputs');
    if (recorded.length === 0) return;
    yield* recorded.map(({ kind, payload }) => parseInput(kind, payload));
  }
}

/** Calls of the worker, and its signals. */
class WorkerPort {
  readonly stop = new AbortController();
  readonly gone = new AbortController();
  readonly #port: MessagePort;
  readonly #waiting = new Map<number, PromiseWithResolvers<never>>();
  #count = 0;

  constructor(port: MessagePort) {
    this.#port = port;
    port.on('message', (message: ToSession) => {
      if (message === 'stop') return this.stop.abort();
      const waiting = this.#waiting.get(message.id)!;
      this.#waiting.delete(message.id);
      if ('error' in message) waiting.reject(fromErrorData(message.error));
      else waiting.resolve(message.answer as never);
    });
    port.on('close', () => {
      const left = new Error('the worker has abandoned the session');
      this.gone.abort(left);
      for (const { reject } of this.#waiting.values()) reject(left);
    });
  }

  call<K extends keyof WorkerCalls>(
    name: K,
    argument?: Parameters<WorkerCalls[K]>[0],
  ): ReturnType<WorkerCalls[K]> {
    const waiting = Promise.withResolvers<never>();
    this.#count += 1;
    this.#waiting.set(this.#count, waiting);
    this.#port.postMessage({ id: this.#count, name, argument } satisfies Call);
    return waiting.promise as ReturnType<WorkerCalls[K]>;
  }
}

/** Joins batches while the database is slow, so that a session keeps pace with its feed. */
class BatchQueue {
  readonly #worker: WorkerPort;
  #number: number;
  #waiting: UnnumberedBatch | undefined;
  /** Settles when all batches are written; undefined if none waits. */
  written: Promise<void> | undefined;

  constructor(worker: WorkerPort, recorded: number) {
    this.#worker = worker;
    this.#number = recorded;
  }

  /** Resolves when the session may continue. */
  async add(batch: UnnumberedBatch): Promise<void> {
    const before = this.#waiting;
    const events = [...(before?.events ?? []), ...batch.events];
    this.#waiting = { ...batch, made_at: before?.made_at ?? batch.made_at, events };
    this.written ??= this.#write();
    this.written.catch(() => {});
    if (this.#waiting !== undefined && events.length >= MOST_WAITING) await this.written;
  }

  async #write(): Promise<void> {
    while (this.#waiting !== undefined) {
      this.#number += 1;
      const batch = { ...this.#waiting, number: this.#number };
      this.#waiting = undefined;
      await this.#worker.call('record', batch);
    }
    this.written = undefined;
  }
}
