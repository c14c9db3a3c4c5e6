import type { Level } from './side.ts';

/** Result of an auction. */
export interface Equilibrium {
  readonly price: number;
  readonly quantity: number;
  /** Unfilled demand at this price; below 0, unfilled supply. */
  readonly surplus: number;
}

/**
 * The price at which an auction trades; undefined if no orders meet. Among the prices of the orders
 * and the reference price, it is the one
 *
 * 1. at which the largest quantity trades; among several
 * 2. that with the smallest surplus; among several
 * 3. the highest if demand is left at all of them, the lowest if supply is; otherwise
 * 4. that nearest to the reference price, the higher of two at the same distance.
 *
 * This is common practice of venues; no regulation requires it.
 *
 * @param bids levels; market orders are at ±Infinity.
 * @param reference NaN if there is none.
 */
export function equilibrium(
  bids: readonly Level[],
  asks: readonly Level[],
  reference: number,
): Equilibrium | undefined {
  const named = [...bids, ...asks, { price: reference }].map(({ price }) => price);
  const prices = [...new Set(named)].filter(Number.isFinite).sort((a, b) => a - b);
  const sumOf = (levels: readonly Level[], isIncluded: (price: number) => boolean): number =>
    levels.reduce((sum, { price, quantity }) => (isIncluded(price) ? sum + quantity : sum), 0);
  const candidates = prices.map((price) => {
    const demand = sumOf(bids, (bid) => bid >= price);
    const supply = sumOf(asks, (ask) => ask <= price);
    return { price, quantity: Math.min(demand, supply), surplus: demand - supply };
  });
  const most = Math.max(0, ...candidates.map(({ quantity }) => quantity));
  if (most === 0) return undefined;
  const largest = candidates.filter(({ quantity }) => quantity === most);
  const least = Math.min(...largest.map(({ surplus }) => Math.abs(surplus)));
  const best = largest.filter(({ surplus }) => Math.abs(surplus) === least);
  if (best.every(({ surplus }) => surplus > 0)) return best.at(-1);
  if (best.every(({ surplus }) => surplus < 0)) return best[0];
  const distance = ({ price }: Equilibrium): number =>
    Number.isNaN(reference) ? 0 : Math.abs(price - reference);
  return best.reduce((near, next) => (distance(next) <= distance(near) ? next : near));
}
