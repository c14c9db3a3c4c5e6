import { parentPort, type MessagePort } from 'node:worker_threads';
import type { Answers, FromSession, Question, ToSession } from './paper-messages.ts';
import { runSession, type PaperWork, type Unnumbered } from './paper-session.ts';
import { parseInput } from '../../trading/session-events.ts';
import type { SessionInput } from '../../trading/session-input.ts';
import { toErrorData, fromErrorData } from '../../base/error-data.ts';

/** What a thread for sessions is told: to begin one, or to show that it does not hang. */
export type ToWorker = { readonly work: PaperWork; readonly port: MessagePort } | 'ping';

/** So many events may wait to be written before a session waits, too. */
const MOST_WAITING = 512;

parentPort!.on('message', (message: ToWorker) => {
  if (message === 'ping') parentPort!.postMessage('pong');
  else void host(message.work, message.port);
});

async function host(work: PaperWork, port: MessagePort): Promise<void> {
  const stop = new AbortController();
  const gone = new AbortController();
  const asked = new Map<number, PromiseWithResolvers<never>>();
  let count = 0;
  const ask = <K extends Question['kind']>(
    question: Question & { readonly kind: K },
  ): Promise<Answers[K]> => {
    const waiting = Promise.withResolvers<Answers[K]>();
    count += 1;
    asked.set(count, waiting as unknown as PromiseWithResolvers<never>);
    port.postMessage({ question, id: count } satisfies FromSession);
    return waiting.promise;
  };
  port.on('message', (message: ToSession) => {
    if (message === 'stop') return stop.abort();
    const waiting = asked.get(message.id)!;
    asked.delete(message.id);
    if ('error' in message) waiting.reject(fromErrorData(message.error));
    else waiting.resolve(message.answer as never);
  });
  port.on('close', () => {
    const left = new Error('nobody wants to hear of it any more');
    gone.abort(left);
    for (const { reject } of asked.values()) reject(left);
  });

  let number = work.recorded.batches;
  let waiting: Unnumbered | undefined;
  let writing: Promise<void> | undefined;
  const write = async (): Promise<void> => {
    while (waiting !== undefined) {
      number += 1;
      const batch = { ...waiting, number };
      waiting = undefined;
      await ask({ kind: 'record', batch });
    }
    writing = undefined;
  };
  // What comes while the database is slow goes there together: a session keeps pace with its feed.
  const record = async (batch: Unnumbered): Promise<void> => {
    const before = waiting?.events ?? [];
    const made_at = waiting?.made_at ?? batch.made_at;
    waiting = { ...batch, made_at, events: [...before, ...batch.events] };
    writing ??= write();
    writing.catch(() => {});
    if (waiting !== undefined && waiting.events.length >= MOST_WAITING) await writing;
  };
  async function* steps(): AsyncGenerator<SessionInput> {
    for (;;) {
      const recorded = await ask({ kind: 'steps' });
      if (recorded.length === 0) return;
      yield* recorded.map(({ kind, payload }) => parseInput(kind, payload));
    }
  }
  let last: FromSession;
  try {
    const done = await runSession(work, {
      steps: steps(),
      load: (options) => ask({ kind: 'load', options }),
      live: (source) => ask({ kind: 'live', source }),
      readSupervision: () => ask({ kind: 'supervision' }),
      record,
      stop: stop.signal,
      gone: gone.signal,
    });
    await writing;
    last = { done };
  } catch (error) {
    await writing?.catch(() => {});
    last = toErrorData(error);
  }
  port.postMessage(last);
}
