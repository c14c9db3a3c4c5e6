import { expectedPrice, feeOf } from '../costs.ts';
import type { Instrument } from '../instrument.ts';
import type { OrderBook } from '../orders/order-book.ts';
import type { OrderReason } from '../orders/order.ts';
import { isTarget, signOf, type WorkingOrder } from '../orders/working-order.ts';
import type { Exposure } from '../risk/exposure.ts';
import type { RiskGate } from '../risk/risk-gate.ts';
import type { RunState } from '../run-state.ts';
import type { Sizing } from '../sizing.ts';
import type { OrderExecution } from './order-execution.ts';
import { endReason, SentOrders, type ReportedChange, type SentOrder } from './sent-orders.ts';
import type { VenueReport, VenueRules } from './venue-protocol.ts';
import type { VenueTerms } from './venue-terms.ts';

/**
 * Sends orders to a venue, and fills them by its reports only. An order is sized when its instrument
 * has a close, at that close. It is denied if the venue would reject it, or if the account could not
 * bear it beside the orders that work already. It waits for the end of orders that are being canceled
 * and whose cash or units it needs. A target also waits for the end of the one that it replaces.
 */
export class VenueExecution implements OrderExecution {
  readonly #run: RunState;
  readonly #book: OrderBook;
  readonly #gate: RiskGate;
  readonly #exposure: Exposure;
  readonly #sizing: Sizing;
  readonly #terms: VenueTerms;
  readonly #sent: SentOrders;

  constructor(
    run: RunState,
    book: OrderBook,
    gate: RiskGate,
    exposure: Exposure,
    sizing: Sizing,
    terms: VenueTerms,
  ) {
    this.#run = run;
    this.#book = book;
    this.#gate = gate;
    this.#exposure = exposure;
    this.#sizing = sizing;
    this.#terms = terms;
    this.#sent = new SentOrders(run.instruments.length);
  }

  /** Orders that were sent, by id and oldest first, including ended ones. */
  get sent(): ReadonlyMap<number, Readonly<SentOrder>> {
    return this.#sent.byId;
  }

  /** Replaces the rules of the venue. Orders that work there stay. */
  revise(rules: VenueRules): void {
    this.#terms.revise(rules);
  }

  /** Whether nothing may be sent for the instrument now. */
  isShut({ index }: Instrument): boolean {
    return this.#terms.isShut(index);
  }

