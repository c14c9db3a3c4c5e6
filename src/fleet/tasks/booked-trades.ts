/** Round trips of trading sessions, booked from their recorded fills as these are added. */
import type { OrderEvent } from '../../engine/journal.ts';
import { EngineMemory } from '../../engine/memory.ts';
import { Booking, Portfolio, type Opening } from '../../engine/portfolio.ts';
import type { Trade } from '../../engine/round-trip.ts';
import { refuseArchived } from '../../events/archive/archived-events.ts';
import type { SessionState } from '../../events/session-state.ts';
import type { Db } from '../../storage/tables.ts';
import type { FoundSession } from './find-session.ts';
import type { PaperInput } from './paper.ts';
import { recordedEvents } from './read-run-events.ts';

/** A round trip; one that is open is valued at the newest close. */
export interface SessionTrade extends Omit<Trade, 'bars'> {
  readonly status: 'closed' | 'open';
}

const KINDS = ['order.filled', 'order.fee', 'order.corrected', 'order.submitted'];
/** Events whose bookings are kept, at about 100 bytes each; the session read last is always kept. */
const MOST_EVENTS = 500_000;
/** Memory of a session without trades, in events. */
const EMPTY_SESSION = 1000;

interface Kept {
  readonly booked: Promise<BookedSession>;
  /** Size of its memory, in events. */
  size: number;
}

/** Booked sessions by task, the most recently read last. Each database has its own. */
const kept = new WeakMap<Db, Map<string, Kept>>();

/**
 * Reads the trades of a session. Later calls read only the events that were added since.
 *
 * @param archiveDir directory of archived events.
 * @throws ServiceError as `recordedEvents`.
 */
export async function readTrades(
  db: Db,
  archiveDir: string,
  { task, state }: FoundSession,
): Promise<readonly SessionTrade[]> {
  const sessions = kept.get(db) ?? new Map<string, Kept>();
  kept.set(db, sessions);
  const { bot_id, task_id: run_id, input, ended_at } = task;
  const run = { bot_id, run_id, input, hasEnded: ended_at !== null };
  // Readers of the same session take turns, so that each event is booked once.
  const before = sessions.get(run_id)?.booked;
  const own: Kept = {
    booked: continueSession(db, archiveDir, run, before),
    size: EMPTY_SESSION,
  };
  sessions.delete(run_id);
  sessions.set(run_id, own);
  try {
    const session = await own.booked;
    own.size = EMPTY_SESSION + session.count;
    dropOldest(sessions);
    return session.trades(state);
  } catch (error) {
    if (sessions.get(run_id) === own) sessions.delete(run_id);
    throw error;
  }
}

function dropOldest(sessions: Map<string, Kept>): void {
  let size = 0;
  for (const one of sessions.values()) size += one.size;
  for (const [run_id, one] of sessions) {
    if (size <= MOST_EVENTS || sessions.size === 1) return;
    sessions.delete(run_id);
    size -= one.size;
  }
}

interface Run {
  readonly bot_id: string;
  readonly run_id: string;
  /** JSON of the task's input. */
  readonly input: string;
  readonly hasEnded: boolean;
}

async function continueSession(
  db: Db,
  archiveDir: string,
  run: Run,
  before: Promise<BookedSession> | undefined,
): Promise<BookedSession> {
  const session = await before?.catch(() => undefined);
  const events: OrderEvent[] = [];
  const { bot_id, run_id, input } = run;
  let seq = session?.seq ?? (await startOf(db, run));
  const range = { bot_id, run_id, kinds: KINDS, after_seq: seq };
  const read = recordedEvents(db, archiveDir, range);
  for (let isLast = false; !isLast;) {
    const page = await read();
    for (const { payload } of page.events) events.push(JSON.parse(payload) as OrderEvent);
    // Events without trades up to the head need not be read again, even once they are archived.
    ({ until_seq: seq, isLast } = page);
  }
  if (session?.canBook(events)) return session.book(events, seq);
  // The account needs its instruments from the start, so a further one begins it again.
  if (session !== undefined) {
    return continueSession(db, archiveDir, run, undefined);
  }
  const { opening = { cash: 0, positions: {} } } = JSON.parse(input) as Partial<PaperInput>;
  return new BookedSession(opening, events).book(events, seq);
}

