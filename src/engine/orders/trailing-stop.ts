import type { ExitPrice, Order } from './order.ts';

/** Stop price at the distance `trail` from the best price so far. */
export function trailedStop(side: Order['side'], trail: ExitPrice, best: number): number {
  const distance = typeof trail === 'number' ? trail : best * trail.percent;
  return side === 'sell' ? best - distance : best + distance;
}

/** The stop price after `price`: it follows a better price and never recedes; NaN before the first. */
export function ratchet({ side, trail, stop }: Readonly<Order>, price: number): number {
  const next = trailedStop(side, trail!, price);
  const isBehind = side === 'sell' ? stop > next : stop < next;
  return isBehind ? stop : next;
}
