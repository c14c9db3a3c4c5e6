import { parentPort, type MessagePort } from 'node:worker_threads';
import type { Step } from '../engine/steps.ts';
import type { Answers, FromSession, Question, ToSession } from './paper-messages.ts';
import { runSession, type PaperWork } from './paper-session.ts';
import type { Batch } from './record.ts';
import { stepOf } from './session-events.ts';
import { asTaskError, fromTaskError } from './task-error.ts';

/** What a thread for sessions is told: to begin one, or to show that it does not hang. */
export type ToWorker = { readonly work: PaperWork; readonly port: MessagePort } | 'ping';

/** So many batches may be unwritten before a session waits. */
const MOST_UNWRITTEN = 2;

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
    if ('error' in message) waiting.reject(fromTaskError(message.error));
    else waiting.resolve(message.answer as never);
  });
  port.on('close', () => {
    const left = new Error('nobody wants to hear of it any more');
    gone.abort(left);
    for (const { reject } of asked.values()) reject(left);
  });

  const unwritten: Promise<true>[] = [];
  const record = async (batch: Batch): Promise<void> => {
    const written = ask({ kind: 'record', batch });
    written.catch(() => {});
    unwritten.push(written);
    while (unwritten.length >= MOST_UNWRITTEN) await unwritten.shift();
  };
  async function* steps(): AsyncGenerator<Step> {
    for (;;) {
      const payloads = await ask({ kind: 'steps' });
      if (payloads.length === 0) return;
      yield* payloads.map(stepOf);
    }
  }
  let last: FromSession;
  try {
    const done = await runSession(work, {
      steps: steps(),
      load: (options) => ask({ kind: 'load', options }),
      live: (source) => ask({ kind: 'live', source }),
      record,
      stop: stop.signal,
      gone: gone.signal,
    });
    last = { done };
  } catch (error) {
    last = asTaskError(error);
  }
  port.postMessage(last);
}
