/** The trades of a run as read from `trades.csv`, filtered and ordered by the query of a page. */
import { parseLine } from '../../research/parse-csv.ts';
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

/** A trade. Its line is parsed when it is first used, because a run may have many thousands. */
export class TradeRow {
  /** Row in `trades.csv`, from 2. */
  readonly row: number;
  /** The line in `trades.csv`. */
  readonly line: string;
  readonly #places: ReadonlyMap<string, number>;
  #cells: readonly string[] | undefined;

  /** @param places of the columns in a line, from 0. */
  constructor(row: number, line: string, places: ReadonlyMap<string, number>) {
    this.row = row;
    this.line = line;
    this.#places = places;
  }

  text(column: TradeColumn | 'status'): string {
    this.#cells ??= parseLine(this.line);
    return this.#cells[this.#places.get(column)!] ?? '';
  }

  number(column: TradeColumn): number {
    return Number(this.text(column));
  }

  get isOpen(): boolean {
    return this.text('status') === 'open';
  }
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
    const places = new Map(parseLine(header).map((name, place) => [name, place]));
    this.rows = lines.map((line, i) => new TradeRow(i + 2, line, places));
  }

  get symbols(): readonly string[] {
    return [...new Set(this.rows.map((row) => row.text('symbol')))].sort();
  }

  select(query: TradeQuery): TradeRow[] {
    const column = query.sort.replace(/^-/, '') as TradeColumn;
    const sign = query.sort.startsWith('-') ? -1 : 1;
    const order = (a: TradeRow, b: TradeRow): number => {
      if (!TEXTS.has(column)) return sign * (a.number(column) - b.number(column));
      const [left, right] = [a.text(column), b.text(column)];
      return sign * (left < right ? -1 : Number(left > right));
    };
    return this.rows.filter((row) => isSelected(row, query)).sort(order);
  }
}

function isSelected(row: TradeRow, { symbol, side, result, since, until }: TradeQuery): boolean {
  const day = row.text('entry_time').slice(0, 10);
  return (
    (symbol === undefined || row.text('symbol') === symbol) &&
    (side === undefined || row.text('side') === side) &&
    (result === undefined || result === resultOf(row)) &&
    (since === undefined || day >= since) &&
    (until === undefined || day <= until)
  );
}

function resultOf(row: TradeRow): TradeQuery['result'] {
  if (row.isOpen) return 'open';
  const profit = row.number('pnl');
  return profit === 0 ? undefined : profit > 0 ? 'winning' : 'losing';
}

/** Fragment with which a report shows a trade on its price chart. */
export function tradeFragment(trade: TradeRow): string {
  const seconds = (column: 'entry_time' | 'exit_time'): number =>
    Date.parse(trade.text(column)) / 1000;
  const shown = [
    trade.number('id'),
    trade.text('symbol'),
    seconds('entry_time'),
    seconds('exit_time'),
    trade.number('entry_price'),
    trade.number('exit_price'),
    trade.number('pnl'),
    trade.isOpen ? 1 : 0,
  ];
  return `#trade=${encodeURIComponent(JSON.stringify(shown))}`;
}
