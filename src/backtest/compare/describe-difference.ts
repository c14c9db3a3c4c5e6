import { DAY } from '../../base/durations.ts';
import {
  formatInstant,
  formatMoney,
  formatPrice,
  formatQuantity,
  NO_VALUE,
} from '../../base/format.ts';
import type { Difference, TradeDifference, TradeRow } from './compare-runs.ts';

/** Label and text of each field of a trade, in the order of tables. */
export const TRADE_LABELS: Readonly<
  Record<TradeField, readonly [label: string, format: (trade: TradeRow) => string]>
> = {
  symbol: ['Symbol', ({ symbol }) => symbol],
  side: ['Side', ({ side }) => side],
  entry_time: ['Entry, UTC', (trade) => instant(trade.entry_time)],
  entry_price: ['Entry price', (trade) => formatPrice(trade.entry_price)],
  exit_time: ['Exit, UTC', (trade) => instant(trade.exit_time)],
  exit_price: ['Exit price', (trade) => formatPrice(trade.exit_price)],
  quantity: ['Quantity', ({ quantity }) => formatQuantity(quantity)],
  fees: ['Fees', ({ fees }) => formatMoney(fees)],
  pnl: ['Profit', ({ pnl }) => formatMoney(pnl)],
  status: ['Status', ({ status }) => status],
};

type TradeField = TradeDifference['fields'][number];

function instant(text: string): string {
  const ms = Date.parse(text);
  return formatInstant(ms, ms % DAY === 0);
}

/** `fast: 10 in A, 20 in B`. */
export function describeParam(
  { name, first, other }: Difference['params'][number],
  run: string,
): string {
  return `parameter ${name}: ${first ?? NO_VALUE} in A, ${other ?? NO_VALUE} in ${run}`;
}

export function describeTrade(trade: Difference['trade'], run: string): string {
  if (trade === null) return 'No trade differs.';
  const { number, first, other, fields } = trade;
  if (first === null) return `A has no trade ${number}, which ${run} has.`;
  if (other === null) return `${run} has no trade ${number}, which A has.`;
  const names = fields.map((field) => TRADE_LABELS[field][0].replace(', UTC', '').toLowerCase());
  return `The first trade that differs is number ${number}: ${names.join(', ')}.`;
}
