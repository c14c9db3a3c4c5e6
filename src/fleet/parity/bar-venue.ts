import { feeOf, slippedPrice } from '../../engine/costs.ts';
import type { EngineConfig } from '../../engine/config.ts';
import type { VenueOrder, VenueReport } from '../../engine/execution/venue-protocol.ts';
import {
  isBeyondLimit,
  isStop,
  priceAtOpen,
  priceWithinBar,
  reachesStop,
  type PricedOrder,
} from '../../engine/fills/order-prices.ts';
import type { Step } from '../../engine/steps.ts';
import type { Candle } from '../../market/bars.ts';
import type { VenueRequest } from '../../trading/venue-orders.ts';

type Terms = Omit<PricedOrder, 'triggered'> & { triggered: boolean };

interface OpenOrder {
  readonly order: VenueOrder;
  readonly terms: Terms;
  /** Newest report; undefined before the first. */
  report: VenueReport | undefined;
  isNew: boolean;
}

/**
 * Follows the orders of a recorded session at its exchange up to a fork, and fills them from the bars after
 * it: at the open, or at their price within the bar, with the fees and the slippage of the bot.
 */
export class BarVenue {
  readonly #costs: Pick<EngineConfig, 'fees' | 'slippage'>;
  readonly #open = new Map<number, OpenOrder>();

  constructor(costs: Pick<EngineConfig, 'fees' | 'slippage'>) {
    this.#costs = costs;
  }

  /** Takes the orders that a session has sent. */
  place(requests: readonly VenueRequest[]): void {
    for (const request of requests) {
      if (!('place' in request) || this.#open.has(request.place.order)) continue;
      const { place: order } = request;
      this.#open.set(order.order, { order, terms: termsOf(order), report: undefined, isNew: true });
    }
  }

  /** Takes a recorded report of the exchange. */
  record(report: VenueReport): void {
    const found = this.#open.get(report.order);
    if (found === undefined) return;
    found.report = report;
    found.isNew = false;
    if (report.status !== 'open') this.#open.delete(report.order);
  }

  /**
   * Cancels and fills orders before a session takes a step. Call it until it returns no report, since fills
   * may release orders that wait for them.
   */
  advance(requests: readonly VenueRequest[], { time, bars }: Step): VenueReport[] {
    const canceled = requests.flatMap((request) =>
      'cancel' in request ? [this.#end(request.cancel, 'canceled', time)] : [],
    );
    this.place(requests);
    const traded = [...this.#open.values()].flatMap((open) => {
      const bar = bars[open.order.symbol];
      return bar === undefined ? [] : (this.#trade(open, bar, time) ?? []);
    });
    return [...canceled, ...traded];
  }

  #trade(open: OpenOrder, bar: Candle, time: number): VenueReport | undefined {
    const { order, terms, isNew } = open;
    open.isNew = false;
    const atOnce = order.time_in_force !== 'gtc';
    if (reachesAtOpen(terms, bar.open)) terms.triggered = true;
    let price = priceAtOpen(terms, bar.open);
    if (!Number.isNaN(price) && isNew && order.post_only === true) {
      return this.#end(order, 'rejected', time, 'post_only_would_cross');
    }
    if (Number.isNaN(price) && atOnce) return this.#end(order, 'expired', time);
    if (Number.isNaN(price)) price = priceInBar(terms, bar);
    if (Number.isNaN(price)) return undefined;
    return this.#fill(open, price, bar, time);
  }

  #fill(
    { order, report }: OpenOrder,
    reference: number,
    bar: Candle,
    time: number,
  ): VenueReport | undefined {
    const { fees, slippage } = this.#costs;
    const { side, limit, time_in_force } = order;
    const sums = sumsOf(report);
    const quantity = order.quantity - sums.filled;
    // A session sends a market order as a limit order that is filled at once or not at all.
    const type = time_in_force === 'ioc' ? 'market' : order.type;
    const price = slippedPrice(slippage, { type, side }, reference, quantity, bar.volume);
    const isTooFar = limit !== undefined && (side === 'buy' ? price > limit : price < limit);
    if (isTooFar) return this.#end(order, 'expired', time);
    this.#open.delete(order.order);
    return {
      ...idOf(order),
      ...sums,
      status: 'filled',
      filled: order.quantity,
      cost: sums.cost + quantity * price,
      fee: sums.fee + feeOf(fees, quantity, price),
      time,
    };
  }

  #end(
    id: Pick<VenueOrder, 'order' | 'client_order_id'>,
    status: 'canceled' | 'expired' | 'rejected',
    time: number,
    reason?: string,
  ): VenueReport {
    const { report } = this.#open.get(id.order) ?? {};
    this.#open.delete(id.order);
    const ended = { ...idOf(id), ...sumsOf(report), status, time };
    return reason === undefined ? ended : { ...ended, reason };
  }
}

function idOf({ order, client_order_id }: Pick<VenueOrder, 'order' | 'client_order_id'>) {
  return { order, client_order_id };
}

type Sums = Pick<VenueReport, 'filled' | 'cost' | 'fee' | 'fee_units' | 'corrections'>;

/** Sums that the exchange had reported before the fork. */
function sumsOf(report: VenueReport | undefined): Sums {
  if (report === undefined) return { filled: 0, cost: 0, fee: 0, fee_units: 0 };
  const { filled, cost, fee, fee_units, corrections } = report;
  return { filled, cost, fee, fee_units, ...(corrections !== undefined && { corrections }) };
}

function termsOf({ type, side, limit = Number.NaN, stop = Number.NaN }: VenueOrder): Terms {
  return { type, side, limit, stop, triggered: false };
}

function reachesAtOpen(terms: PricedOrder, open: number): boolean {
  return isStop(terms) && reachesStop(terms, open, open);
}

/** Price of a fill within a bar; NaN for none. A stop-limit order is triggered first. */
function priceInBar(terms: Terms, bar: Candle): number {
  const price = priceWithinBar(terms, bar.open, bar);
  if (Number.isNaN(price) || terms.type !== 'stop_limit' || terms.triggered) return price;
  terms.triggered = true;
  return isBeyondLimit(terms, price) ? price : Number.NaN;
}
