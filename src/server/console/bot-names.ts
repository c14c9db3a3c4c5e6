import type { BotSummary, listBots } from '../../api/bots.ts';
import type { Call } from './call.ts';

export type BotNames = ReadonlyMap<string, BotSummary>;

const AT_ONCE = 100;

/** Reads bots by id, up to 100 per request. Ids without a bot are left out. */
export async function namesOf(call: Call, ids: Iterable<string>): Promise<BotNames> {
  const wanted = [...new Set(ids)];
  const names = new Map<string, BotSummary>();
  for (let done = 0; done < wanted.length; done += AT_ONCE) {
    const some = wanted.slice(done, done + AT_ONCE);
    const query = { ids: some.join(','), limit: AT_ONCE };
    const { items } = await call<typeof listBots>('get', '/bots', { query });
    for (const bot of items) names.set(bot.id, bot);
  }
  return names;
}
