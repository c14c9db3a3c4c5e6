import type { Order } from '../orders/order.ts';

/** Prices of one bar. */
export interface BarPrices {
  readonly open: number;
  readonly high: number;
  readonly low: number;
  readonly close: number;
}

/**
 * Where an order fills at a bar's open, or NaN. Market orders take the open. A limit fills there
 * when the open is at its price or better; a stop when the open is at its price or worse, so a gap
 * fills at the open on both. Once triggered, the remaining quantity of a stop is a market order.
 */
export function priceAtOpen(order: Readonly<Order>, open: number): number {
  const buys = order.side === 'buy';
  switch (order.type) {
    case 'market':
      return open;
    case 'limit':
      return (buys ? open <= order.limit : open >= order.limit) ? open : Number.NaN;
    case 'stop':
    case 'trailing_stop':
      return order.triggered || stopReached(order, open, open) ? open : Number.NaN;
    case 'stop_limit':
      return order.triggered && (buys ? open <= order.limit : open >= order.limit)
        ? open
        : Number.NaN;
    default:
      return order.type satisfies never;
  }
}

/** Whether a stop order, or a stop-limit that still waits for its stop. */
export function isStop(order: Readonly<Order>): boolean {
  return (
    order.type === 'stop' ||
    order.type === 'trailing_stop' ||
    (order.type === 'stop_limit' && !order.triggered)
  );
}

/** Whether the price between `from` and `to` (a straight move) reaches a stop, `from` included. */
export function stopReached(order: Readonly<Order>, from: number, to: number): boolean {
  return order.side === 'buy' ? Math.max(from, to) >= order.stop : Math.min(from, to) <= order.stop;
}

/**
 * Where an order fills (a stop-limit that waits: where its stop is reached) on a straight move of
 * the price from `from` to `to`, or NaN. A stop needs a touch; a limit needs the price to go beyond
 * it, because a touch does not prove that a counterparty was left. An order whose price is already
 * met at `from` fills there.
 */
export function priceOnMove(order: Readonly<Order>, from: number, to: number): number {
  if (order.type === 'market') return from;
  if (isStop(order)) {
    if (stopReached(order, from, from)) return from;
    return stopReached(order, from, to) ? order.stop : Number.NaN;
  }
  if (beyondLimit(order, from)) return from;
  return beyondLimit(order, to) ? order.limit : Number.NaN;
}

export function beyondLimit(order: Readonly<Order>, price: number): boolean {
  return order.side === 'buy' ? price < order.limit : price > order.limit;
}

/**
 * Where an order fills somewhere within a bar of which only the range is known, or NaN. `from` is the
 * price at which it began to work in the bar: the open, or where its entry was filled.
 */
export function priceWithinBar(
  order: Readonly<Order>,
  from: number,
  high: number,
  low: number,
): number {
  const waitsForRise = isStop(order) === (order.side === 'buy');
  return priceOnMove(order, from, waitsForRise ? high : low);
}
