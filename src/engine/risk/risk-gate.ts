import { calendarOf } from '../../market/trading-calendar.ts';
import type { DenyReason, OrderReason } from '../orders/order.ts';
import { isTarget, type WorkingOrder } from '../orders/working-order.ts';
import type { Booking } from '../portfolio.ts';
import type { RunState } from '../run-state.ts';
import type { Exposure } from './exposure.ts';
import { thresholdDenial, type Thresholds } from './firm-thresholds.ts';
import { DrawdownTracker } from './drawdown-tracker.ts';
import { liftLimits, limitDenial, OrderIntent } from './limits.ts';
import { MessageRate } from './message-rate.ts';
import { OptionalLimitChecks } from './optional-limits.ts';
import { covers, Permits, type Permit, type Proposal } from './permits.ts';
import { distanceBps, PriceCollar } from './price-collar.ts';
import type { RiskState } from './risk-state.ts';

const NOTHING = [] as const;

/**
 * Everything that may deny an order for its risk: the limits of the bot, the thresholds of the firm,
 * permits that lift them, latches, and the reason for which a session denies all orders. It continues
 * the `RiskState` of an earlier run, and returns its own.
 *
 * Precedence: `docs/concepts/risk-limits.md`.
 */
export class RiskGate {
  readonly collar: PriceCollar;
  readonly permits = new Permits();
  readonly #run: RunState;
  readonly #exposure: Exposure;
  readonly #optional: OptionalLimitChecks | undefined;
  readonly #rate: MessageRate;
  readonly #drawdown: DrawdownTracker;
  readonly #limitsLoss: boolean;
  #hasLimits: boolean;
  #denying: DenyReason | undefined;
  #thresholds: Thresholds | undefined;
  #thresholdRate: MessageRate | undefined;
  readonly #intent = new OrderIntent();

