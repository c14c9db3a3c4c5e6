import { finalOf } from '../conformance/expectations.ts';
import type { World } from '../conformance/world.ts';

/** Whether venue and session have the same orders, positions and cash, within rounding. */
export function agreesWithVenue(world: World): boolean {
  const { orders, positions, cash } = finalOf(world);
  const symbols = new Set([...Object.keys(positions.venue), ...Object.keys(positions.bot)]);
  const isHeld = [...symbols].every(
    (symbol) =>
      Math.abs((positions.venue[symbol] ?? 0) - (positions.bot[symbol] ?? 0)) <=
      world.sizes.unit / 1000,
  );
  const isPaid = Math.abs(cash.venue - cash.bot) <= 1e-6 * Math.max(1, Math.abs(cash.venue));
  return isHeld && isPaid && JSON.stringify(orders.venue) === JSON.stringify(orders.bot);
}
