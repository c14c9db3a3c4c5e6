import { feeOf, slippedPrice } from '../costs.ts';
import {
  isBeyondLimit,
  isStop,
  priceAtOpen,
  reachesStop,
  type BarPrices,
} from '../fills/order-prices.ts';
import { nextOnPath, pathOf } from '../fills/path.ts';
import { nextInRange } from '../fills/range.ts';
import { requestExits, requestLiquidation } from '../orders/create-order.ts';
import type { OrderBook } from '../orders/order-book.ts';
import type { OrderReason } from '../orders/order.ts';
import { ratchet } from '../orders/trailing-stop.ts';
import { isTarget, signOf, type WorkingOrder } from '../orders/working-order.ts';
import type { RiskGate } from '../risk/risk-gate.ts';
import type { RunState } from '../run-state.ts';
import type { Sizing } from '../sizing.ts';
import type { OrderExecution } from './order-execution.ts';

const NONE: readonly WorkingOrder[] = [];

/** Fills orders from bars: first at the opens in order of submission, then within the bars. */
export class SimulatedExecution implements OrderExecution {
  readonly #run: RunState;
  readonly #book: OrderBook;
  readonly #gate: RiskGate;
  readonly #sizing: Sizing;
  readonly #usesVolume: boolean;
  /** Units of each instrument that were filled in the current step. */
  readonly #volumeUsed: Float64Array;
  #ocoCount = 0;

  constructor(run: RunState, book: OrderBook, gate: RiskGate, sizing: Sizing) {
    const { fill, slippage } = run.config;
    this.#run = run;
    this.#book = book;
    this.#gate = gate;
    this.#sizing = sizing;
    this.#usesVolume = fill.model === 'volume_share' || slippage.model === 'volume_share';
    this.#volumeUsed = new Float64Array(run.instruments.length);
  }

  place(): undefined {}

  denial(): undefined {}

  sendWaiting(): void {}

  withdraw(order: WorkingOrder, reason: OrderReason): void {
    this.#book.cancel(order, reason);
  }

  /**
   * Cancels all orders and closes all positions at the closes of the current step, with fees and
   * slippage. The whole position is filled, whatever the volume of the bar.
   */
  closeOut(): void {
    const run = this.#run;
    const { config, cursors, curve, histories, instruments, portfolio, working } = run;
    if (portfolio.isInMarket()) run.stepsInMarket -= 1;
    for (const order of working) this.#book.cancel(order, 'run_ended');
    this.#book.dropEnded();
    for (const instrument of instruments) {
      const { index } = instrument;
      const position = portfolio.positions[index]!;
      if (position === 0) continue;
      const order = this.#book.create(requestLiquidation(instrument, position));
      this.#book.submit(order);
      const quantity = Math.abs(position);
      const volume = histories[index]!.volume[cursors[index]!]!;
      const close = portfolio.marks[index]!;
      const price = slippedPrice(config.slippage, order, close, quantity, volume);
      this.#record(order, quantity, price, close);
    }
    this.#book.dropEnded();
    curve.values[run.step] = portfolio.equity();
    curve.recordAll(curve.recorded);
  }

