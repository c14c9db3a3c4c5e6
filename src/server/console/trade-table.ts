/** The trades of a run as read from `trades.csv`, filtered and ordered by the query of a page. */
import { parseCsv } from '../../research/parse-csv.ts';
import type { Visit } from './pages.ts';

/** Columns of `trades.csv` that a list of trades shows, in its order. */
export const TRADE_COLUMNS = [
  'id',
  'symbol',
  'side',
  'pnl',
  'return',
  'entry_time',
  'entry_price',
  'exit_time',
  'exit_price',
  'bars',
  'quantity',
  'fees',
] as const;

export type TradeColumn = (typeof TRADE_COLUMNS)[number];

export const RESULTS = ['winning', 'losing', 'open'] as const;

export type TradeCells = Readonly<Record<TradeColumn | 'status', string>>;

export interface TradeRow {
  /** Row in `trades.csv`, from 2. */
  readonly row: number;
  readonly cells: TradeCells;
  /** The line in `trades.csv`. */
  readonly line: string;
}

const TEXTS: ReadonlySet<TradeColumn> = new Set(['symbol', 'side', 'entry_time', 'exit_time']);

export interface TradeQuery {
  readonly symbol: string | undefined;
  readonly side: 'long' | 'short' | undefined;
  readonly result: (typeof RESULTS)[number] | undefined;
  /** First and last day of the entry, such as `2026-01-31`. */
  readonly since: string | undefined;
  readonly until: string | undefined;
  /** A column, with `-` before it if descending. */
  readonly sort: string;
}

export function readTradeQuery({ query }: Pick<Visit, 'query'>): TradeQuery {
  const sort = query('sort') ?? 'id';
  const isColumn = TRADE_COLUMNS.some((column) => column === sort.replace(/^-/, ''));
  return {
    symbol: query('symbol'),
    side: (['long', 'short'] as const).find((one) => one === query('side')),
    result: RESULTS.find((one) => one === query('result')),
    since: query('since'),
    until: query('until'),
    sort: isColumn ? sort : 'id',
  };
}

export class TradeTable {
  readonly header: string;
  /** In their order in the file. */
  readonly rows: readonly TradeRow[];

  /** @param text of `trades.csv` */
  constructor(text: string) {
    const [header = '', ...lines] = text.trimEnd().split('\n');
    this.header = header;
    this.rows = parseCsv(text).map((cells, i) => ({
      row: i + 2,
      cells: cells as TradeCells,
      line: lines[i]!,
    }));
  }

  get symbols(): readonly string[] {
    return [...new Set(this.rows.map(({ cells }) => cells.symbol))].sort();
  }

  select(query: TradeQuery): TradeRow[] {
    const column = query.sort.replace(/^-/, '') as TradeColumn;
    const sign = query.sort.startsWith('-') ? -1 : 1;
    const order = (a: TradeRow, b: TradeRow): number => {
      const [left, right] = [a.cells[column], b.cells[column]];
      if (TEXTS.has(column)) return sign * (left < right ? -1 : Number(left > right));
      return sign * (Number(left) - Number(right));
    };
    return this.rows.filter(({ cells }) => isSelected(cells, query)).sort(order);
  }
}

function isSelected(
  { symbol, side, status, pnl, entry_time }: TradeCells,
  query: TradeQuery,
): boolean {
  const isOpen = status === 'open';
  const profit = Number(pnl);
  const hasResult = {
    winning: !isOpen && profit > 0,
    losing: !isOpen && profit < 0,
    open: isOpen,
  };
  const day = entry_time.slice(0, 10);
  return (
    (query.symbol === undefined || symbol === query.symbol) &&
    (query.side === undefined || side === query.side) &&
    (query.result === undefined || hasResult[query.result]) &&
    (query.since === undefined || day >= query.since) &&
    (query.until === undefined || day <= query.until)
  );
}

/** Fragment with which a report shows a trade on its price chart. */
export function tradeFragment({ cells }: TradeRow): string {
  const { id, symbol, entry_time, exit_time, entry_price, exit_price, pnl, status } = cells;
  const seconds = (time: string): number => Date.parse(time) / 1000;
  const shown = [
    Number(id),
    symbol,
    seconds(entry_time),
    seconds(exit_time),
    Number(entry_price),
    Number(exit_price),
    Number(pnl),
    status === 'open' ? 1 : 0,
  ];
  return `#trade=${encodeURIComponent(JSON.stringify(shown))}`;
}
