import { html } from 'hono/html';
import type { getTask } from '../../api/tasks.ts';
import {
  formatCount,
  formatMoney,
  formatPercent,
  formatPrice,
  formatQuantity,
  NO_VALUE,
} from '../../base/format.ts';
import { figures, select, shortId, taskPath, TASKS_PATH, withQuery } from './bot-parts.ts';
import { tradePath } from './chat-sources.ts';
import type { Child, Html } from './html.ts';
import type { Content } from './layout.ts';
import type { Pages, Visit } from './pages.ts';
import { field, table, type Column } from './parts.ts';
import {
  readTradeQuery,
  RESULTS,
  TRADE_COLUMNS,
  TradeTable,
  type TradeColumn,
  type TradeQuery,
  type TradeRow,
} from './trade-table.ts';

const PAGE = 100;
const FILE = 'trades.csv';

/** Registers the page with the trades of a run, and the file with those that it selects. */
export function addTaskTrades(pages: Pages): void {
  pages.get(`${TASKS_PATH}/:task_id/trades`, showTrades);
  pages.other(`${TASKS_PATH}/:task_id/${FILE}`, downloadTrades);
}

export async function readTrades(
  { file }: Pick<Visit, 'file'>,
  task_id: string,
): Promise<TradeTable> {
  return new TradeTable(await file('/tasks/{task_id}/files/{name}', { task_id, name: FILE }));
}

async function downloadTrades(visit: Visit): Promise<Response> {
  const task_id = visit.param('task_id');
  const trades = await readTrades(visit, task_id);
  const lines = trades.select(readTradeQuery(visit)).map(({ line }) => line);
  return visit.c.body([trades.header, ...lines, ''].join('\n'), 200, {
    'Content-Type': 'text/csv; charset=utf-8',
    'Content-Disposition': `attachment; filename="trades-${shortId(task_id).slice(1)}.csv"`,
  });
}

async function showTrades(visit: Visit): Promise<Content> {
  const task_id = visit.param('task_id');
  const params = { task_id };
  const [task, trades] = await Promise.all([
    visit.call<typeof getTask>('get', '/tasks/{task_id}', { params }),
    readTrades(visit, task_id),
  ]);
  const query = readTradeQuery(visit);
  const selected = trades.select(query);
  const pages = Math.max(1, Math.ceil(selected.length / PAGE));
  const asked = Math.trunc(Number(visit.query('page') ?? 1));
  const page = Math.min(pages, Math.max(1, Number.isNaN(asked) ? 1 : asked));
  const path = `${taskPath(task_id)}/trades`;
  const shown = selected.slice((page - 1) * PAGE, page * PAGE);
  return {
    title: `Trades of ${task.bot_slug ?? task.bot_id}`,
    body: html`<div class="heading">
        <p>
          <a href="${TASKS_PATH}">Tasks</a> / <a href="${taskPath(task_id)}">${shortId(task_id)}</a>
          / trades
        </p>
        <div class="actions">
          <a class="button" href="${withQuery(`${taskPath(task_id)}/${FILE}`, query)}" download
            >CSV of these trades</a
          >
          <a class="button" href="${taskPath(task_id)}">The run, with its report</a>
        </div>
      </div>
      ${filterForm(path, query, trades.symbols)} ${totals(selected, trades.rows.length)}
      ${
        shown.length === 0
          ? html`<p>No trade matches the filter.</p>`
          : html`<div class="trades">
              ${table('Trades', columnsOf(task_id, path, query), shown)}
            </div>`
      }
      ${pages > 1 && pager(path, query, page, pages)}`,
  };
}

function filterForm(path: string, query: TradeQuery, symbols: readonly string[]): Html {
  const { symbol, side, result, since, until, sort } = query;
  const isFiltered = [symbol, side, result, since, until].some((one) => one !== undefined);
  return html`<form method="get" action="${path}" class="filter" role="search">
    ${symbols.length > 1 && select('Symbol', 'symbol', symbols, symbol)}
    ${select('Side', 'side', ['long', 'short'], side)}
    ${select('Result', 'result', RESULTS, result)}
    ${field('Entered from', 'since', { type: 'date', value: since ?? '' })}
    ${field('Entered until', 'until', { type: 'date', value: until ?? '' })}
    <input type="hidden" name="sort" value="${sort}" />
    <button>Filter</button>
    ${isFiltered && html`<a class="button" href="${path}">Show all</a>`}
  </form>`;
}

