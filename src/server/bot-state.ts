import type { Context } from 'hono';
import * as api from '../api/bot-state.ts';
import { formatInstant } from '../api/http.ts';
import { ServiceError } from '../base/errors.ts';
import type { BotEvent } from '../events/event.ts';
import { readEvents, type EventsRequest } from '../events/read-events.ts';
import { stateAt, type Moment } from '../events/snapshot.ts';
import type { BotState } from '../events/bot-state.ts';
import { getBotId } from '../fleet/registry/bots.ts';
import { streamEvents } from './event-stream.ts';
import type { App, AppEnv, Services } from './services.ts';
import { requireTaskOfBot } from './tasks.ts';

export function addBotState(app: App, services: Services): void {
  const { identity } = services;
  const { read } = identity.storage;

  /** @throws ServiceError as `readEvents`; `not_found` if `run_id` is not a task of the bot */
  const readBotEvents = async (bot_ref: string, wanted: EventsRequest) => {
    const bot_id = await getBotId(read, bot_ref);
    const requireRun = async (): Promise<void> => {
      if (wanted.run_id === undefined) return;
      const command = `service-local tasks list --bot ${bot_ref}`;
      await requireTaskOfBot(read, bot_ref, wanted.run_id, command);
    };
    const page = await readEvents(read, bot_id, wanted).catch(async (error: unknown) => {
      // If the bot has archived events, `readEvents` reports those of an unknown run as archived.
      if (error instanceof ServiceError && error.code === 'archived') await requireRun();
      throw error;
    });
    // A run that has events exists, so that only an empty page needs this query.
    if (page.events.length === 0) await requireRun();
    return { bot_id, ...page };
  };

  app.openapi(api.getBotSnapshot, async (c) => {
    const bot_id = await getBotId(read, c.req.valid('param').bot_ref);
    const { at_seq, at } = c.req.valid('query');
    const moment = momentOf(at_seq, at, identity.clock());
    const { state, in_doubt, ...rest } = await stateAt(read, bot_id, moment);
    const doubt = in_doubt && { in_doubt };
    return c.json({ ...rest, ...doubt, state: serializeState(state) }, 200);
  });
  app.openapi(api.listBotEvents, async (c) => {
    const { kind, last, ...range } = c.req.valid('query');
    const wanted = { ...range, last: last === 'true', kinds: kindsOf(kind) };
    const { bot_ref } = c.req.valid('param');
    const { events, head, archived_seq } = await readBotEvents(bot_ref, wanted);
    const { after_seq, until_seq = head.seq, limit } = range;
    // A page that is not full covers the whole range, even if the range ends with events of other kinds.
    const next =
      events.length === limit
        ? events.at(-1)!.seq
        : Math.max(after_seq, Math.min(until_seq, head.seq));
    return c.json(
      {
        items: events.map(serializeEvent),
        head_seq: head.seq,
        archived_seq,
        next_after_seq: next,
      },
      200,
    );
  });
  app.openapi(api.streamBotEvents, async (c) => {
    const { after_seq, kind, run_id } = c.req.valid('query');
    const last = c.req.valid('header')['last-event-id'];
    const from = {
      after_seq: last === undefined ? after_seq : Number(last),
      kinds: kindsOf(kind),
      run_id,
    };
    // An error that occurs later could only end the stream.
    const { bot_id } = await readBotEvents(c.req.valid('param').bot_ref, { ...from, limit: 1 });
    return followEvents(c, services, bot_id, from);
  });
}

export function serializeState(state: BotState): api.BotState {
  const sessions = Object.entries(state.sessions).map(
    ([task_id, session]): [string, api.PaperSession] => [
      task_id,
      { ...session, working: [...session.working] },
    ],
  );
  const { versions } = state;
  return { ...state, versions: [...versions], sessions: Object.fromEntries(sessions) };
}

/** @param now milliseconds since the Unix epoch. */
export function momentOf(seq: number | undefined, at: string | undefined, now: number): Moment {
  if (seq !== undefined) return { seq };
  return at === undefined ? 'head' : { at: Date.parse(at), now };
}

function kindsOf(kind: string | undefined): readonly string[] {
  return kind?.split(',') ?? [];
}

const PAGE = 1000;
type Wanted = Pick<EventsRequest, 'after_seq' | 'kinds' | 'run_id'>;

function followEvents(
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

function serializeEvent({ occurred_at, recorded_at, payload, ...event }: BotEvent): api.BotEvent {
  return {
    ...event,
    occurred_at: formatInstant(occurred_at),
    recorded_at: formatInstant(recorded_at),
    payload: { ...payload },
  };
}