  /**
   * Applies a report of the venue. The strategy is notified of fills in the next step.
   *
   * @throws RangeError for an order that was not sent, or for invalid numbers; nothing has changed
   *   then.
   */
  report(report: VenueReport): void {
    const { sent, change } = this.#sent.take(report);
    const { status, time } = report;
    this.#run.betweenSteps(() => {
      if (change !== undefined) this.#record(sent, change, time);
      this.#book.complete(sent.order, status === 'filled');
      if (status !== 'open' && status !== 'filled') {
        this.#book.end(sent.order, status, endReason(report, sent), time);
      }
      this.#book.dropEnded();
      this.#sendUnsent();
    });
  }

  fillFromBars(): void {}

  sendWaiting(): void {
    if (this.#terms.resuming.size > 0) this.#cancelBeyondCollar();
    this.#sendUnsent();
  }

  denial(order: WorkingOrder): OrderReason | undefined {
    const reason = this.#terms.denial(order);
    return reason ?? (this.#run.isStale(order.instrument) ? 'stale_data' : undefined);
  }

  /** Sends the order, unless it has to wait. */
  place(order: WorkingOrder): OrderReason | undefined {
    const { index, close } = order.instrument;
    if (Number.isNaN(close) || this.#replacesWorking(order)) return undefined;
    this.#terms.roundPrices(order);
    // A tick may be larger than the price.
    if (order.limit === 0 || order.stop === 0) return 'invalid_order';
    const unwanted = this.#sizing.want(order, close);
    if (unwanted !== undefined) return unwanted;
    const price = expectedPrice(this.#run.config.slippage, order, this.#sizing.wanted);
    const affordable = this.#sizing.affordable(order, price);
    const missing = this.#terms.wholeSteps(index, this.#sizing.wanted) - affordable;
    if (missing > affordable * 1e-9) {
      if (this.#isBeingFreed(order)) return undefined;
      const isCuttable = isTarget(order) || this.#isKeptAsFees(order, missing);
      const unaffordable = this.#sizing.cut(order, affordable, isCuttable);
      if (unaffordable !== undefined) return unaffordable;
    }
    const nothing = this.#sizing.round();
    if (nothing !== undefined) return nothing;
    const quantity = this.#terms.tradable(index, this.#sizing.wanted, price);
    return quantity === 0 ? 'below_minimum' : this.#send(order, quantity, price);
  }

  withdraw(order: WorkingOrder, reason: OrderReason): void {
    const { step, isStrategysTurn } = this.#run;
    const sent = this.#sent.byId.get(order.id);
    // Orders leave the process only after the turn of the strategy.
    const isAtVenue = sent !== undefined && !(isStrategysTurn && sent.step === step);
    if (!isAtVenue) this.#sent.remove(order);
    this.#book.cancel(order, reason, isAtVenue);
  }

  /** Checks the sized order against limits, and sends it if it passes. */
  #send(order: WorkingOrder, quantity: number, price: number): OrderReason | undefined {
    order.session = this.#run.tradingDay;
    // It may have waited since it was submitted.
    this.#gate.collar.anchor(order);
    const denial = this.#gate.limitDenial(order, signOf(order) * quantity, order.instrument.close);
    if (denial !== undefined) return denial;
    const collar = this.#terms.roundCollar(order, this.#worstPrice(order, quantity, price));
    if (collar === 0) return 'price_collar_bps';
    if (!Number.isNaN(collar) && !this.#terms.takesLimitsFor(order))
      return 'not_supported_by_venue';
    order.quantity = quantity;
    this.#sent.add(order, this.#run.step, collar);
    return undefined;
  }

  /**
   * The limit to send with an order that has none; NaN for none. Venues reserve the cost of a purchase
   * at its limit, and apply their minimum value to the limit of a sale.
   */
  #worstPrice(order: WorkingOrder, units: number, price: number): number {
    const worst = this.#gate.collar.worstPrice(order);
    if (order.side === 'sell') {
      return Math.max(worst, this.#terms.leastPrice(order.instrument.index, units));
    }
    const cash = this.#exposure.uncommittedCash();
    // The fee at the price that spends all cash is the highest possible one.
    const payable = (cash - feeOf(this.#run.config.fees, units, cash / units)) / units;
    return Math.min(worst, Math.max(price, payable));
  }

  /** Whether a sale exceeds the position only by units that the venue has kept as fees. */
  #isKeptAsFees({ side, instrument }: WorkingOrder, missing: number): boolean {
    return side === 'sell' && missing <= this.#sent.feeUnits[instrument.index]! * (1 + 1e-9);
  }

  /** Whether an older target of the instrument has not ended yet. */
  #replacesWorking(order: WorkingOrder): boolean {
    const { id, instrument } = order;
    if (!isTarget(order)) return false;
    return this.#run.working.some(
      (other) =>
        other.id < id &&
        other.status === 'working' &&
        other.instrument === instrument &&
        isTarget(other),
    );
  }

  /** Whether unconfirmed cancels may release the cash or the units that the order needs. */
  #isBeingFreed({ side, instrument }: WorkingOrder): boolean {
    return this.#run.working.some(
      (other) =>
        other.status === 'working' &&
        other.side === side &&
        (side === 'buy' || other.instrument === instrument) &&
        other.pendingCancel !== undefined,
    );
  }

  /** Sends or denies the orders that the venue does not have, oldest first. */
  #sendUnsent(): void {
    for (const order of this.#run.working) {
      if (order.isSent) continue;
      const { index } = order.instrument;
      const reason = this.#gate.blocks(index) ?? this.denial(order) ?? this.place(order);
      if (reason !== undefined) this.#book.end(order, 'denied', reason);
    }
    this.#book.dropEnded();
  }

  /** Cancels orders beyond the collar in instruments that trade again and have a price since. */
  #cancelBeyondCollar(): void {
    for (const index of this.#terms.resuming) {
      const instrument = this.#run.instruments[index]!;
      const reference = this.#gate.collar.referenceOf(instrument);
      // A bar without trades has no new price, and a doubtful close must be confirmed first.
      if (this.#run.fresh[index] === 0 || instrument.volume === 0) continue;
      if (reference !== instrument.close) continue;
      this.#terms.resuming.delete(index);
      for (const order of this.#run.working) {
        if (order.instrument.index !== index) continue;
        if (this.#gate.collar.isBeyond(order, reference)) this.withdraw(order, 'price_collar_bps');
      }
    }
    this.#book.dropEnded();
  }

  #record(sent: SentOrder, change: ReportedChange, time: number): void {
    const { booking, journal, portfolio, step } = this.#run;
    const { order } = sent;
    const { index } = order.instrument;
    booking.instrument = index;
    booking.quantity = change.quantity;
    booking.price = change.price;
    booking.reference = change.price;
    booking.fee = change.fee;
    booking.slippage = 0;
    booking.time = time;
    booking.step = step;
    if (change.kind === 'correction') {
      portfolio.correct(booking, order.side, sent.trade);
      journal.booked('order.corrected', order, booking, portfolio);
    } else if (change.kind === 'fee') {
      portfolio.settle(booking, sent.trade);
      journal.booked('order.fee', order, booking, portfolio);
    } else {
      portfolio.book(booking);
      sent.trade = portfolio.lastTrade(index);
      this.#book.fill(order, change.isFirst);
    }
  }
}