/**
 * Returns a sequence number before the first event of a session.
 *
 * @throws ServiceError `archived` for a session that has ended and whose first event is archived: its
 * result lists the trades.
 */
async function startOf(db: Db, { bot_id, run_id, hasEnded }: Run): Promise<number> {
  const session = await db
    .selectFrom('trading_sessions')
    .select('first_seq')
    .where('task_id', '=', run_id)
    .executeTakeFirst();
  if (session === undefined) return 0;
  if (hasEnded) await refuseArchived(db, bot_id, session.first_seq);
  return session.first_seq - 1;
}

/** The account of a session after its events up to `seq`. */
class BookedSession {
  /** Sequence number in the log of the bot up to which all events are booked. */
  seq = 0;
  /** Number of booked events. */
  count = 0;
  readonly #symbols: readonly string[];
  readonly #account: Portfolio;
  readonly #booking = new Booking();
  readonly #sides = new Map<number, 'buy' | 'sell'>();
  /** The trade that the newest fill of each order belongs to. */
  readonly #trades = new Map<number, number>();

  /** @param events with all instruments that may be booked later */
  constructor(opening: Opening, events: readonly OrderEvent[]) {
    const traded = [...Object.keys(opening.positions), ...events.map(({ symbol }) => symbol)];
    this.#symbols = [...new Set(traded)];
    this.#account = new Portfolio(this.#symbols, 0, new EngineMemory());
    this.#account.open(opening);
  }

  canBook(events: readonly OrderEvent[]): boolean {
    return events.every(({ symbol }) => this.#symbols.includes(symbol));
  }

  /** Books fills, and their later fees and corrections. @param seq up to which `events` are complete */
  book(events: readonly OrderEvent[], seq: number): this {
    if (this.count === 0 && events.length > 0) this.#account.date(Date.parse(events[0]!.time));
    for (const event of events) this.#bookOne(event);
    this.count += events.length;
    this.seq = seq;
    return this;
  }

  #bookOne(event: OrderEvent): void {
    const account = this.#account;
    const booking = this.#booking;
    const [sides, trades] = [this.#sides, this.#trades];
    if (event.kind === 'order.submitted') sides.set(event.order, event.side);
    if (
      event.kind !== 'order.filled' &&
      event.kind !== 'order.fee' &&
      event.kind !== 'order.corrected'
    )
      return;
    const { order, kind, quantity, fee } = event;
    const instrument = this.#symbols.indexOf(event.symbol);
    Object.assign(booking, { instrument, quantity, fee, time: Date.parse(event.time) });
    booking.price = kind === 'order.fee' ? account.marks[instrument]! : event.price;
    account.marks[instrument] = booking.price;
    if (kind === 'order.fee') account.settle(booking, trades.get(order));
    else if (kind === 'order.corrected')
      account.correct(booking, sides.get(order)!, trades.get(order));
    else {
      booking.quantity = event.side === 'buy' ? quantity : -quantity;
      account.book(booking);
      trades.set(order, account.lastTrade(instrument));
    }
  }

  /** Closed trades, then open positions, valued as in the state or at their newest fill. */
  trades({ time, carry }: SessionState): SessionTrade[] {
    const account = this.#account;
    const fills = account.marks.slice();
    for (const [index, symbol] of this.#symbols.entries()) {
      account.marks[index] = carry?.marks[symbol] ?? fills[index]!;
    }
    const now = time === null ? 0 : Date.parse(time);
    const open = account.openTrades(now, 0);
    // Later fees in units are booked at the price of the newest fill.
    account.marks.set(fills);
    return [
      ...account.closedTrades().map((trade) => ({ ...trade, status: 'closed' as const })),
      ...open.map((trade) => ({ ...trade, status: 'open' as const })),
    ];
  }
}
