import { feeOf, expectedPrice } from '../costs.ts';
import type { VenueTerms } from '../execution/venue-terms.ts';
import { isTarget, isUnsizedTarget, type WorkingOrder } from '../orders/working-order.ts';
import type { RunState } from '../run-state.ts';

/** Share of a position, or of a target, below which a difference is a rounding error. */
export const DUST = 1e-9;
const NONE: readonly WorkingOrder[] = [];

interface Reach {
  readonly high: number;
  readonly low: number;
  /**
   * Weights of targets before the first bar of their instrument, when their quantity is unknown.
   */
  readonly unpriced: number;
}

/**
 * Positions that an account may reach once its working orders are filled, in any order, and the cash
 * and units that orders at a venue have committed. Limits, thresholds, permits and the sizing of
 * orders use this class.
 *
 * - A one-cancels-other group counts once, with its largest order.
 * - What was filled of an order counts as part of the position.
 * - Reduce-only orders add nothing: their fills are cut to the position. Where one of them fills
 *   before an order that was checked beside it, `goesFarther` has that order checked again.
 * - A target counts as the position that it leads to, and replaces all other targets of its instrument.
 * - An order that a venue was asked to cancel counts until the venue confirms, since it may be filled.
 * - A cash account is never short.
 */
export class Exposure {
  readonly #run: RunState;
  /** Undefined if no venue executes the orders; they commit nothing before their fill then. */
  readonly #terms: VenueTerms | undefined;
  readonly #isLongOnly: boolean;

  constructor(run: RunState, terms: VenueTerms | undefined) {
    this.#run = run;
    this.#terms = terms;
    this.#isLongOnly = run.config.account.model === 'cash';
  }

  /** Signed units that an order may yet trade; of a target without a size, at `price`. */
  unitsLeft(order: WorkingOrder, price: number): number {
    if (isUnsizedTarget(order)) {
      return this.#run.portfolio.unitsToTarget(order.instrument.index, order.weight, price);
    }
    return order.side === 'buy' ? order.quantity - order.filled : order.filled - order.quantity;
  }

  /**
   * The farthest position that `order`, trading `delta` (signed units), and all working orders of its
   * side may lead to, signed units.
   */
  farthest(order: WorkingOrder, delta: number, beside: readonly WorkingOrder[]): number {
    const { index } = order.instrument;
    const isFinal = isTarget(order);
    const isAlone = beside.length === 0 || (beside.length === 1 && beside[0] === order);
    const position = this.#run.portfolio.positions[index]!;
    if (isFinal && isAlone)
      return this.#isLongOnly ? Math.max(0, position + delta) : position + delta;
    const side = delta < 0 ? 'sell' : 'buy';
    const sign = delta < 0 ? -1 : 1;
    let from = position + (isFinal ? delta : 0);
    for (const other of isFinal ? NONE : beside) {
      const counts = isOpen(other, index) && other !== order && isUnsizedTarget(other);
      if (!counts) continue;
      const goal = this.#goal(other);
      // Without a price yet there is no goal, and limits are checked when it fills.
      if ((goal - from) * sign > 0) from = goal;
    }
    let units = isFinal ? 0 : Math.abs(delta);
    if (!isAlone) {
      const others = isFinal ? beside.filter((other) => !isTarget(other)) : beside;
      units = pendingUnits(others, index, side, { own: { order, units } });
    }
    const far = from + sign * units;
    return this.#isLongOnly ? Math.max(0, far) : far;
  }

  /**
   * Whether the order can only bring the position nearer to flat, even if all working orders of its
   * side are filled, too.
   */
  reduces(order: WorkingOrder, delta: number, farthest: number): boolean {
    if (order.reduceOnly) return true;
    const position = this.#run.portfolio.positions[order.instrument.index]!;
    if (delta * position >= 0) return false;
    return order.weight === 0 || farthest * Math.sign(position) >= -DUST * Math.abs(position);
  }

  /** Whether a fill of `delta` units leads to a position that the order was not checked for. */
  goesFarther(order: WorkingOrder, delta: number): boolean {
    if (order.reduceOnly || order.farthest === undefined) return false;
    const position = this.#run.portfolio.positions[order.instrument.index]!;
    const beyond = (position + delta - order.farthest) * Math.sign(delta);
    return beyond > DUST * Math.max(Math.abs(position), Math.abs(delta));
  }

  /** Records that the order passed its checks, and with it all others of its side up to `farthest`. */
  passed(order: WorkingOrder, farthest: number, beside: readonly WorkingOrder[]): void {
    if (order.reduceOnly) return;
    // The order passed alone: this does not allow other working orders to go farther.
    if (order.weight === 0) {
      order.farthest = 0;
      return;
    }
    order.farthest = farthest;
    for (const other of beside) {
      if (!isOpen(other, order.instrument.index) || other.side !== order.side) continue;
      if (other.farthest === undefined) continue;
      const isFarther =
        order.side === 'buy' ? farthest > other.farthest : farthest < other.farthest;
      if (isFarther) other.farthest = farthest;
    }
  }

