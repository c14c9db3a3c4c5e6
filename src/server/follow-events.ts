import { setTimeout } from 'node:timers/promises';
import type * as api from '../api/bots.ts';
import { formatInstant } from '../api/http.ts';
import type { BotEvent } from '../events/event.ts';
import { readEvents, type EventsRequest } from '../events/read.ts';
import { checkCaller, type Caller } from '../identity/tokens.ts';
import type { Services } from './services.ts';

const PAGE = 1000;
/** Other servers append, too, so that only the database can be asked what is new. */
const LOOK_EVERY_MS = 250;
/** Proxies cut what is silent for longer. */
const HEARTBEAT_MS = 15_000;

type Wanted = Pick<EventsRequest, 'after_seq' | 'kinds'>;

/**
 * The events of a bot as server-sent events, from the first that is wanted until the reader goes, his
 * token ends, or the server stops. They are read as fast as the reader takes them.
 */
export function followEvents(
  { identity, stopping, log }: Pick<Services, 'identity' | 'stopping' | 'log'>,
  caller: Caller,
  bot_id: string,
  wanted: Wanted,
): ReadableStream<Uint8Array> {
  const gone = new AbortController();
  const ending = AbortSignal.any([stopping, gone.signal]);
  const texts = messages(identity, caller, bot_id, wanted, ending);
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { value, done } = await texts.next();
          if (done !== true) controller.enqueue(Buffer.from(value));
          else if (!gone.signal.aborted) controller.close();
        } catch (error) {
          // The answer has begun: ending it is all that is left, and the reader asks again.
          log.warn({
            err: error,
            msg: `the events of ${bot_id} could not be followed any further`,
          });
          controller.close();
        }
      },
      cancel: () => gone.abort(),
    },
    { highWaterMark: 0 },
  );
}

async function* messages(
  { storage, clock }: Services['identity'],
  caller: Caller,
  bot_id: string,
  { after_seq: start, kinds }: Wanted,
  ending: AbortSignal,
): AsyncGenerator<string, void> {
  let after_seq = start;
  let spokenAt = -Infinity;
  for (;;) {
    if (performance.now() - spokenAt >= HEARTBEAT_MS) {
      await checkCaller(storage.read, clock(), caller);
      spokenAt = performance.now();
      yield HEARTBEAT;
    }
    const { events } = await readEvents(storage.read, bot_id, { after_seq, kinds, limit: PAGE });
    if (events.length > 0) {
      after_seq = events.at(-1)!.seq;
      yield events.map(messageOf).join('');
    }
    if (ending.aborted) return;
    if (events.length < PAGE) {
      await setTimeout(LOOK_EVERY_MS, undefined, { signal: ending }).catch(() => {});
    }
  }
}

/** A comment. */
const HEARTBEAT = ': \n\n';

function messageOf(event: BotEvent): string {
  return `id: ${event.seq}\ndata: ${JSON.stringify(eventAnswer(event))}\n\n`;
}

export function eventAnswer({
  occurred_at,
  recorded_at,
  payload,
  ...event
}: BotEvent): api.BotEvent {
  return {
    ...event,
    occurred_at: formatInstant(occurred_at),
    recorded_at: formatInstant(recorded_at),
    payload: { ...payload },
  };
}