/** Figures of the selected trades. */
function totals(selected: readonly TradeRow[], all: number): Html {
  const closed = selected.filter((trade) => !trade.isOpen);
  const sum = (of: readonly TradeRow[], column: TradeColumn): number =>
    of.reduce((total, trade) => total + trade.number(column), 0);
  const winners = closed.filter((trade) => trade.number('pnl') > 0).length;
  const share = (value: number): string =>
    closed.length === 0 ? NO_VALUE : formatPercent(value / closed.length);
  return figures(
    [
      'Trades',
      selected.length === all
        ? formatCount(all)
        : `${formatCount(selected.length)} of ${formatCount(all)}`,
    ],
    ['Profit', formatMoney(sum(selected, 'pnl'))],
    ['Winning', share(winners)],
    ['Average return', share(sum(closed, 'return'))],
    ['Fees', formatMoney(sum(selected, 'fees'))],
  );
}

const LABELS = {
  id: '#',
  symbol: 'Symbol',
  side: 'Side',
  entry_time: 'Entry',
  entry_price: 'Entry price',
  exit_time: 'Exit',
  exit_price: 'Exit price',
  bars: 'Bars',
  quantity: 'Quantity',
  fees: 'Fees',
  pnl: 'Profit',
  return: 'Return',
} as const satisfies Record<TradeColumn, string>;

const IS_TEXT: ReadonlySet<string> = new Set(['symbol', 'side', 'entry_time', 'exit_time']);

function columnsOf(task_id: string, path: string, query: TradeQuery): Column<TradeRow>[] {
  return TRADE_COLUMNS.map((name): Column<TradeRow> => {
    const isAscending = query.sort === name;
    const isSorted = isAscending || query.sort === `-${name}`;
    const next = isAscending ? `-${name}` : name;
    return {
      title: html`<a class="sort" href="${withQuery(path, { ...query, sort: next })}"
        >${LABELS[name]}</a
      >`,
      cell: (trade) => cellOf(task_id, name, trade),
      ...(isSorted && { sorted: isAscending ? 'ascending' : 'descending' }),
      ...(name === 'id' ? { isHeader: true } : !IS_TEXT.has(name) && { isNumber: true }),
    };
  });
}

function cellOf(task_id: string, name: TradeColumn, trade: TradeRow): Child {
  const text = trade.text(name);
  if (name === 'id') {
    const label = `Trade ${text} on the chart`;
    return html`<a href="${tradePath(task_id, trade.row)}" aria-label="${label}">${text}</a>`;
  }
  if (name === 'exit_time' && trade.isOpen) return 'open';
  return FORMATS[name]?.(text) ?? text;
}

const FORMATS: Partial<Record<TradeColumn, (text: string) => Child>> = {
  entry_time: instant,
  exit_time: instant,
  entry_price: (text) => formatPrice(Number(text)),
  exit_price: (text) => formatPrice(Number(text)),
  bars: (text) => formatCount(Number(text)),
  quantity: (text) => formatQuantity(Number(text)),
  fees: (text) => formatMoney(Number(text)),
  pnl: (text) => signed(Number(text), formatMoney),
  return: (text) => signed(Number(text), formatPercent),
};

function signed(value: number, format: (value: number) => string): Html {
  return html`<span class="${value < 0 ? 'bad' : 'good'}">${format(value)}</span>`;
}

/** Omits the time of midnight, as of daily bars. */
function instant(text: string): Html {
  const short = text.replace('T', ' ').replace(/( 00:00:00)?(\.\d+)?Z$/, '');
  return html`<time datetime="${text}">${short}</time>`;
}

function pager(path: string, query: TradeQuery, page: number, pages: number): Html {
  const to = (at: number): string => withQuery(path, { ...query, page: String(at) });
  return html`<nav class="pager" aria-label="Pages">
    ${page > 1 && html`<a class="button" href="${to(1)}">First page</a><a class="button" href="${to(page - 1)}">Previous page</a>`}
    <span class="note">Page ${page} of ${pages}</span>
    ${page < pages && html`<a class="button" href="${to(page + 1)}">Next page</a><a class="button" href="${to(pages)}">Last page</a>`}
  </nav>`;
}
