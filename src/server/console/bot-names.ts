import type { BotSummary, listBots } from '../../api/bots.ts';
import type { Call } from './call.ts';

export type BotNames = ReadonlyMap<string, BotSummary>;

const PER_REQUEST = 100;

/** Reads bots by id, up to 100 per request. Ids without a bot are left out. */
export async function readBotNames(call: Call, ids: Iterable<string>): Promise<BotNames> {
  const wanted = [...new Set(ids)];
  const names = new Map<string, BotSummary>();
  for (let start = 0; start < wanted.length; start += PER_REQUEST) {
    const batch = wanted.slice(start, start + PER_REQUEST);
    const query = { ids: batch.join(','), limit: PER_REQUEST };
    const { items } = await call<typeof listBots>('get', '/bots', { query });
    for (const bot of items) names.set(bot.id, bot);
  }
  return names;
}
