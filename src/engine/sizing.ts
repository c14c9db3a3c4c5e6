import { affordableQuantity, feeOf } from './costs.ts';
import type { OrderReason } from './orders/order.ts';
import { isTarget, signOf, type WorkingOrder } from './orders/working-order.ts';
import { DUST, type Exposure } from './risk/exposure.ts';
import type { RunState } from './run-state.ts';

/**
 * Determines how many units an order trades: `want`, then `cut` to what the account can afford, then
 * `round`. Each returns the reason for which the order cannot be traded at all. Fills from bars and
 * orders to a venue are sized here.
 */
export class Sizing {
  /** Units that the order is to trade, above 0. */
  wanted = -0;
  /** Whether the account affords less than the order asks for. */
  isCut = false;
  /** Units of a target below which a difference is a rounding error. */
  #dust = -0;
  readonly #run: RunState;
  readonly #exposure: Exposure;

  constructor(run: RunState, exposure: Exposure) {
    this.#run = run;
    this.#exposure = exposure;
  }

  /** Sets the units that the order asks for at `price`, and the side of a target. */
  want(order: WorkingOrder, price: number): OrderReason | undefined {
    const { portfolio } = this.#run;
    const { index } = order.instrument;
    const position = portfolio.positions[index]!;
    const isSizing = isTarget(order) && order.filled === 0;
    this.wanted = order.quantity - order.filled;
    this.isCut = false;
    this.#dust = 0;
    if (isSizing) {
      const delta = portfolio.unitsToTarget(index, order.weight, price);
      // A rounding error of a division or of the remaining cash is no reason to trade.
      this.#dust = DUST * Math.max(Math.abs(position), Math.abs(position + delta));
      this.wanted = Math.abs(delta);
      order.side = delta < 0 ? 'sell' : 'buy';
    }
    // Other orders may have reduced the position since a target of 0 was sized.
    if (order.reduceOnly || (order.weight === 0 && !isSizing)) {
      if (position * signOf(order) >= 0) return 'nothing_to_reduce';
      this.wanted = Math.min(this.wanted, Math.abs(position));
    }
    return undefined;
  }

  /** Units that the account can trade at `price` on the side of the order. */
  affordable({ side, instrument }: WorkingOrder, price: number): number {
    const { portfolio, config } = this.#run;
    const { account, fees } = config;
    const position = portfolio.positions[instrument.index]!;
    if (account.model === 'cash') {
      return side === 'sell'
        ? position - this.#exposure.unitsInFlight(instrument.index)
        : affordableQuantity(fees, this.#exposure.uncommittedCash(), price, 1);
    }
    const isClosing = position !== 0 && position > 0 === (side === 'sell');
    const closing = isClosing ? Math.abs(position) : 0;
    const kept = isClosing ? 0 : Math.abs(position);
    const mark = portfolio.marks[instrument.index]!;
    const others = portfolio.grossExposure() - Math.abs(position * mark);
    const equity = portfolio.equity() + position * (price - mark);
    const closingFee = closing === 0 ? 0 : feeOf(fees, closing, price);
    const budget = equity - closingFee - account.initial * (others + kept * price);
    return closing + affordableQuantity(fees, budget, price, account.initial);
  }

  /** Cuts an order that may be cut to what is affordable. */
  cut(order: WorkingOrder, affordable: number, isCuttable: boolean): OrderReason | undefined {
    if (isCuttable) {
      this.wanted = Math.max(0, affordable);
      this.isCut = true;
      return undefined;
    }
    const isShort = this.#run.config.account.model === 'cash' && order.side === 'sell';
    return isShort ? 'short_not_allowed' : 'insufficient_funds';
  }

  /** Rounds down to whole units, if the engine trades those, and drops rounding errors. */
  round(): OrderReason | undefined {
    if (this.#run.config.units === 'whole') this.wanted = Math.floor(this.wanted);
    return this.wanted <= this.#dust ? 'quantity_rounds_to_zero' : undefined;
  }
}