  /** Σ |position × mark| over all instruments but one, at the worst that working orders may lead to. */
  grossBeside({ instrument }: WorkingOrder, beside: readonly WorkingOrder[]): number {
    const { marks } = this.#run.portfolio;
    let sum = 0;
    for (const { index } of this.#run.instruments) {
      if (index === instrument.index) continue;
      const { high, low, unpriced } = this.#reach(index, beside);
      const units = Math.max(Math.abs(high), Math.abs(low));
      // An instrument without a bar has no mark and no position.
      if (units !== 0) sum += units * marks[index]!;
      sum += unpriced * this.#run.portfolio.equity();
    }
    return sum;
  }

  /**
   * Requests a new check of other instruments' orders if they can lead farther than `grossBeside`
   * assumes now, for example when a reduce-only order is filled before them.
   */
  holdBeside({ instrument }: WorkingOrder, beside: readonly WorkingOrder[]): void {
    for (const { index } of this.#run.instruments) {
      if (index === instrument.index) continue;
      const { high, low } = this.#reach(index, beside);
      for (const order of beside) {
        if (!isOpen(order, index) || order.farthest === undefined) continue;
        order.farthest =
          order.side === 'buy' ? Math.min(order.farthest, high) : Math.max(order.farthest, low);
      }
    }
  }

  /** The highest and lowest positions of an instrument, signed units, that its orders may lead to. */
  #reach(index: number, beside: readonly WorkingOrder[]): Reach {
    let high = this.#run.portfolio.positions[index]!;
    let low = high;
    let unpriced = 0;
    for (const order of beside) {
      if (!isOpen(order, index) || order.reduceOnly || !isUnsizedTarget(order)) continue;
      const goal = this.#goal(order);
      if (goal > high) high = goal;
      else if (goal < low) low = goal;
      else if (Number.isNaN(goal)) unpriced += Math.abs(order.weight);
    }
    high += pendingUnits(beside, index, 'buy');
    low -= pendingUnits(beside, index, 'sell');
    return { high, low: this.#isLongOnly ? Math.max(0, low) : low, unpriced };
  }

  /** Number of instruments that are held or may become held, including `index`. */
  instrumentsWith(index: number): number {
    const { instruments } = this.#run;
    if (instruments.length === 1) return 1;
    let count = 0;
    for (const { index: other } of instruments) {
      const isActive =
        other === index ||
        this.#isHeld(other) ||
        this.#run.working.some(
          (order) => isOpen(order, other) && !order.reduceOnly && order.weight !== 0,
        );
      if (isActive) count += 1;
    }
    return count;
  }

  /**
   * Whether a position counts as held. At a venue, one that is being sold does not, nor one that is
   * too small to sell.
   */
  #isHeld(index: number): boolean {
    const position = this.#run.portfolio.positions[index]!;
    if (this.#terms === undefined || position === 0) return position !== 0;
    const { close } = this.#run.instruments[index]!;
    if (Number.isNaN(close) || !this.#terms.trades(index)) return true;
    const left = position - this.unitsInFlight(index);
    return this.#terms.tradable(index, Math.abs(left), close) > 0;
  }

  /** Units that sales at the venue may yet sell. */
  unitsInFlight(index: number): number {
    if (this.#terms === undefined) return 0;
    const sent = this.#run.working.filter(({ isSent }) => isSent);
    return pendingUnits(sent, index, 'sell', { withReduceOnly: true });
  }

  /**
   * Cash without the amounts that purchases at the venue may cost, plus the proceeds of market sales
   * there, account currency.
   */
  uncommittedCash(): number {
    let { cash } = this.#run.portfolio;
    if (this.#terms === undefined) return cash;
    const { config, working } = this.#run;
    for (const order of working) {
      if (order.status !== 'working' || !order.isSent) continue;
      const units = Math.max(0, order.quantity - order.filled);
      if (units === 0 || (order.side === 'sell' && order.type !== 'market')) continue;
      const price = expectedPrice(config.slippage, order, units);
      const fee = feeOf(config.fees, units, price);
      cash += order.side === 'sell' ? units * price - fee : -units * price - fee;
    }
    return cash;
  }

  #goal({ instrument, weight }: WorkingOrder): number {
    return this.#run.portfolio.targetPosition(weight, instrument.close);
  }
}

/** Units, above 0, that sized orders of a side may yet trade in an instrument. */
function pendingUnits(
  orders: readonly WorkingOrder[],
  index: number,
  side: WorkingOrder['side'],
  {
    own,
    withReduceOnly = false,
  }: {
    /** Counts this order with these units, in place of its entry in `orders`. */
    readonly own?: { readonly order: WorkingOrder; readonly units: number };
    readonly withReduceOnly?: boolean;
  } = {},
): number {
  let units = 0;
  let groups: Map<number, number> | undefined;
  const add = (group: number, left: number): void => {
    if (group === 0) units += left;
    else {
      groups ??= new Map();
      groups.set(group, Math.max(groups.get(group) ?? 0, left));
    }
  };
  if (own !== undefined) add(own.order.ocoGroup, own.units);
  for (const order of orders) {
    if (order === own?.order || !isOpen(order, index) || order.side !== side) continue;
    if (isUnsizedTarget(order) || (order.reduceOnly && !withReduceOnly)) continue;
    add(order.ocoGroup, Math.max(0, order.quantity - order.filled));
  }
  for (const most of groups?.values() ?? []) units += most;
  return units;
}

function isOpen({ status, instrument }: WorkingOrder, index: number): boolean {
  return status === 'working' && instrument.index === index;
}
