import type { BotEvent, listBotEvents, streamBotEvents } from '../api/bot-state.ts';
import type { Client } from '../client/client.ts';
import type { RequestOf } from '../client/route.ts';
import { findBot } from './bots.ts';
import { followStream } from './follow-stream.ts';
import type { Answer, Context } from './verb.ts';

type Query = RequestOf<typeof listBotEvents>['query'] & { readonly after_seq: number };

/** Yields the events of a bot after `after_seq`, oldest first. */
export async function* readEvents(
  server: Client,
  bot_ref: string,
  query: Query,
): AsyncGenerator<BotEvent, void, void> {
  let { after_seq } = query;
  for (;;) {
    const { items, head_seq, next_after_seq } = await server.call<typeof listBotEvents>(
      'get',
      '/bots/{bot_ref}/state/events',
      { params: { bot_ref }, query: { ...query, after_seq, limit: 1000 } },
    );
    yield* items;
    if (next_after_seq >= head_seq || next_after_seq <= after_seq) return;
    after_seq = next_after_seq;
  }
}

export interface WantedEvents {
  readonly kind: string | undefined;
  readonly run_id: string | undefined;
}

/** Number of last events that are shown by default. */
export const LAST_EVENTS = 50;

/** Returns the sequence number before the last matching events. */
export async function findStart(
  server: Client,
  context: Context,
  bot_ref: string,
  wanted: WantedEvents,
): Promise<number> {
  const { items, head_seq, archived_seq } = await server.call<typeof listBotEvents>(
    'get',
    '/bots/{bot_ref}/state/events',
    { params: { bot_ref }, query: { ...wanted, last: 'true', limit: LAST_EVENTS } },
  );
  if (archived_seq > 0) context.message(`Events 1 to ${archived_seq} are archived.`);
  return items.length === 0 ? head_seq : items[0]!.seq - 1;
}

/** Returns an answer that prints the lines of each event as it arrives, until Ctrl-C. */
export async function followAnswer(
  server: Client,
  context: Context,
  bot_ref: string,
  query: WantedEvents & { readonly after_seq: number },
  linesOf: (event: BotEvent) => readonly string[],
): Promise<Answer> {
  // Following by id, because the slug may move to another bot.
  const { id } = (await findBot(server, bot_ref)).answer;
  const stream = followEvents(server, context, id, query);
  return {
    data: null,
    stream,
    async show(out) {
      for await (const event of stream) {
        // A reader such as `head` has closed the pipe.
        if (context.io.stdout.errored) return;
        for (const line of linesOf(event)) out.line(line);
      }
    },
  };
}

async function* followEvents(
  server: Client,
  context: Context,
  bot_ref: string,
  query: WantedEvents & { readonly after_seq: number },
): AsyncGenerator<BotEvent, void, void> {
  const path = '/bots/{bot_ref}/state/events/stream';
  const stream = followStream(
    (headers) =>
      server.stream<typeof streamBotEvents>(path, { params: { bot_ref }, query, headers }),
    context,
  );
  for await (const data of stream) yield JSON.parse(data) as BotEvent;
}
