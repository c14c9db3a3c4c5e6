import { setTimeout } from 'node:timers/promises';
import type { Context } from 'hono';
import { ServiceError } from '../base/errors.ts';
import { checkCaller, type Caller } from '../identity/tokens.ts';
import type { AppEnv, Services } from './services.ts';

/** Other servers write, too, so that only the database can be asked what is new. */
const POLL_INTERVAL_MS = 250;
/** Proxies cut what is silent for longer. */
const HEARTBEAT_MS = 15_000;
/** A comment. */
const HEARTBEAT = ': \n\n';

/** Of one administrator: more than anybody has windows, and so few that nobody feels them. */
const MOST_STREAMS = 100;
const TRY_AGAIN_SECONDS = 5;

/** What this process sends, and to which administrator. */
const openStreams = new Map<object, string>();

/**
 * Answers with server-sent events, until there are no more, the reader goes, his token ends, or the
 * server stops. They are asked for as fast as the reader takes them.
 *
 * @param subject what is followed, for the log.
 * @param follow gives whole events as text, or undefined where it is to be asked again a little later.
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

/** The same for what must not be refused any more, as it has been begun. */
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
        // From when it is read: what nobody reads, such as of HEAD, would never end.
        openStreams.set(gone, administrator_id);
        try {
          const { value, done } = await texts.next();
          if (done !== true) {
            controller.enqueue(Buffer.from(value));
            return;
          }
          openStreams.delete(gone);
          if (!gone.signal.aborted) controller.close();
        } catch (error) {
          // The answer has begun: ending it is all that is left, and the reader asks again.
          log.warn({ err: error, msg: `${subject} could not be followed any further` });
          openStreams.delete(gone);
          controller.close();
        }
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
  return new ServiceError('rate_limited', `${MOST_STREAMS} event streams of yours are open`, {
    reason: 'streams',
    remedy: 'Close those that nobody reads, or follow several bots one after the other.',
    retryAfterSeconds: TRY_AGAIN_SECONDS,
  });
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