  /** @param carried state of the account that this run continues. */
  constructor(run: RunState, exposure: Exposure, carried?: RiskState) {
    const { risk, optionalLimits } = run.config;
    this.#run = run;
    this.#exposure = exposure;
    this.#optional =
      optionalLimits && new OptionalLimitChecks(optionalLimits, run.symbols, carried?.executions);
    this.collar = new PriceCollar(run, this.#optional);
    const { max_messages_per_second: rate } = risk;
    this.#rate = new MessageRate(rate, optionalLimits?.messages_kept_for_cancels);
    this.#drawdown = new DrawdownTracker(run.initialCash, calendarOf(run.config.calendar), carried);
    this.#limitsLoss = risk.max_daily_loss_pct < Infinity || risk.max_drawdown_pct < Infinity;
    this.#hasLimits = Object.values(risk).some((limit) => limit < Infinity);
  }

  /** State of the limits after the last step. */
  get state(): RiskState {
    const { curve } = this.#run;
    if (curve.recorded > 0) this.#drawdown.follow(curve, curve.recorded - 1);
    const executions = this.#optional?.recent(this.#run.symbols) ?? [];
    return { ...this.#drawdown.state, ...(executions.length > 0 && { executions }) };
  }

  /** Denies all new orders with this reason; undefined accepts them again. */
  deny(reason: DenyReason | undefined): void {
    this.#denying = reason;
  }

  /** Replaces all thresholds. Returns the working orders that break them, the newest first. */
  setThresholds(thresholds: Thresholds): { order: WorkingOrder; reason: OrderReason }[] {
    const rate = thresholds.max_messages_per_second?.value;
    if (rate !== this.#thresholds?.max_messages_per_second?.value) {
      this.#thresholdRate = rate === undefined ? undefined : new MessageRate(rate);
    }
    this.#thresholds = thresholds;
    this.#hasLimits = true;
    // An order may be filled before its cancel arrives, but must not cause the cancel of others.
    let staying = this.#run.working.filter(({ pendingCancel }) => pendingCancel === undefined);
    const broken: { order: WorkingOrder; reason: OrderReason }[] = [];
    for (const order of staying.toReversed()) {
      // A permit exempts an order.
      if (order.parent !== 0 || order.permit !== undefined || order.isLiquidation) continue;
      const { close } = order.instrument;
      this.#measure(order, this.#exposure.unitsLeft(order, close), close, staying);
      const reason = this.#thresholdDenial(order, staying, NOTHING);
      if (reason === undefined) this.#pass(order, staying);
      else {
        broken.push({ order, reason });
        staying = staying.filter((other) => other !== order);
      }
    }
    return broken;
  }

  /** Number of latches for repeated execution so far. */
  get latches(): number {
    return this.#optional?.latches ?? 0;
  }

  /** Lifts the latch. */
  reEnable(): void {
    this.#optional?.reEnable();
  }

  /** The reason for which orders for the instrument are denied now, whatever they ask for. */
  blocks(index: number): OrderReason | undefined {
    return this.#denying ?? this.#optional?.blocks(index);
  }

  /** The reason for which a new order is denied; `unfit` is the reason from the margin call or the venue. */
  denial(order: WorkingOrder, unfit: OrderReason | undefined): OrderReason | undefined {
    const reason = this.blocks(order.instrument.index) ?? unfit;
    if (reason !== undefined) return reason;
    if (order.quantity === 0) return 'quantity_rounds_to_zero';
    const { now, config } = this.#run;
    const overRate = this.#rate.denial(now);
    if (overRate !== undefined) return overRate;
    if (this.#thresholdRate?.denial(now) !== undefined) return 'threshold_messages';
    if (config.account.model === 'cash' && order.weight < 0) return 'short_not_allowed';
    const price = order.instrument.close;
    return this.limitDenial(order, this.#exposure.unitsLeft(order, price), price);
  }

  /**
   * The limit that the order breaks and that no permit lifts; undefined if the order has passed.
   *
   * @param delta signed units to trade at `price`; NaN before an instrument's first bar, which breaks
   *   no limit.
   */
  limitDenial(order: WorkingOrder, delta: number, price: number): OrderReason | undefined {
    const reason = this.#brokenLimit(order, delta, price, order.permit);
    if (reason !== undefined) {
      if (order.permit !== undefined || !this.permits.hasOpen) return reason;
      const proposal = proposalOf(order, delta, price);
      const permit = this.permits.find(reason, proposal);
      if (permit === undefined) return reason;
      const other = this.#brokenLimit(order, delta, price, permit);
      if (other !== undefined) return other;
      order.permit = permit;
      this.permits.use(permit, proposal, reason);
    }
    if (this.#hasLimits) this.#pass(order, this.#run.working);
    return undefined;
  }

  /**
   * The limit that an accepted order breaks at its fill, because its size was unknown before or other
   * fills have changed the resulting position.
   */
  denialAtFill(order: WorkingOrder, delta: number, price: number): OrderReason | undefined {
    const isDue = order.isCheckedAtFill && order.filled === 0;
    if (!isDue && !(this.#hasLimits && this.#exposure.goesFarther(order, delta))) return undefined;
    return this.limitDenial(order, delta, price);
  }

  /** Whether the limits of the configuration alone decide about orders now. */
  get hasOnlyLimits(): boolean {
    return (
      this.#optional === undefined &&
      this.#thresholds === undefined &&
      this.#denying === undefined &&
      !this.permits.hasOpen &&
      !this.collar.isActive
    );
  }

  /**
   * Faster form of `denial` for a new target, and of `denialAtFill` for one that has begun to trade.
   * Requires that `hasOnlyLimits` is true and that it is the only order of a cash account with one
   * instrument.
   */
  denialOfLone(order: WorkingOrder, delta: number, price: number): OrderReason | undefined {
    const { config, portfolio, times, step } = this.#run;
    const isNew = order.session === -1;
    if (isNew) {
      const overRate = this.#rate.denial(times[step]!);
      if (overRate !== undefined) return overRate;
      if (order.weight < 0) return 'short_not_allowed';
    }
    if (!this.#hasLimits) return undefined;
    const intent = this.#intent;
    intent.farthest = Math.max(0, portfolio.positions[0]! + delta);
    intent.quantity = Math.abs(delta);
    intent.value = Math.abs(delta) * price;
    intent.reduces = this.#exposure.reduces(order, delta, intent.farthest);
    intent.positionValue = intent.farthest * price;
    intent.collarBps = 0;
    intent.instruments = isNew ? 0 : 1;
    // No limit compares equity for an order that only reduces the position.
    if (!intent.reduces) this.#measureLosses();
    const reason = limitDenial(config.risk, intent);
    if (reason === undefined) this.#exposure.passed(order, intent.farthest, NOTHING);
    return reason;
  }

  /** Number of orders and cancels in the second of `time`, the time of the newest step in ms. */
  messagesAt(time: number): number {
    return this.#rate.countedAt(time);
  }

  countMessage(): void {
    this.#rate.count(this.#run.now);
    this.#thresholdRate?.count(this.#run.now);
  }

  /** Records that an order was submitted. */
  submitted(order: WorkingOrder): void {
    this.countMessage();
    // Exits lie on both sides of the price on purpose and do not show where the bot wants to trade.
    if (this.#optional !== undefined && order.parent === 0 && !Number.isNaN(order.limit)) {
      this.#optional.priced(order.instrument.index, order.side, order.limit, this.#run.now);
    }
  }

  /** Records a fill, which may latch the bot. */
  filled(order: WorkingOrder, { instrument, price, time }: Booking, isFirst: boolean): void {
    if (this.#optional === undefined) return;
    this.#optional.priced(instrument, order.side, price, time);
    if (!isFirst) return;
    const count = this.#optional.executed(instrument, order.side, time);
    if (count === undefined) return;
    const { seconds } = this.#run.config.optionalLimits!.repeated_execution!;
    this.#run.journal.latched(time, order, count, seconds);
  }

  #brokenLimit(
    order: WorkingOrder,
    delta: number,
    price: number,
    permit: Permit | undefined,
  ): OrderReason | undefined {
    const isLifted = permit !== undefined && covers(permit, proposalOf(order, delta, price));
    const lifted: readonly OrderReason[] = isLifted ? permit.controls : NOTHING;
    if (this.#optional !== undefined && !lifted.includes('price_collar_period')) {
      const side = delta < 0 ? 'sell' : 'buy';
      const asked = askedPrice(order, price);
      if (this.#optional.drifts(order.instrument.index, side, asked, this.#run.now)) {
        return 'price_collar_period';
      }
    }
    if (!this.#hasLimits) return undefined;
    const { config, working } = this.#run;
    this.#measure(order, delta, price, working);
    const reason = limitDenial(liftLimits(config.risk, lifted), this.#intent);
    return reason ?? this.#thresholdDenial(order, working, lifted);
  }

  #thresholdDenial(
    order: WorkingOrder,
    beside: readonly WorkingOrder[],
    lifted: readonly OrderReason[],
  ): OrderReason | undefined {
    if (this.#thresholds === undefined) return undefined;
    const { symbol } = order.instrument;
    const grossBeside = (): number => this.#exposure.grossBeside(order, beside);
    return thresholdDenial(this.#thresholds, symbol, this.#intent, grossBeside, lifted);
  }

  /** Writes the measures of the order into the intent. */
  #measure(
    order: WorkingOrder,
    delta: number,
    price: number,
    beside: readonly WorkingOrder[],
  ): void {
    const intent = this.#intent;
    const exposure = this.#exposure;
    const reference = order.isCheckedAtFill ? price : this.collar.referenceOf(order.instrument);
    // A single bad print must not make an order look small.
    const worth = reference > price ? reference : price;
    intent.farthest = exposure.farthest(order, delta, beside);
    intent.quantity = Math.abs(delta);
    intent.value = Math.abs(delta) * worth;
    intent.reduces = exposure.reduces(order, delta, intent.farthest);
    intent.positionValue = Math.abs(intent.farthest) * worth;
    intent.collarBps = Math.max(
      distanceBps(order.limit, reference),
      distanceBps(order.stop, reference),
    );
    // A new target may replace instruments that are still held, so this limit waits for its fill.
    const isNewTarget = isTarget(order) && order.session === -1;
    intent.instruments = isNewTarget ? 0 : exposure.instrumentsWith(order.instrument.index);
    this.#measureLosses();
  }

  #measureLosses(): void {
    const intent = this.#intent;
    intent.equity = this.#run.portfolio.equity();
    if (this.#limitsLoss || this.#thresholds !== undefined) {
      this.#drawdown.follow(this.#run.curve, this.#run.step);
    }
    intent.peakEquity = this.#drawdown.peak;
    intent.dayStartEquity = this.#drawdown.dayStart;
  }

  /** Records that the measured order has passed, and the orders that were counted beside it. */
  #pass(order: WorkingOrder, beside: readonly WorkingOrder[]): void {
    this.#exposure.passed(order, this.#intent.farthest, beside);
    if (this.#thresholds?.max_gross_exposure !== undefined) {
      this.#exposure.holdBeside(order, beside);
    }
  }
}

function proposalOf(order: WorkingOrder, delta: number, price: number): Proposal {
  const side = delta < 0 ? 'sell' : 'buy';
  return { order, side, quantity: Math.abs(delta), price: askedPrice(order, price) };
}

/** The limit, or else the stop; `price` for an order that asks for none. */
function askedPrice({ limit, stop }: WorkingOrder, price: number): number {
  const asked = Number.isNaN(limit) ? stop : limit;
  return Number.isNaN(asked) ? price : asked;
}
