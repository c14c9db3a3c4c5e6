import type { BotEvent, listBotEvents } from '../api/bot-state.ts';
import type { Client } from '../client/client.ts';
import type { RequestOf } from '../client/route.ts';

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
