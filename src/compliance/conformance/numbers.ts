import type { Num, NumberName } from './case.ts';
import { PRICE_UNIT } from './sizes.ts';
import type { World } from './world.ts';

/** Numbers of a case that depend on the limits of the bot. */
const NUMBERS: Readonly<Record<NumberName, (world: World) => number>> = {
  price: ({ sizes }) => sizes.price,
  quantity: ({ sizes }) => sizes.quantity,
  unit: ({ sizes }) => sizes.unit,
  below: ({ sizes }) => sizes.below,
  above: ({ sizes }) => sizes.above,
  cash: ({ config }) => config.cash,
  half: (world) => quantityOf(world, { of: 'quantity', times: 0.5 }),
  /** Value of an order that rests below the market. */
  'bid value': ({ sizes }) => sizes.quantity * sizes.below,
  'offer value': ({ sizes }) => sizes.quantity * sizes.above,
  /** Market price in price units of the exchange. */
  'price units': ({ sizes }) => Math.round(sizes.price / PRICE_UNIT),
  /** Highest price within the price collar. */
  collar: ({ sizes, config }) => sizes.price * (1 + config.risk.price_collar_bps / 10_000) + 1e-9,
  'beyond collar': (world) => away(world, 2, 0.02),
  /** Price to which the market moves, by one and a half price collars. */
  jump: (world) => away(world, 1.5, 0),
  volume: ({ config }) => config.risk.max_order_qty,
  'beyond volume': ({ config, sizes }) => {
    const { max_order_qty: most } = config.risk;
    return most + Math.max(sizes.unit, most * 1e-3);
  },
  /** 1 if the account can pay for an order beyond the volume limit, else 0. */
  payable: (world) =>
    numberOf(world, 'beyond volume') * world.sizes.below < world.config.cash ? 1 : 0,
  /** Number of orders in one burst that the message limit permits, at most 5. */
  burst: ({ config }) => Math.min(5, config.risk.max_messages_per_second),
};

export function numberOf(world: World, num: Num): number {
  if (typeof num === 'number') return num;
  if (typeof num === 'string') return NUMBERS[num](world);
  const { of, times = 1, plus = 0 } = num;
  return times * NUMBERS[of](world) + numberOf(world, plus);
}

/** Quantity on the grid of the exchange. */
export function quantityOf(world: World, num: Num): number {
  const { unit } = world.sizes;
  const units = Math.max(1, Math.floor(numberOf(world, num) / unit + 1e-9));
  return Number((units * unit).toFixed(9));
}

/** Number of orders that the message limit permits within one second. */
export function messagesPerBar({ config: { risk, optionalLimits } }: World): number {
  return Math.floor(
    risk.max_messages_per_second - (optionalLimits?.messages_kept_for_cancels ?? 0),
  );
}

function away({ sizes, config }: World, collars: number, plus: number): number {
  const share = Math.min(0.4, (collars * config.risk.price_collar_bps) / 10_000 + plus);
  return Number((sizes.price * (1 + share)).toFixed(2));
}
