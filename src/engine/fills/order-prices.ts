import type { Order } from '../orders/order.ts';

/** The parts of an order that decide its price. */
export type PricedOrder = Pick<Order, 'type' | 'side' | 'limit' | 'stop' | 'triggered'>;

/** Prices of one bar. */
export interface BarPrices {
  readonly open: number;
  readonly high: number;
  readonly low: number;
  readonly close: number;
}

/**
 * Price at which an order fills at the open of a bar, or NaN:
 * - a market order, and a stop order that was triggered before: the open;
 * - a limit order: the open, if that is the limit or better;
 * - a stop order: the open, if that is the stop or beyond it, so a gap fills beyond the stop;
 * - a stop-limit order, once triggered: as a limit order.
 */
export function priceAtOpen(order: PricedOrder, open: number): number {
  switch (order.type) {
    case 'market':
      return open;
    case 'limit':
      return isAtLimit(order, open) ? open : Number.NaN;
    case 'stop':
    case 'trailing_stop':
      return order.triggered || reachesStop(order, open, open) ? open : Number.NaN;
    case 'stop_limit':
      return order.triggered && isAtLimit(order, open) ? open : Number.NaN;
    default:
      return order.type satisfies never;
  }
}

/** Whether the order waits for its stop; a stop order counts as one after its trigger, too. */
export function isStop(order: PricedOrder): boolean {
  return (
    order.type === 'stop' ||
    order.type === 'trailing_stop' ||
    (order.type === 'stop_limit' && !order.triggered)
  );
}

/** Whether a straight move of the price from `from` to `to` touches the stop, both ends included. */
export function reachesStop(order: PricedOrder, from: number, to: number): boolean {
  return order.side === 'buy' ? Math.max(from, to) >= order.stop : Math.min(from, to) <= order.stop;
}

/**
 * Price at which a limit or stop order fills on a straight move of the price from `from` to `to`, or
 * NaN. For a stop-limit order that waits, the price that triggers it. An order whose price is already
 * met at `from` fills there. A stop needs a touch. A limit needs a price beyond it, because at the
 * limit itself, orders ahead in the queue may take all that is offered.
 */
export function priceOnMove(order: PricedOrder, from: number, to: number): number {
  if (isStop(order)) {
    if (reachesStop(order, from, from)) return from;
    return reachesStop(order, from, to) ? order.stop : Number.NaN;
  }
  if (isBeyondLimit(order, from)) return from;
  return isBeyondLimit(order, to) ? order.limit : Number.NaN;
}

export function isBeyondLimit(order: PricedOrder, price: number): boolean {
  return order.side === 'buy' ? price < order.limit : price > order.limit;
}

function isAtLimit(order: PricedOrder, price: number): boolean {
  return price === order.limit || isBeyondLimit(order, price);
}

/**
 * `priceOnMove` within a bar of which only the range is known: from `from` to the extreme that the
 * order waits for.
 *
 * @param from price at which the order began to work in the bar: the open, or the fill of its entry
 */
export function priceWithinBar(order: PricedOrder, from: number, { high, low }: BarPrices): number {
  const waitsForRise = isStop(order) === (order.side === 'buy');
  return priceOnMove(order, from, waitsForRise ? high : low);
}
