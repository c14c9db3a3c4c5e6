import type { FeeModel, SlippageModel } from './config.ts';
import type { Order } from './orders/order.ts';

/** Fee of one fill of `quantity` units at `price`, account currency. */
export function feeOf(model: FeeModel, quantity: number, price: number): number {
  switch (model.model) {
    case 'none':
      return 0;
    case 'percent':
      return Math.max(model.min, quantity * price * model.rate);
    case 'per_share':
      return Math.max(model.min, quantity * model.rate);
    default:
      return model satisfies never;
  }
}

/**
 * The most units that `budget` pays for, fee included, when each unit binds `share` of its price
 * (1 in a cash account, the initial margin in a margin account). Not rounded to whole units.
 */
export function affordableQuantity(
  model: FeeModel,
  budget: number,
  price: number,
  share: number,
): number {
  switch (model.model) {
    case 'none':
      return Math.max(0, budget / (price * share));
    case 'percent': {
      const quantity = budget / (price * (share + model.rate));
      const feeIsMinimum = quantity * price * model.rate < model.min;
      return Math.max(0, feeIsMinimum ? (budget - model.min) / (price * share) : quantity);
    }
    case 'per_share': {
      const quantity = budget / (price * share + model.rate);
      const feeIsMinimum = quantity * model.rate < model.min;
      return Math.max(0, feeIsMinimum ? (budget - model.min) / (price * share) : quantity);
    }
    default:
      return model satisfies never;
  }
}

/** `reference` with the slippage of an order. Orders with a limit wait for their price and do not slip. */
export function slippedPrice(
  model: SlippageModel,
  { type, side }: Pick<Order, 'type' | 'side'>,
  reference: number,
  quantity: number,
  barVolume: number,
): number {
  if (type === 'limit' || type === 'stop_limit') return reference;
  const slippage = slippageOf(model, quantity, barVolume);
  return reference * (side === 'buy' ? 1 + slippage : Math.max(0, 1 - slippage));
}

/** The price at which an order at a venue counts until it is filled. */
export function expectedPrice(model: SlippageModel, order: Readonly<Order>, units: number): number {
  const { limit, stop, instrument } = order;
  if (!Number.isNaN(limit)) return limit;
  const reference = Number.isNaN(stop) ? instrument.close : stop;
  return slippedPrice(model, order, reference, units, instrument.volume);
}

/** How far the price moves against an order of `quantity` units, as a fraction of the price. */
function slippageOf(model: SlippageModel, quantity: number, barVolume: number): number {
  switch (model.model) {
    case 'none':
      return 0;
    case 'basis_points':
      return model.bps / 10_000;
    case 'volume_share': {
      // A bar without volume has nothing to take a share of; the order counts as all of it.
      const share = barVolume > 0 ? Math.min(1, quantity / barVolume) : 1;
      return model.impact * share * share;
    }
    default:
      return model satisfies never;
  }
}
