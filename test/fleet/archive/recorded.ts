import { appendEvents, appendSessionEvents } from '../../../src/events/append.ts';
import type { BotEvent, NewEvent } from '../../../src/events/event.ts';
import { readEvents } from '../../../src/events/read-events.ts';
import type { Storage } from '../../../src/storage/storage.ts';
import { addBot, CREATED } from '../../events/bots.ts';

const MINUTE = 60_000;

export function startOf(month: string): number {
  return Date.parse(`${month}-01T00:00:00Z`);
}

export async function newBot(storage: Storage, bot_id: string, month: string): Promise<void> {
  await storage.write(async (tx) => {
    await addBot(tx, bot_id);
    await appendEvents(tx, bot_id, startOf(month), [CREATED]);
  });
}

/** A session of one-minute bars, whose events are recorded from `at` on. */
export interface RecordedSession {
  readonly run_id: string;
  readonly at: number;
  readonly bars: number;
  /** Whether the session ends. Default: true. */
  readonly ends?: boolean;
}

/** Records a session as a worker does: bars with the state after them, and an order now and then. */
export async function recordSession(
  storage: Storage,
  bot_id: string,
  { run_id, at, bars, ends = true }: RecordedSession,
): Promise<void> {
  const run = { version: 1, run_id };
  const append = (now: number, events: readonly NewEvent[]) =>
    storage.write((tx) => appendSessionEvents(tx, bot_id, now, events));
  const state = { deployment_id: `of ${run_id}`, status: 'running', seq: 0, cash: 1000 };
  const begun = { ...state, time: null, equity: 1000, positions: {}, working: [] };
  await append(at, [
    { ...run, kind: 'run.queued', occurred_at: at, payload: {} },
    { ...run, kind: 'session.state', occurred_at: at, payload: begun },
  ]);
  for (let done = 0; done < bars;) {
    const events: NewEvent[] = [];
    const first = done;
    for (; done < Math.min(first + 20, bars); done += 1) {
      const occurred_at = at + (done + 1) * MINUTE;
      const time = new Date(occurred_at).toISOString();
      const close = 4321.37 + (done % 50) / 4;
      const bar = { time, bars: { SPX: [close, close + 1, close - 1, close, done] } };
      const after = { ...begun, time, equity: close, positions: { SPX: 1 } };
      events.push({ ...run, kind: 'data.bars', occurred_at, payload: bar });
      if (done % 70 === 0) {
        events.push({ ...run, kind: 'order.filled', occurred_at, payload: { order: done } });
      }
      events.push({ ...run, kind: 'session.state', occurred_at, payload: after });
    }
    await append(at + done * MINUTE, events);
  }
  const now = at + bars * MINUTE;
  if (ends) await append(now, [{ ...run, kind: 'run.ended', occurred_at: now, payload: {} }]);
}

/** All events of a log that are in the database. */
export async function allEvents(
  storage: Storage,
  bot_id: string,
  after_seq = 0,
): Promise<BotEvent[]> {
  const { events } = await readEvents(storage.read, bot_id, { after_seq, limit: 1_000_000 });
  return [...events];
}

/** Rows of the tables that events fill. */
export async function countRows({ read }: Storage): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const table of ['bot_events', 'packed_bars', 'stored_bars', 'bot_snapshots'] as const) {
    const { count } = await read
      .selectFrom(table)
      .select(({ fn }) => fn.countAll().as('count'))
      .executeTakeFirstOrThrow();
    counts[table] = Number(count);
  }
  return counts;
}
