import { setTimeout } from 'node:timers/promises';
import { checkCaller, type Caller } from '../identity/tokens.ts';
import type { Services } from './services.ts';

/** Other servers write, too, so that only the database can be asked what is new. */
const LOOK_EVERY_MS = 250;
/** Proxies cut what is silent for longer. */
const HEARTBEAT_MS = 15_000;
/** A comment. */
const HEARTBEAT = ': \n\n';

/**
 * Server-sent events, until there are no more, the reader goes, his token ends, or the server stops.
 * They are asked for as fast as the reader takes them.
 *
 * @param subject what is followed, for the log.
 * @param follow gives whole events as text, or undefined where it is to be asked again a little later.
 */
export function eventStream(
  { identity, stopping, log }: Pick<Services, 'identity' | 'stopping' | 'log'>,
  subject: string,
  caller: Caller,
  follow: () => AsyncGenerator<string | undefined, void>,
): ReadableStream<Uint8Array> {
  const gone = new AbortController();
  const ending = AbortSignal.any([stopping, gone.signal]);
  const texts = withHeartbeats(identity, caller, follow(), ending);
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { value, done } = await texts.next();
          if (done !== true) controller.enqueue(Buffer.from(value));
          else if (!gone.signal.aborted) controller.close();
        } catch (error) {
          // The answer has begun: ending it is all that is left, and the reader asks again.
          log.warn({ err: error, msg: `${subject} could not be followed any further` });
          controller.close();
        }
      },
      cancel: () => gone.abort(),
    },
    { highWaterMark: 0 },
  );
}

async function* withHeartbeats(
  { storage, clock }: Services['identity'],
  caller: Caller,
  texts: AsyncGenerator<string | undefined, void>,
  ending: AbortSignal,
): AsyncGenerator<string, void> {
  let spokenAt = -Infinity;
  for (;;) {
    if (performance.now() - spokenAt >= HEARTBEAT_MS) {
      await checkCaller(storage.read, clock(), caller);
      spokenAt = performance.now();
      yield HEARTBEAT;
    }
    const { value, done } = await texts.next();
    if (done === true) return;
    if (value !== undefined) yield value;
    if (ending.aborted) return;
    if (value === undefined) {
      await setTimeout(LOOK_EVERY_MS, undefined, { signal: ending }).catch(() => {});
    }
  }
}