  fillFromBars(): void {
    const { working, histories, fresh, cursors, portfolio, config } = this.#run;
    if (working.length === 0) return;
    if (this.#usesVolume) this.#volumeUsed.fill(0);
    for (let index = 0; index < histories.length; index += 1) {
      // Targets that fill at this open are sized on what everything is worth at this open.
      if (fresh[index] === 1) portfolio.marks[index] = histories[index]!.open[cursors[index]!]!;
    }
    const day = this.#run.tradingDay;
    // Exits placed here join the end of the list and are tried too: their whole bar is ahead.
    for (let at = 0; at < working.length; at += 1) this.#tryAtOpen(working[at]!, day);
    this.#book.dropEnded();
    for (let index = 0; index < histories.length; index += 1) {
      if (fresh[index] === 0 || working.length === 0) continue;
      const isAmbiguous =
        config.fill.model === 'ohlc_path' ? this.#followPath(index) : this.#searchRange(index);
      if (isAmbiguous) this.#run.ambiguousBars += 1;
    }
    if (this.#run.endsSession) this.#endDay(day);
    this.#book.dropEnded();
  }

  /** Ends the day orders that could trade in the session that ends with the current bars. */
  #endDay(day: number): void {
    for (const order of this.#run.working) {
      if (order.status === 'working' && order.timeInForce === 'day' && order.session === day) {
        this.#book.end(order, 'expired', 'day_ended');
      }
    }
  }

  #tryAtOpen(order: WorkingOrder, day: number): void {
    const { index } = order.instrument;
    if (order.status !== 'working' || this.#run.fresh[index] === 0) return;
    const isFirstBar = order.session === -1;
    if (isFirstBar && order.triedAt === -1 && this.#run.config.ordersAreLate === true) {
      order.triedAt = this.#run.step;
      return;
    }
    if (isFirstBar) order.session = day;
    if (order.timeInForce === 'day' && order.session !== day) {
      this.#book.end(order, 'expired', 'day_ended');
      return;
    }
    const open = this.#run.histories[index]!.open[this.#run.cursors[index]!]!;
    if (order.type === 'stop_limit' && !order.triggered && reachesStop(order, open, open)) {
      this.#book.trigger(order);
    }
    const price = priceAtOpen(order, open);
    if (!Number.isNaN(price)) {
      if (order.postOnly && isFirstBar) {
        this.#book.end(order, 'rejected', 'post_only_would_cross');
      } else this.#fill(order, price);
    }
    if (order.type === 'trailing_stop') order.stop = ratchet(order, open);
    if (order.timeInForce === 'ioc' || order.timeInForce === 'fok') {
      this.#book.end(order, 'canceled', 'not_filled_at_once');
    }
  }

  /** Fills within a bar of which only the range is known. Returns whether the result is ambiguous. */
  #searchRange(index: number): boolean {
    const bar = this.#barOf(index);
    const entered = new Map<WorkingOrder, number>();
    let isAmbiguous = false;
    for (;;) {
      const next = nextInRange(this.#candidates(index), bar, entered);
      if (next.isAmbiguous) isAmbiguous = true;
      if (next.order === undefined) break;
      for (const exit of this.#meet(next.order, next.price)) entered.set(exit, next.price);
    }
    this.#trail(index, bar.low, bar.high);
    return isAmbiguous;
  }

  /**
   * Fills along the path of a bar, including exits of entries within it. Returns whether the result
   * is ambiguous.
   */
  #followPath(index: number): boolean {
    const path = pathOf(this.#barOf(index));
    let isAmbiguous = false;
    let from = path.prices[0];
    for (let leg = 1; leg < path.prices.length; leg += 1) {
      for (;;) {
        const met = nextOnPath(this.#candidates(index), path, leg, from);
        if (met === undefined) break;
        if (met.isAmbiguous) isAmbiguous = true;
        from = met.at;
        const waits = met.order.type === 'stop_limit' && !met.order.triggered;
        if (waits && met.price === met.at) this.#book.trigger(met.order);
        else this.#meet(met.order, met.price);
      }
      from = path.prices[leg]!;
      this.#trail(index, from, from);
    }
    return isAmbiguous;
  }

  #barOf(index: number): BarPrices {
    const { open, high, low, close } = this.#run.histories[index]!;
    const at = this.#run.cursors[index]!;
    return { open: open[at]!, high: high[at]!, low: low[at]!, close: close[at]! };
  }

  /** Orders of the instrument that may be filled within the current bar, oldest first. */
  #candidates(index: number): WorkingOrder[] {
    return this.#run.working.filter((order) => this.#mayFill(order, index));
  }

  #mayFill({ status, instrument, session, triedAt }: WorkingOrder, index: number): boolean {
    const isOpen = status === 'working' && instrument.index === index;
    return isOpen && session !== -1 && triedAt !== this.#run.step;
  }

  /** Moves trailing stops of the instrument after prices between `low` and `high`. */
  #trail(index: number, low: number, high: number): void {
    for (const order of this.#run.working) {
      if (order.type !== 'trailing_stop' || !this.#mayFill(order, index)) continue;
      order.stop = ratchet(order, order.side === 'sell' ? high : low);
    }
  }

