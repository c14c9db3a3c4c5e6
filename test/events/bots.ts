import { NO_EVENTS, type NewEvent } from '../../src/events/event.ts';
import type { StateEvent } from '../../src/events/bot-state.ts';
import type { Db } from '../../src/storage/tables.ts';

/** Inserts a bot without events. */
export async function addBot(tx: Db, bot_id: string): Promise<void> {
  const row = { bot_id, slug: bot_id, name: bot_id, kind: 'trading', status: 'draft' } as const;
  const times = { current_version: 0, created_at: 0, updated_at: 0 };
  await tx
    .insertInto('bots')
    .values({ ...row, ...times, ...NO_EVENTS })
    .execute();
}

export const CREATED = {
  kind: 'bot.created',
  version: 1,
  occurred_at: Date.parse('2026-01-02T03:04:05.006Z'),
  payload: { slug: 'sma', name: 'SMA crossover', kind: 'trading' },
} as const satisfies StateEvent & NewEvent;

/** Does not change the state. */
export function tick(n: number): NewEvent {
  return { kind: 'tick', version: 1, occurred_at: CREATED.occurred_at + n, payload: { n } };
}

export function ticks(count: number): NewEvent[] {
  return Array.from({ length: count }, (_, n) => tick(n));
}
