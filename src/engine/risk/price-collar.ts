import type { Instrument } from '../instrument.ts';
import type { WorkingOrder } from '../orders/working-order.ts';
import type { RunState } from '../run-state.ts';
import type { OptionalLimitChecks } from './optional-limits.ts';
import { ReferencePrice } from './reference-price.ts';

/** Limits the prices of orders and their fills to a distance from the market. */
export class PriceCollar {
  readonly #run: RunState;
  /** Collar over a period, if limits include one. */
  readonly #recent: OptionalLimitChecks | undefined;
  /** References of the instruments; empty without a collar. */
  readonly #references: readonly ReferencePrice[];
  readonly #bps: number;

  constructor(run: RunState, recent: OptionalLimitChecks | undefined) {
    const { risk, optionalLimits } = run.config;
    this.#run = run;
    this.#recent = recent;
    this.#bps = risk.price_collar_bps;
    const hasCollar = this.#bps < Infinity || optionalLimits?.price_collar_period !== undefined;
    this.#references = hasCollar ? run.instruments.map(() => new ReferencePrice(this.#bps)) : [];
  }

  get isActive(): boolean {
    return this.#references.length > 0;
  }

  /** The price that prices of the instrument are measured from now. */
  referenceOf({ index, close }: Instrument): number {
    const reference = this.#references[index];
    if (reference === undefined) return close;
    return reference.after(this.#run.cursors[index]! + 1, this.#run.histories[index]!.close);
  }

  /** Fixes the reference of an order that has no limit, as of now. */
  anchor(order: WorkingOrder): void {
    if (!this.isActive) return;
    if (order.type === 'market') order.reference = this.referenceOf(order.instrument);
    else if (order.type === 'stop' || order.type === 'trailing_stop') order.reference = order.stop;
  }

  /** Whether a price that the order names or was anchored at is now beyond the collar. */
  isBeyond({ limit, stop, reference }: WorkingOrder, price: number): boolean {
    return [limit, stop, reference].some((asked) => distanceBps(asked, price) > this.#bps);
  }

  /** The worst price at which an order without a limit may be filled; NaN for any price. */
  worstPrice(order: WorkingOrder): number {
    const { instrument, side, type, limit, stop, permit } = order;
    if (!Number.isNaN(limit)) return Number.NaN;
    // A trailing stop may have moved since it was anchored.
    const reference = type === 'market' ? order.reference : stop;
    const isBuy = side === 'buy';
    const none = isBuy ? Infinity : -Infinity;
    // A permit is granted for a price; the fill must not be worse.
    let worst = permit?.worst_price ?? none;
    if (!Number.isNaN(reference)) {
      const lifted = permit?.controls;
      const share = this.#bps / 10_000;
      if (!lifted?.includes('price_collar_bps')) {
        worst = tighter(isBuy, worst, reference * (isBuy ? 1 + share : 1 - share));
      }
      if (this.#recent !== undefined && !lifted?.includes('price_collar_period')) {
        worst = tighter(isBuy, worst, this.#recent.worst(instrument.index, side, this.#run.now));
      }
    }
    return worst > 0 && worst < Infinity ? worst : Number.NaN;
  }
}

function tighter(isBuy: boolean, one: number, other: number): number {
  return isBuy ? Math.min(one, other) : Math.max(one, other);
}

/** Distance of an asked price from `price`, basis points; 0 if none is asked. */
export function distanceBps(asked: number, price: number): number {
  return Number.isNaN(asked) ? 0 : (Math.abs(asked - price) / price) * 10_000;
}
