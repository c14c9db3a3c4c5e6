import type { Trade } from '../../engine/round-trip.ts';
import type { PriceChart, ShownTrade } from './client/chart-data.ts';
import {
  formatCount,
  formatInstant,
  formatMoney,
  formatPercent,
  formatPrice,
  formatQuantity,
} from '../../base/format.ts';
import { type Child, html, type Html, nothing } from '../../base/html.ts';
import type { ReportInput } from './input.ts';
import { largestTrades } from './largest-trades.ts';
import { type Column, sortableTable } from './render-report.ts';
import { roundForPage } from './series.ts';
import { PRINTED_ROWS } from '../../base/report-style.ts';

const MAX_TRADE_ROWS = 2000;

type Row = Trade & { readonly isOpen: boolean };

export function tradesSection(
  { result }: ReportInput,
  charts: readonly PriceChart[],
  dateOnly: boolean,
): Html {
  const { trades, openTrades } = result;
  const rows = tradeRows(trades, openTrades);
  if (rows.length === 0) {
    return html`<section aria-labelledby="trades-title">
      <h2 id="trades-title">Trades</h2>
      <p class="note">No order of this run was filled.</p>
    </section>`;
  }
  const all = trades.length + openTrades.length;
  const note =
    rows.length < all
      ? `The ${formatCount(rows.length)} trades with the largest profits and losses of ${formatCount(all)}; trades.csv contains all.`
      : 'Profit and return are net of fees. An open trade is valued at the last close.';
  const onPaper =
    rows.length > PRINTED_ROWS
      ? html`<p class="note print-only">
          The first ${PRINTED_ROWS} rows are printed; trades.csv contains all trades.
        </p>`
      : nothing;
  return html`<section id="trades" aria-labelledby="trades-title">
    <h2 id="trades-title">Trades</h2>
    <p class="note">${note}</p>
    ${onPaper}
    ${sortableTable({ label: 'Trades', columns: tradeColumns(charts, dateOnly), rows, sorted: { column: 0, direction: 'ascending' } })}
  </section>`;
}

/** In order of entry; of too many trades, those with the largest profits and losses. */
function tradeRows(trades: readonly Trade[], openTrades: readonly Trade[]): Row[] {
  const open = openTrades.map((trade) => ({ ...trade, isOpen: true }));
  const closed =
    trades.length + open.length <= MAX_TRADE_ROWS
      ? trades
      : largestTrades(trades, Math.max(0, MAX_TRADE_ROWS - open.length));
  return [...closed.map((trade) => ({ ...trade, isOpen: false })), ...open]
    .slice(0, MAX_TRADE_ROWS)
    .toSorted((a, b) => a.id - b.id);
}

function tradeColumns(charts: readonly PriceChart[], dateOnly: boolean): Column<Row>[] {
  const chartOf = new Map(charts.map((chart, index) => [chart.symbol, index]));
  const link = (_id: number, trade: Row): Child => {
    const index = chartOf.get(trade.symbol);
    if (index === undefined) return trade.id;
    const { id, entry_time, entry_price, exit_time, exit_price, pnl, isOpen } = trade;
    const shown: ShownTrade = [
      id,
      index,
      entry_time / 1000,
      exit_time / 1000,
      roundForPage(entry_price),
      roundForPage(exit_price),
      roundForPage(pnl),
      isOpen ? 1 : 0,
    ];
    return html`<button class="trade" value="${JSON.stringify(shown)}">${id}</button>`;
  };
  type Key<T> = { [K in keyof Trade]: Trade[K] extends T ? K : never }[keyof Trade];
  const text = (label: string, key: Key<string>): Column<Row> => ({
    label,
    numeric: false,
    value: (trade) => trade[key],
    text: (trade) => html`<bdi>${trade[key]}</bdi>`,
  });
  const number = (
    label: string,
    key: Key<number>,
    show: (value: number, trade: Row) => Child,
  ): Column<Row> => ({
    label,
    numeric: true,
    value: (trade) => trade[key],
    text: (trade) => show(trade[key], trade),
  });
  const instant = (ms: number): string => formatInstant(ms, dateOnly);
  const colored =
    (format: (value: number) => string) =>
    (value: number): Html =>
      html`<span class="${value < 0 ? 'loss' : 'gain'}">${format(value)}</span>`;
  return [
    number('#', 'id', link),
    text('Symbol', 'symbol'),
    text('Side', 'side'),
    number('Entry', 'entry_time', instant),
    number('Entry price', 'entry_price', formatPrice),
    number('Exit', 'exit_time', (time, { isOpen }) => (isOpen ? 'open' : instant(time))),
    number('Exit price', 'exit_price', formatPrice),
    number('Bars', 'bars', formatCount),
    number('Quantity', 'quantity', formatQuantity),
    number('Fees', 'fees', formatMoney),
    number('Profit', 'pnl', colored(formatMoney)),
    number('Return', 'return', colored(formatPercent)),
  ];
}
