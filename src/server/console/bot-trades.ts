import { html } from 'hono/html';
import type { BotDetail } from '../../api/bots.ts';
import type { listSessionTrades, SessionTrade } from '../../api/session-views.ts';
import {
  formatCountOf,
  formatMoney,
  formatPercent,
  formatPrice,
  formatQuantity,
} from '../../base/format.ts';
import { ServiceError } from '../../base/errors.ts';
import type { AnswerOf } from '../../client/route.ts';
import { LIVE_TRADES } from './assets.ts';
import { botFrame, readBot } from './bot-frame.ts';
import { barTime, botPath, select, shortId, taskPath, universeOf } from './bot-parts.ts';
import type { Html } from './html.ts';
import type { Content } from './layout.ts';
import type { Pages, Visit } from './pages.ts';

const PAGE = 25;
const SIDES = ['long', 'short'] as const;
const OUTCOMES = ['gain', 'loss', 'open'] as const;
const COLUMNS = [
  { sort: 'entry_time', title: 'Entry' },
  { sort: 'exit_time', title: 'Exit' },
  { sort: 'symbol', title: 'Symbol' },
  { title: 'Side' },
  { sort: 'quantity', title: 'Units', isNumber: true },
  { title: 'Entry price', isNumber: true },
  { title: 'Exit price', isNumber: true },
  { sort: 'pnl', title: 'Profit', isNumber: true },
  { sort: 'return', title: 'Return', isNumber: true },
] as const;
type Sort = NonNullable<Extract<(typeof COLUMNS)[number], { readonly sort: string }>['sort']>;

/** Fields of the query of the page that choose and order the trades. */
interface Query {
  readonly symbol: string | undefined;
  readonly side: (typeof SIDES)[number] | undefined;
  readonly outcome: (typeof OUTCOMES)[number] | undefined;
  readonly sort: Sort;
  readonly order: 'asc' | 'desc';
  readonly cursor: string | undefined;
}

export function addBotTrades(pages: Pages): void {
  pages.get('/console/bots/:bot_ref/trades', showTrades);
}

async function showTrades(visit: Visit): Promise<Content> {
  const bot = await readBot(visit);
  return {
    title: bot.name,
    scripts: [LIVE_TRADES],
    body: botFrame(bot, 'trades', await tradesSection(visit, bot, visit.query('session'))),
  };
}

/** Trades of a session of the bot, by default the newest, chosen and ordered by the query. */
export async function tradesSection(
  { call, query }: Visit,
  bot: BotDetail,
  run_id: string | undefined,
): Promise<Html> {
  const { id, slug } = bot;
  const asked: Query = {
    symbol: query('symbol'),
    side: SIDES.find((one) => one === query('side')),
    outcome: OUTCOMES.find((one) => one === query('outcome')),
    sort:
      COLUMNS.flatMap((one) => ('sort' in one ? [one.sort] : [])).find(
        (one) => one === query('sort'),
      ) ?? 'entry_time',
    order: query('order') === 'asc' ? 'asc' : 'desc',
    cursor: query('cursor'),
  };
  const request = { params: { bot_ref: id }, query: { ...asked, run_id, limit: PAGE } };
  let found;
  try {
    found = await call<typeof listSessionTrades>('get', '/bots/{bot_ref}/state/trades', request);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const isArchived = error.code === 'archived' || error.reason === 'archive_unreadable';
    if (isArchived) return archivedNotice(error);
    throw error;
  }
  const { symbols } = universeOf(bot);
  const session = query('session');
  return html`<section id="trades" data-path="${botPath(slug, 'trades')}">
    <div class="heading">
      <h2 id="trades-title">Trades</h2>
      <p><a href="${taskPath(found.run_id)}">Session ${shortId(found.run_id)}</a></p>
    </div>
    <form method="get" action="#trades" class="filter" aria-label="Filter of the trades">
      ${session !== undefined && html`<input type="hidden" name="session" value="${session}" />`}
      <input type="hidden" name="sort" value="${asked.sort}" />
      <input type="hidden" name="order" value="${asked.order}" />
      ${symbols.length > 1 && select('Symbol', 'symbol', symbols, asked.symbol)}
      ${select('Side', 'side', SIDES, asked.side)}
      ${select('Result', 'outcome', OUTCOMES, asked.outcome)}
      <button>Filter</button>
    </form>
    ${rowsPart(bot, session, asked, found)}
  </section>`;
}

