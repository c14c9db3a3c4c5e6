import { isLive, type Order, type SelfTrade } from './book-order.ts';

export interface AccountSetup {
  readonly name: string;
  readonly apiKey: string;
  readonly secret: string;
  /** Amount by asset at the start. */
  readonly balances: Readonly<Record<string, number>>;
  /** `none` by default. */
  readonly selfTrade?: SelfTrade;
  /** Whether it may sell and spend more than it holds; it has no streams. */
  readonly isUnlimited?: boolean;
}

/** Fee of each fill of every account. */
export interface Fee {
  /** `base` or `quote` of the instrument, or an asset. */
  readonly asset: string;
  /** Units of the asset: per unit of the base asset for `base`, else per unit of the quote asset. */
  readonly rate: number;
}

/** An account: its setup and what it holds. */
export class Account {
  readonly setup: AccountSetup;
  /** Holdings besides those from trades, by asset. */
  readonly deposits: Map<string, number>;
  /** Quantity units by instrument index, from trades: whole numbers, so that sums are exact. */
  readonly units: Float64Array;
  /** Price × quantity units paid by instrument index, less those received. */
  readonly paid: Float64Array;
  /** Quantity units that open orders sell, by instrument index. */
  readonly selling: Float64Array;
  /** Price × quantity units that open orders may pay, by instrument index. */
  readonly spending: Float64Array;
  /** Amount counted for each open order. */
  readonly #reserved = new Map<Order, number>();

  constructor(setup: AccountSetup, instruments: number) {
    this.setup = setup;
    this.deposits = new Map(Object.entries(setup.balances));
    this.units = new Float64Array(instruments);
    this.paid = new Float64Array(instruments);
    this.selling = new Float64Array(instruments);
    this.spending = new Float64Array(instruments);
  }

  add(asset: string, amount: number): void {
    this.deposits.set(asset, (this.deposits.get(asset) ?? 0) + amount);
  }

  /** Counts what an order reserves in its present state. */
  reserve(order: Order): void {
    const { instrument, side, price, leaves } = order;
    const isBuy = side === 'buy';
    const hasLimit = Number.isFinite(price);
    const amount = !isLive(order) || !hasLimit ? 0 : isBuy ? price * leaves : leaves;
    const change = amount - (this.#reserved.get(order) ?? 0);
    (isBuy ? this.spending : this.selling)[instrument]! += change;
    if (amount === 0) this.#reserved.delete(order);
    else this.#reserved.set(order, amount);
  }

  /** @param quantity in quantity units; below 0 for a sale. */
  book(instrument: number, price: number, quantity: number): void {
    this.units[instrument]! += quantity;
    this.paid[instrument]! += price * quantity;
  }
}
