import type { Level } from './order.ts';

/** What an auction would come to, or came to. */
export interface Equilibrium {
  readonly price: number;
  readonly quantity: number;
  /** What the buyers at this price want more than the sellers give; below 0 the other way round. */
  readonly surplus: number;
}

/**
 * The price at which one auction trades, undefined where nobody meets. Prices that orders name are
 * tried, and the reference price. It is the one
 *
 * 1. at which most is traded; among several
 * 2. that which leaves the smallest surplus; among several
 * 3. the highest if buyers are left over at all of them, the lowest if sellers are; otherwise
 * 4. that nearest to the reference price, the higher of two as near.
 *
 * Common venue practice; no rule of law behind it.
 *
 * @param bids worst price first, as `BookSide.levels`; orders at any price are at ±Infinity.
 * @param reference NaN where there is none.
 */
export function equilibrium(
  bids: readonly Level[],
  asks: readonly Level[],
  reference: number,
): Equilibrium | undefined {
  const named = [...bids, ...asks].map(({ price }) => price);
  const prices = [...new Set([...named, reference])].filter(Number.isFinite).sort((a, b) => a - b);
  let best: Equilibrium[] = [];
  let demand = bids.reduce((sum, { quantity }) => sum + quantity, 0);
  let supply = 0;
  let dearestAsk = asks.length - 1;
  let cheapestBid = 0;
  for (const price of prices) {
    for (; cheapestBid < bids.length && bids[cheapestBid]!.price < price; cheapestBid += 1) {
      demand -= bids[cheapestBid]!.quantity;
    }
    for (; dearestAsk >= 0 && asks[dearestAsk]!.price <= price; dearestAsk -= 1) {
      supply += asks[dearestAsk]!.quantity;
    }
    const tried = { price, quantity: Math.min(demand, supply), surplus: demand - supply };
    const gain = tried.quantity === 0 ? -1 : best.length === 0 ? 1 : compare(tried, best[0]!);
    if (gain > 0) best = [tried];
    else if (gain === 0) best.push(tried);
  }
  if (best.every(({ surplus }) => surplus > 0)) return best.at(-1);
  if (best.every(({ surplus }) => surplus < 0)) return best[0];
  const distance = ({ price }: Equilibrium): number =>
    Number.isNaN(reference) ? 0 : Math.abs(price - reference);
  return best.reduce((near, next) => (distance(next) <= distance(near) ? next : near));
}

/** Above 0: `a` trades more, or as much with less left over. */
function compare(a: Equilibrium, b: Equilibrium): number {
  return a.quantity - b.quantity || Math.abs(b.surplus) - Math.abs(a.surplus);
}