/** Stands in for the trades of a session whose first events are archived and cannot be read. */
function archivedNotice({ message, remedy }: ServiceError): Html {
  return html`<section>
    <h2>Trades</h2>
    <p class="note">
      The trades of this session cannot be listed, because its first events were archived:
      ${message}.
    </p>
    ${remedy !== undefined && html`<p class="note">${remedy}</p>`}
  </section>`;
}

/** The part that changes with each trade, and with each choice of the reader. */
function rowsPart(
  bot: BotDetail,
  session: string | undefined,
  query: Query,
  found: AnswerOf<typeof listSessionTrades>,
): Html {
  const { items, next_cursor, count, pnl, run_id } = found;
  const { sort, order, cursor, ...filter } = query;
  const link = (changes: Partial<Query>): string => {
    const all = { session, ...query, ...changes };
    const given = Object.entries(all).filter((entry): entry is [string, string] => !!entry[1]);
    return `?${new URLSearchParams(given)}#trades`;
  };
  const given = Object.entries({ run_id, sort, order, ...filter, format: 'csv' }).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  );
  return html`<div id="trades-rows">
    <div class="heading">
      <p class="note">
        ${count === 0 ? 'No trade yet, or none that matches.' : html`${formatCountOf(count, 'trade')}, profit <b class="${signOf(pnl)}">${formatMoney(pnl)}</b>`}
      </p>
      ${count > 0 && html`<a class="button" href="/bots/${bot.id}/state/trades?${new URLSearchParams(given)}" download="trades.csv">CSV</a>`}
    </div>
    ${
      items.length > 0 &&
      html`<div class="scroll" role="region" aria-labelledby="trades-title" tabindex="0">
        <table class="trades">
          <thead>
            <tr>
              ${COLUMNS.map((column) => heading(column, query, link))}
            </tr>
          </thead>
          <tbody>
            ${items.map((trade) => tradeRow(trade, universeOf(bot).isDaily))}
          </tbody>
        </table>
      </div>`
    }
    ${
      (cursor !== undefined || next_cursor !== null) &&
      html`<nav class="pager" aria-label="Pages of trades">
        ${cursor !== undefined && html`<a class="button" id="trades-first" data-query href="${link({ cursor: undefined })}">First page</a>`}
        ${next_cursor !== null && html`<a class="button" id="trades-next" data-query href="${link({ cursor: next_cursor })}">Next page</a>`}
      </nav>`
    }
  </div>`;
}

function heading(
  column: (typeof COLUMNS)[number],
  { sort, order }: Query,
  link: (changes: Partial<Query>) => string,
): Html {
  const style = 'isNumber' in column ? html` class="number"` : '';
  if (!('sort' in column)) return html`<th scope="col" ${style}>${column.title}</th>`;
  const isSorted = column.sort === sort;
  const next = isSorted && order === 'desc' ? 'asc' : 'desc';
  const state = isSorted ? html` aria-sort="${order === 'asc' ? 'ascending' : 'descending'}"` : '';
  return html`<th scope="col" ${style}${state}>
    <a
      id="sort-${column.sort}"
      class="sort"
      data-query
      href="${link({ sort: column.sort, order: next, cursor: undefined })}"
      >${column.title}</a
    >
  </th>`;
}

function tradeRow(trade: SessionTrade, isDaily: boolean): Html {
  const { status, symbol, side, quantity, entry_price, exit_price, pnl } = trade;
  return html`<tr>
    <th scope="row">${barTime(trade.entry_time, isDaily)}</th>
    <td>
      ${status === 'open' ? html`<span class="badge good">open</span>` : barTime(trade.exit_time, isDaily)}
    </td>
    <td>${symbol}</td>
    <td>${side}</td>
    <td class="number">${formatQuantity(quantity)}</td>
    <td class="number">${formatPrice(entry_price)}</td>
    <td class="number">${formatPrice(exit_price)}</td>
    <td class="number ${signOf(pnl)}">${formatMoney(pnl)}</td>
    <td class="number ${signOf(pnl)}">${formatPercent(trade.return)}</td>
  </tr> `;
}

function signOf(value: number): string {
  return value > 0 ? 'good' : value < 0 ? 'bad' : '';
}
