import { affordableQuantity, feeOf, slippedPrice } from '../costs.ts';
import type { EngineConfig } from '../config.ts';
import type { OrderFields } from '../orders/create-order.ts';
import type { OrderBook } from '../orders/order-book.ts';
import type { OrderReason } from '../orders/order.ts';
import { isUnsizedTarget, type WorkingOrder } from '../orders/working-order.ts';
import { DUST } from '../risk/exposure.ts';
import type { RiskGate } from '../risk/risk-gate.ts';
import type { RunState } from '../run-state.ts';

/** Whether `LoneTargets` may be used under this configuration. */
export function allowsLoneTargets(config: EngineConfig, instruments: number): boolean {
  const { account, fill, slippage, ordersAreLate } = config;
  const usesVolume = fill.model === 'volume_share' || slippage.model === 'volume_share';
  return instruments === 1 && account.model === 'cash' && !usesVolume && ordersAreLate !== true;
}

/**
 * Places and fills a target while no other order works, in a cash account with one instrument and
 * simulated fills. Most strategies place only such orders, and a search places hundreds of millions. The
 * results equal those of `StrategyBroker` and `SimulatedExecution`, in half the time, because there
 * are no other orders, exits, groups, partial fills, permits, thresholds or collars to consider.
 */
export class LoneTargets {
  readonly #run: RunState;
  readonly #book: OrderBook;
  readonly #gate: RiskGate;

  constructor(run: RunState, book: OrderBook, gate: RiskGate) {
    this.#run = run;
    this.#book = book;
    this.#gate = gate;
  }

  /**
   * Creates the order, and submits it unless a limit denies it. If another order works, it does nothing
   * and returns undefined.
   *
   * @param delta signed units to trade at the close.
   */
  place(fields: OrderFields, delta: number): WorkingOrder | undefined {
    if (this.#run.working.length > 0 || !this.#gate.hasOnlyLimits) return undefined;
    const order = this.#book.create(fields);
    const reason = this.#gate.denialOfLone(order, delta, fields.instrument.close);
    if (reason === undefined) this.#book.submit(order);
    else this.#book.end(order, 'denied', reason);
    return order;
  }

  /** Fills the only working order at the open, or ends it. Returns false if it is not a lone target. */
  fill(): boolean {
    const { working, histories, portfolio, step } = this.#run;
    const order = working[0]!;
    const open = histories[0]!.open[step]!;
    const isLone = working.length === 1 && isUnsizedTarget(order) && order.permit === undefined;
    if (!isLone || !this.#gate.hasOnlyLimits || Number.isNaN(open)) return false;
    portfolio.marks[0] = open;
    order.session = this.#run.tradingDay;
    const reason = this.#trade(order);
    if (reason !== undefined) {
      const status = reason === 'quantity_rounds_to_zero' ? 'canceled' : 'denied';
      this.#book.end(order, status, reason);
    }
    working.pop();
    return true;
  }

  #trade(order: WorkingOrder): OrderReason | undefined {
    const { config, portfolio } = this.#run;
    const open = portfolio.marks[0]!;
    const position = portfolio.positions[0]!;
    const delta = portfolio.unitsToTarget(0, order.weight, open);
    const isSale = delta < 0;
    order.side = isSale ? 'sell' : 'buy';
    // Without a model that uses volume, the price does not depend on the quantity.
    const price = slippedPrice(config.slippage, order, open, 0, 0);
    const affordable = isSale
      ? position
      : affordableQuantity(config.fees, portfolio.cash, price, 1);
    let units = Math.abs(delta);
    const isCut = units > affordable * (1 + 1e-12);
    if (isCut) units = Math.max(0, affordable);
    if (config.units === 'whole') units = Math.floor(units);
    const isDust = units <= DUST * Math.max(Math.abs(position), Math.abs(position + delta));
    if (isDust) return 'quantity_rounds_to_zero';
    const signed = isSale ? -units : units;
    const reason = this.#gate.denialOfLone(order, signed, open);
    if (reason !== undefined) return reason;
    if (isCut) this.#run.countCut(order);
    this.#record(order, signed, price, open);
    return undefined;
  }

  #record(order: WorkingOrder, signed: number, price: number, open: number): void {
    const { booking, config, portfolio, step, times } = this.#run;
    const units = Math.abs(signed);
    booking.instrument = 0;
    booking.quantity = signed;
    booking.price = price;
    booking.reference = open;
    booking.fee = feeOf(config.fees, units, price);
    booking.slippage = Math.abs(price - open) * units;
    booking.time = times[step]!;
    booking.step = step;
    portfolio.book(booking);
    order.quantity = units;
    order.filled = units;
    this.#book.fill(order, true);
    this.#book.complete(order, false);
  }
}
