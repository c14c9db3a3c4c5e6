import { setTimeout } from 'node:timers/promises';
import type { Context } from 'hono';
import { ServiceError } from '../base/errors.ts';
import { checkCaller, type Caller } from '../identity/tokens.ts';
import { openStreams } from './open-streams.ts';
import type { AppEnv, Services } from './services.ts';

/** Other servers append events too, so new events are found only by querying the database. */
const POLL_INTERVAL_MS = 250;
/** Proxies close connections that are silent for longer. */
const HEARTBEAT_MS = 15_000;
/** A server-sent comment. */
const HEARTBEAT = ': \n\n';

/**
 * Maximum of open streams per administrator: more than anyone opens in a browser, and few enough to
 * serve.
 */
const MOST_STREAMS = 100;
const TRY_AGAIN_SECONDS = 5;

/**
 * Responds with server-sent events until `follow` ends, the client disconnects, the token ends, or the
 * server stops. `follow` is read only as fast as the client reads.
 *
 * @param subject names the stream in the log.
 * @param follow yields whole events as text, or undefined to be read again after a short delay.
 * @throws ServiceError `rate_limited` with the reason `streams`
 */
export function streamEvents(
  c: Context<AppEnv>,
  services: Pick<Services, 'identity' | 'stopping' | 'log'>,
  subject: string,
  follow: () => AsyncGenerator<string | undefined, void>,
) {
  refuseTooManyStreams(c);
  return streamAdmittedEvents(c, services, subject, follow);
}

/** @throws ServiceError `rate_limited` with the reason `streams` */
export function refuseTooManyStreams(c: Context<AppEnv>): void {
  const { administrator_id } = c.var.caller!;
  const own = [...openStreams.values()].filter((id) => id === administrator_id);
  if (own.length >= MOST_STREAMS) throw tooManyStreams();
}

/** Like `streamEvents`, for work that has already started and must not be rejected. */
export function streamAdmittedEvents(
  c: Context<AppEnv>,
  { identity, stopping, log }: Pick<Services, 'identity' | 'stopping' | 'log'>,
  subject: string,
  follow: () => AsyncGenerator<string | undefined, void>,
) {
  const caller = c.var.caller!;
  const { administrator_id } = caller;
  const gone = new AbortController();
  const ending = AbortSignal.any([stopping, gone.signal]);
  const texts = withHeartbeats(identity, caller, follow(), ending);
  const stream = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        // Count from the first read: an unread stream, such as the response to HEAD, never ends.
        openStreams.set(gone, administrator_id);
        try {
          const { value, done } = await texts.next();
          // Canceling the stream closed it already.
          if (gone.signal.aborted) return;
          if (done !== true) {
            controller.enqueue(Buffer.from(value));
            return;
          }
        } catch (error) {
          log.warn({ err: error, msg: `the stream of ${subject} failed` });
          if (gone.signal.aborted) return;
        }
        // A failed stream is closed too: the response has started, so the client can only reconnect.
        openStreams.delete(gone);
        controller.close();
      },
      cancel() {
        gone.abort();
        openStreams.delete(gone);
      },
    },
    { highWaterMark: 0 },
  );
  return c.body(stream, 200, { 'Content-Type': 'text/event-stream' });
}

function tooManyStreams(): ServiceError {
  return new ServiceError(
    'rate_limited',
    `you have ${MOST_STREAMS} event streams open, which is the maximum`,
    {
      reason: 'streams',
      remedy: 'Close streams that you do not read, or follow several bots one after another.',
      retryAfterSeconds: TRY_AGAIN_SECONDS,
    },
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
      await setTimeout(POLL_INTERVAL_MS, undefined, { signal: ending }).catch(() => {});
    }
  }
}
