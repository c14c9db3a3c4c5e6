import type { OVERRIDABLE_LIMITS } from '../../base/risk-limits.ts';
import type { Order, OrderReason } from '../orders/order.ts';

export type OverridableLimit = (typeof OVERRIDABLE_LIMITS)[number];

/** Lets one order through that these limits deny. */
export interface Permit {
  readonly override_id: string;
  readonly symbol: string;
  readonly side: Order['side'];
  /** Units. */
  readonly max_quantity: number;
  /**
   * The worst price that it may have: its own, or the last close, and then that of its fills, too;
   * null for any.
   */
  readonly worst_price: number | null;
  readonly controls: readonly OverridableLimit[];
}

/** That a permit let an order through, which is its end. */
export interface UsedPermit {
  readonly override_id: string;
  readonly order: number;
  /** The first that denied it. */
  readonly control: OverridableLimit;
  /** Units, and the price that it was judged by. */
  readonly quantity: number;
  readonly price: number;
}

/** What an order would be. */
export interface Proposal {
  readonly order: Readonly<Order>;
  readonly side: Order['side'];
  readonly quantity: number;
  readonly price: number;
}

/** The permits of a run. */
export class Permits {
  readonly #open = new Map<string, Permit>();
  /** Those that were used, in the order in which they were. */
  readonly used: UsedPermit[] = [];

  get open(): readonly Permit[] {
    return [...this.#open.values()];
  }

  grant(permit: Permit): void {
    const isUsed = this.used.some(({ override_id }) => override_id === permit.override_id);
    if (!isUsed) this.#open.set(permit.override_id, permit);
  }

  end(override_id: string): void {
    this.#open.delete(override_id);
  }

  /** One for an order that is denied for this reason. */
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

/** Whether the order is what people have let through, and no more. */
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
