import type { OVERRIDABLE_LIMITS } from '../../base/risk-limits.ts';
import type { Order, OrderReason } from '../orders/order.ts';

export type OverridableLimit = (typeof OVERRIDABLE_LIMITS)[number];

/** Allows one order that these limits deny. */
export interface Permit {
  readonly override_id: string;
  readonly symbol: string;
  readonly side: Order['side'];
  /** Units. */
  readonly max_quantity: number;
  /** The worst price of the order, or of the last close if it has none, and of its fills; null for any. */
  readonly worst_price: number | null;
  readonly controls: readonly OverridableLimit[];
}

/** A permit that has allowed its order. */
export interface UsedPermit {
  readonly override_id: string;
  readonly order: number;
  /** The first limit that denied the order. */
  readonly control: OverridableLimit;
  /** Units. */
  readonly quantity: number;
  readonly price: number;
}

/** An order with the quantity and price that limits are checked for. */
export interface Proposal {
  readonly order: Readonly<Order>;
  readonly side: Order['side'];
  readonly quantity: number;
  readonly price: number;
}

/** Permits of a run. */
export class Permits {
  readonly #open = new Map<string, Permit>();
  /** Used permits, in the order of their use. */
  readonly used: UsedPermit[] = [];

  get open(): readonly Permit[] {
    return [...this.#open.values()];
  }

  get hasOpen(): boolean {
    return this.#open.size > 0;
  }

  grant(permit: Permit): void {
    const isUsed = this.used.some(({ override_id }) => override_id === permit.override_id);
    if (!isUsed) this.#open.set(permit.override_id, permit);
  }

  end(override_id: string): void {
    this.#open.delete(override_id);
  }

  /** Finds an open permit for an order that is denied for this reason. */
  find(reason: OrderReason, proposal: Proposal): Permit | undefined {
    return this.open.find(
      (permit) => permit.controls.includes(reason as OverridableLimit) && covers(permit, proposal),
    );
  }

  use({ override_id }: Permit, { order, quantity, price }: Proposal, reason: OrderReason): void {
    this.#open.delete(override_id);
    this.used.push({
      override_id,
      order: order.id,
      control: reason as OverridableLimit,
      quantity,
      price,
    });
  }
}

/** Whether the order stays within the permit. */
export function covers(permit: Permit, { order, side, quantity, price }: Proposal): boolean {
  const { worst_price: worst } = permit;
  const isPriceKept = worst === null || (side === 'buy' ? price <= worst : price >= worst);
  return (
    order.instrument.symbol === permit.symbol &&
    side === permit.side &&
    quantity <= permit.max_quantity * (1 + 1e-9) &&
    isPriceKept
  );
}
