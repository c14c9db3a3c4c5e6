import { finalOf } from '../conformance/expectations.ts';
import type { World } from '../conformance/world.ts';

/** Units by symbol. */
type Positions = Readonly<Record<string, number>>;

/** Whether venue and session have the same orders, positions and cash, within rounding. */
export function agreesWithVenue(world: World): boolean {
  const { orders, positions, cash } = finalOf(world);
  const isCashEqual = Math.abs(cash.venue - cash.bot) <= 1e-6 * Math.max(1, Math.abs(cash.venue));
  const areOrdersEqual = JSON.stringify(orders.venue) === JSON.stringify(orders.bot);
  return isCashEqual && areOrdersEqual && arePositionsEqual(world, positions.venue, positions.bot);
}

export function arePositionsEqual({ sizes }: World, some: Positions, others: Positions): boolean {
  const symbols = Object.keys({ ...some, ...others });
  return symbols.every(
    (symbol) => Math.abs((some[symbol] ?? 0) - (others[symbol] ?? 0)) <= sizes.unit / 1000,
  );
}
