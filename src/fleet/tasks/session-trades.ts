/** Lists of the round trips of a trading session. */
import { csvCell } from '../../backtest/result-csv.ts';
import { TRADE_COLUMNS } from '../../backtest/run-tables.ts';
import { isoTime } from '../../base/iso-time.ts';
import { readPage, type Page, type PageRequest } from '../../storage/paging.ts';
import { readTrades, type SessionTrade } from './booked-trades.ts';
import { findSession } from './find-session.ts';
import type { TaskService } from './tasks.ts';

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
  service: TaskService,
  ref: string,
  filter: TradeFilter,
  request: PageRequest,
): Promise<SessionTrades> {
  const { task_id, trades } = await tradesOf(service, ref, filter);
  const all = select(trades, filter);
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

/** Sessions do not count the bars of a trade. */
const COLUMNS = TRADE_COLUMNS.filter((column) => column !== 'bars');

/**
 * Writes the trades that match as CSV, with the columns of `trades.csv` of a run but `bars`.
 *
 * @throws ServiceError `not_found` for the bot or the session.
 */
export async function sessionTradesCsv(
  service: TaskService,
  ref: string,
  filter: TradeFilter,
): Promise<string> {
  const { trades } = await tradesOf(service, ref, filter);
  const lines = select(trades, filter).map((trade) =>
    COLUMNS.map((column) =>
      column === 'entry_time' || column === 'exit_time'
        ? isoTime(trade[column])
        : csvCell(trade[column]),
    ).join(','),
  );
  return [COLUMNS.join(','), ...lines].map((line) => `${line}\n`).join('');
}

async function tradesOf(
  { storage: { read }, archiveDir = '' }: TaskService,
  ref: string,
  { run_id }: TradeFilter,
): Promise<{ readonly task_id: string; readonly trades: readonly SessionTrade[] }> {
  const found = await findSession(read, ref, run_id);
  return { task_id: found.task.task_id, trades: await readTrades(read, archiveDir, found) };
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
