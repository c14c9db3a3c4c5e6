/** Round trips of a trading session, computed from the recorded fills. */
import { csvCell } from '../../backtest/result-csv.ts';
import { isoTime } from '../../base/iso-time.ts';
import type { OrderEvent } from '../../engine/journal.ts';
import { EngineMemory } from '../../engine/memory.ts';
import { Booking, Portfolio } from '../../engine/portfolio.ts';
import type { Trade } from '../../engine/round-trip.ts';
import { readEvents } from '../../events/read-events.ts';
import type { Db } from '../../storage/tables.ts';
import { readPage, type Page, type PageRequest } from '../../storage/paging.ts';
import type { SessionState } from '../../events/session-state.ts';
import { findSession, type FoundSession } from './find-session.ts';
import type { PaperInput } from './paper.ts';

/** A round trip; one that is open is valued at the newest close. */
export interface SessionTrade extends Omit<Trade, 'bars'> {
  readonly status: 'closed' | 'open';
}

export interface TradeFilter {
  /** Default: the newest trading session. */
  readonly run_id?: string | undefined;
  readonly symbol?: string | undefined;
  readonly side?: SessionTrade['side'] | undefined;
  readonly outcome?: 'gain' | 'loss' | 'open' | undefined;
  readonly sort: 'entry_time' | 'exit_time' | 'symbol' | 'quantity' | 'pnl' | 'return';
  readonly order: 'asc' | 'desc';
}

export interface SessionTrades extends Page<SessionTrade> {
  readonly run_id: string;
  /** Number and total profit of all trades that match the filter. */
  readonly count: number;
  readonly pnl: number;
}

/**
 * Lists the round trips of a session, open ones included.
 *
 * @throws ServiceError `not_found` for the bot or the session; `invalid_request` for a cursor of
 * another list.
 */
export async function listSessionTrades(
  db: Db,
  ref: string,
  filter: TradeFilter,
  request: PageRequest,
): Promise<SessionTrades> {
  const found = await findSession(db, ref, filter.run_id);
  const { task_id } = found.task;
  const all = select(await tradesOf(db, found), filter);
  const { symbol, side, outcome, sort, order } = filter;
  const list = ['session trades', task_id, symbol, side, outcome, sort, order] as const;
  const page = await readPage(
    list,
    request,
    ({ id }: SessionTrade) => String(id),
    async (after, limit) => {
      const start = after === undefined ? 0 : all.findIndex(({ id }) => String(id) === after) + 1;
      return all.slice(start, start + limit);
    },
  );
  const pnl = all.reduce((sum, trade) => sum + trade.pnl, 0);
  return { ...page, run_id: task_id, count: all.length, pnl };
}

const COLUMNS = [
  'id',
  'symbol',
  'side',
  'status',
  'entry_time',
  'exit_time',
  'quantity',
  'entry_price',
  'exit_price',
  'pnl',
  'return',
  'fees',
] as const satisfies readonly (keyof SessionTrade)[];

/**
 * Writes the trades that match as CSV, with the columns of `trades.csv` of a run.
 *
 * @throws ServiceError `not_found` for the bot or the session.
 */
export async function sessionTradesCsv(db: Db, ref: string, filter: TradeFilter): Promise<string> {
  const trades = select(await tradesOf(db, await findSession(db, ref, filter.run_id)), filter);
  const lines = trades.map((trade) =>
    COLUMNS.map((column) =>
      column === 'entry_time' || column === 'exit_time'
        ? isoTime(trade[column])
        : csvCell(trade[column]),
    ).join(','),
  );
  return [COLUMNS.join(','), ...lines].map((line) => `${line}\n`).join('');
}

function select(
  trades: readonly SessionTrade[],
  { symbol, side, outcome, sort, order }: TradeFilter,
): SessionTrade[] {
  const direction = order === 'asc' ? 1 : -1;
  const compare = (a: SessionTrade, b: SessionTrade): number => {
    const [x, y] = [a[sort], b[sort]];
    return direction * (x < y ? -1 : x > y ? 1 : a.id - b.id);
  };
  return trades
    .filter((trade) => symbol === undefined || trade.symbol === symbol)
    .filter((trade) => side === undefined || trade.side === side)
    .filter((trade) => outcome === undefined || outcomeOf(trade) === outcome)
    .toSorted(compare);
}

function outcomeOf({ status, pnl }: SessionTrade): TradeFilter['outcome'] {
  if (status === 'open') return 'open';
  return pnl > 0 ? 'gain' : 'loss';
}

const KINDS = ['order.filled', 'order.fee', 'order.corrected', 'order.submitted'];
const PAGE = 1000;

async function tradesOf(db: Db, { task, state }: FoundSession): Promise<SessionTrade[]> {
  const { bot_id, task_id: run_id, input } = task;
  const events: OrderEvent[] = [];
  for (let after_seq = 0; ;) {
    const range = { after_seq, kinds: KINDS, run_id, limit: PAGE };
    const page = await readEvents(db, bot_id, range);
    for (const { payload } of page.events) events.push(payload as unknown as OrderEvent);
    if (page.events.length < PAGE) break;
    after_seq = page.events.at(-1)!.seq;
  }
  const { opening = { cash: 0, positions: {} } } = JSON.parse(input) as Partial<PaperInput>;
  const traded = [...Object.keys(opening.positions), ...events.map(({ symbol }) => symbol)];
  const symbols = [...new Set(traded)];
  const account = new Portfolio(symbols, 0, new EngineMemory());
  account.open(opening);
  bookAll(account, symbols, events);
  return [
    ...account.closedTrades().map((trade) => ({ ...trade, status: 'closed' as const })),
    ...openTrades(account, symbols, state),
  ];
}

/** Books the fills of a session, and their later fees and corrections. */
function bookAll(
  account: Portfolio,
  symbols: readonly string[],
  events: readonly OrderEvent[],
): void {
  if (events.length > 0) account.date(Date.parse(events[0]!.time));
  const booking = new Booking();
  const sides = new Map<number, 'buy' | 'sell'>();
  /** The trade that the newest fill of each order belongs to. */
  const trades = new Map<number, number>();
  for (const event of events) {
    if (event.kind === 'order.submitted') sides.set(event.order, event.side);
    if (
      event.kind !== 'order.filled' &&
      event.kind !== 'order.fee' &&
      event.kind !== 'order.corrected'
    )
      continue;
    const { order, kind, quantity, fee } = event;
    const instrument = symbols.indexOf(event.symbol);
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
}

/** Open positions, valued as in the state of the session, or at their newest fill. */
function openTrades(
  account: Portfolio,
  symbols: readonly string[],
  { time, carry }: SessionState,
): SessionTrade[] {
  for (const [index, symbol] of symbols.entries()) {
    account.marks[index] = carry?.marks[symbol] ?? account.marks[index]!;
  }
  const now = time === null ? 0 : Date.parse(time);
  return account.openTrades(now, 0).map((trade) => ({ ...trade, status: 'open' as const }));
}
