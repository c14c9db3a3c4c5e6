import type { Context } from 'hono';
import type * as api from '../api/bots.ts';
import { formatInstant } from '../api/http.ts';
import type { BotEvent } from '../events/event.ts';
import { readEvents, type EventsRequest } from '../events/read.ts';
import { streamEvents } from './event-stream.ts';
import type { AppEnv, Services } from './services.ts';

const PAGE = 1000;
type Wanted = Pick<EventsRequest, 'after_seq' | 'kinds' | 'run_id'>;

/** The events of a bot as server-sent events, from the first that is wanted. */
export function followEvents(
  c: Context<AppEnv>,
  services: Pick<Services, 'identity' | 'stopping' | 'log'>,
  bot_id: string,
  wanted: Wanted,
) {
  const { identity } = services;
  return streamEvents(c, services, `the events of ${bot_id}`, async function* () {
    let { after_seq } = wanted;
    for (;;) {
      const request = { ...wanted, after_seq, limit: PAGE };
      const { events } = await readEvents(identity.storage.read, bot_id, request);
      if (events.length > 0) {
        after_seq = events.at(-1)!.seq;
        yield events.map(messageOf).join('');
      }
      if (events.length < PAGE) yield undefined;
    }
  });
}

function messageOf(event: BotEvent): string {
  return `id: ${event.seq}\ndata: ${JSON.stringify(serializeEvent(event))}\n\n`;
}

export function serializeEvent({
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