  /** Fills the order at `price`, where a stop-limit is triggered first. Returns the exits it places. */
  #meet(order: WorkingOrder, price: number): readonly WorkingOrder[] {
    if (order.type === 'stop_limit' && !order.triggered) {
      this.#book.trigger(order);
      // The bar after the trigger is unknown, so an order that cannot be filled there waits.
      order.triedAt = this.#run.step;
      if (!isBeyondLimit(order, price)) return NONE;
    }
    return this.#fill(order, price);
  }

  /** Fills the order as far as possible at `reference`. Returns the exits that its fill places. */
  #fill(order: WorkingOrder, reference: number): readonly WorkingOrder[] {
    const { config, portfolio, histories, cursors } = this.#run;
    const { index } = order.instrument;
    const before = portfolio.positions[index]!;
    // Reading a column that no model needs would cost a cache miss for every fill.
    const volume = this.#usesVolume ? histories[index]!.volume[cursors[index]!]! : 0;
    const available =
      config.fill.model === 'volume_share'
        ? Math.max(0, config.fill.limit * volume - this.#volumeUsed[index]!)
        : Infinity;
    order.triedAt = this.#run.step;
    if (isStop(order)) order.triggered = true;
    if (!this.#size(order, reference, available, volume)) return NONE;
    const { wanted } = this.#sizing;
    const sign = signOf(order);

    let quantity = Math.min(wanted, available);
    if (config.units === 'whole') quantity = Math.floor(quantity);
    if (order.timeInForce === 'fok' && quantity < wanted) {
      this.#book.end(order, 'canceled', 'not_filled_at_once');
      return NONE;
    }
    if (quantity === 0) return NONE;
    const denial = this.#gate.denialAtFill(order, sign * wanted, reference);
    const closing = denial === undefined ? Infinity : this.#closingUnits(order);
    const isCut = closing < quantity;
    if (closing === 0 || (isCut && order.timeInForce === 'fok')) {
      this.#book.end(order, order.filled === 0 ? 'denied' : 'canceled', denial!);
      return NONE;
    }
    if (isCut) quantity = closing;
    const price = slippedPrice(config.slippage, order, reference, quantity, volume);
    if (this.#isBeyondCollar(order, price)) {
      // At a venue, a stop order becomes a stop-limit, which continues to work.
      if (order.type === 'market') this.#book.end(order, 'canceled', 'price_collar_bps');
      return NONE;
    }
    if (isTarget(order) || order.reduceOnly) order.quantity = order.filled + wanted;
    if (this.#sizing.isCut && order.filled === 0) this.#run.countCut(order);
    this.#record(order, quantity, price, reference);
    const after = portfolio.positions[index]!;
    if (quantity === closing) this.#book.end(order, 'canceled', denial!);
    if (order.ocoGroup !== 0) this.#reduceGroup(order, quantity);
    if (after === 0 || after * before < 0) this.#cancelExits(index, order);
    return after * sign > 0
      ? this.#placeExits(order, Math.min(quantity, after * sign), price)
      : NONE;
  }

  /** Sizes the order for a fill. Ends it and returns false if it cannot be filled at all. */
  #size(order: WorkingOrder, reference: number, available: number, volume: number): boolean {
    const sizing = this.#sizing;
    let reason = sizing.want(order, reference);
    if (reason !== undefined) {
      this.#book.end(order, 'canceled', reason);
      return false;
    }
    const { slippage } = this.#run.config;
    const units = Math.min(sizing.wanted, available);
    const price = slippedPrice(slippage, order, reference, units, volume);
    const affordable = sizing.affordable(order, price);
    if (sizing.wanted > affordable * (1 + 1e-12)) {
      reason = sizing.cut(order, affordable, isTarget(order));
      if (reason !== undefined) {
        this.#book.end(order, 'rejected', reason);
        return false;
      }
    }
    reason = sizing.round();
    if (reason !== undefined) this.#book.end(order, 'canceled', reason);
    return reason === undefined;
  }

  /**
   * Units of an order beyond its limits that may still be filled because they only reduce the
   * position.
   */
  #closingUnits(order: WorkingOrder): number {
    if (order.isCheckedAtFill && order.filled === 0) return 0;
    return Math.max(0, -signOf(order) * this.#run.portfolio.positions[order.instrument.index]!);
  }

  #isBeyondCollar(order: WorkingOrder, price: number): boolean {
    if (Number.isNaN(order.reference) && order.permit === undefined) return false;
    const sign = signOf(order);
    return (this.#gate.collar.worstPrice(order) * (1 + sign * 1e-9) - price) * sign < 0;
  }

  #record(order: WorkingOrder, quantity: number, price: number, reference: number): void {
    const { booking, config, portfolio } = this.#run;
    const { index } = order.instrument;
    booking.instrument = index;
    booking.quantity = signOf(order) * quantity;
    booking.price = price;
    booking.reference = reference;
    booking.fee = feeOf(config.fees, quantity, price);
    booking.slippage = Math.abs(price - reference) * quantity;
    booking.time = this.#run.now;
    booking.step = this.#run.step;
    portfolio.book(booking);
    if (this.#usesVolume) this.#volumeUsed[index]! += quantity;
    const isFirst = order.filled === 0;
    order.filled += quantity;
    this.#book.fill(order, isFirst);
    this.#book.complete(order, false);
  }

  /** Places the exits of a bracket, or adds the fill to those that guard its position already. */
  #placeExits(entry: WorkingOrder, quantity: number, price: number): readonly WorkingOrder[] {
    if (entry.takeProfit === undefined && entry.stopLoss === undefined) return NONE;
    const guards = entry.exits.filter(({ status }) => status === 'working');
    if (guards.length > 0) {
      for (const exit of guards) exit.quantity += quantity;
      return NONE;
    }
    // Negative numbers cannot collide with the groups of a strategy.
    this.#ocoCount -= 1;
    const requests = requestExits(entry, quantity, price, this.#ocoCount);
    entry.exits = requests.map((request) => this.#book.create(request));
    for (const exit of entry.exits) {
      exit.session = this.#run.tradingDay;
      this.#book.submit(exit);
    }
    return entry.exits;
  }

  #reduceGroup(order: WorkingOrder, quantity: number): void {
    for (const other of this.#run.working) {
      if (other === order || other.ocoGroup !== order.ocoGroup || other.status !== 'working') {
        continue;
      }
      if (order.status !== 'filled') other.quantity -= quantity;
      const isUsedUp = other.quantity - other.filled <= 1e-12 * quantity;
      if (order.status === 'filled' || isUsedUp) {
        this.#book.end(other, 'canceled', 'other_side_of_oco_filled');
      }
    }
  }

  /** Cancels the exits of brackets whose position is closed. */
  #cancelExits(index: number, closedBy: WorkingOrder): void {
    for (const order of this.#run.working) {
      if (order.parent !== 0 && order.instrument.index === index && order !== closedBy) {
        this.#book.end(order, 'canceled', 'position_closed');
      }
    }
  }
}
