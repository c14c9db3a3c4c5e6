import type { Order, OrderReason } from '../orders/order.ts';
import { ORDER_REASONS } from '../orders/order.ts';
import type { InstrumentRules, VenueReport, VenueRules } from './venue-protocol.ts';
import type { WorkingOrder } from '../orders/working-order.ts';

/** An order that was handed to the venue, and what the venue has said of it; it is kept for good. */
export interface SentOrder {
  readonly order: WorkingOrder;
  /** In which it was handed over. */
  readonly step: number;
  /** The worst price for one that has none of its own; NaN where any will do. */
  readonly collar: number;
  isReported: boolean;
  /** Why the venue was asked to cancel it, if it was. */
  canceling: OrderReason | undefined;
  cost: number;
  fee: number;
  feeUnits: number;
  corrections: number;
  /** The trade that its newest fill went into; undefined before its first. */
  trade: number | undefined;
}

/** What a report adds to those before it; signed as the account sees it. */
export interface ReportedChange {
  /** Units, net of fees that were taken in them; 0 where only money moved. */
  readonly quantity: number;
  /** Per unit. */
  readonly price: number;
  /** Account currency, fees in units included at the price. */
  readonly fee: number;
  readonly isFill: boolean;
  /** Nothing of the order was filled before. */
  readonly isFirstFill: boolean;
  /** Of a trade that was undone or corrected; the quantity may go back then. */
  readonly isCorrection: boolean;
}

/** Which orders are at the venue, what it takes, and what its reports come to. */
export class VenueDesk {
  readonly sent = new Map<number, SentOrder>();
  #types: readonly string[] = [];
  readonly #symbols: readonly string[];
  /** These two are in the order of the universe. */
  #rules: readonly (InstrumentRules | undefined)[] = [];
  /** Units that were taken as fees, ever. */
  readonly feeUnits: number[];

  /** Instruments that trade again, and of which no price has come since. */
  readonly resuming = new Set<number>();

  constructor(rules: VenueRules, symbols: readonly string[]) {
    this.#symbols = symbols;
    this.feeUnits = symbols.map(() => 0);
    this.revise(rules);
  }

  /** Has these hold from now on. */
  revise({ types, instruments }: VenueRules): void {
    for (const [index, symbol] of this.#symbols.entries()) {
      const isKnown = this.#rules.length > 0;
      if (isKnown && isShut(this.#rules[index]) && !isShut(instruments[symbol])) {
        this.resuming.add(index);
      }
    }
    this.#types = types;
    this.#rules = this.#symbols.map((symbol) => instruments[symbol]);
  }

  /** Whether nothing is to be sent for an instrument. */
  isShut(index: number): boolean {
    return isShut(this.#rules[index]) || this.resuming.has(index);
  }

  /** Whether the venue has the instrument at all. */
  trades(index: number): boolean {
    return this.#rules[index] !== undefined;
  }

  /** Why it takes no such order now, whatever its size. */
  denial(order: Readonly<Order>): OrderReason | undefined {
    const { index } = order.instrument;
    const rules = this.#rules[index];
    if (rules === undefined) return 'unknown_symbol';
    if (!this.#supports(order)) return 'not_supported_by_venue';
    const { phase = 'open' } = rules;
    if (phase === 'closed') return 'market_closed';
    if (phase === 'halted' || this.resuming.has(index)) return 'market_halted';
    // What is to trade at once needs trading, and so does what must not.
    const isPatient = order.timeInForce === 'gtc' && order.type !== 'market' && !order.postOnly;
    return phase === 'auction' && !isPatient ? 'not_taken_in_auction' : undefined;
  }

  /** Whether it takes orders of the kind, whatever their size. */
  #supports(order: Readonly<Order>): boolean {
    return (
      this.#types.includes(order.type) &&
      order.type !== 'trailing_stop' &&
      canLastSo(order) &&
      order.takeProfit === undefined &&
      order.stopLoss === undefined &&
      order.ocoGroup === 0
    );
  }

  /** Whether it takes an order with a limit in place of this one, which has none. */
  takesLimitsFor({ type }: Readonly<Order>): boolean {
    return this.#types.includes(type === 'market' ? 'limit' : 'stop_limit');
  }

  /** The most units, up to `quantity`, that are a multiple of the step. */
  wholeSteps(index: number, quantity: number): number {
    return ontoGrid(quantity, this.#rules[index]!.step, 'down');
  }

  /** The most units, up to `quantity`, that it takes in one order at `price`; 0 where that is too little. */
  tradable(index: number, quantity: number, price: number): number {
    const { min_quantity, min_value } = this.#rules[index]!;
    const units = this.wholeSteps(index, quantity);
    const isEnough = units >= min_quantity && units * price >= min_value * (1 - 1e-9);
    return isEnough ? units : 0;
  }

  /** The least price at which so many units are worth enough for it. */
  leastPrice(index: number, units: number): number {
    return this.#rules[index]!.min_value / units;
  }

  /** Puts the order's prices on the tick: a limit is never worse than asked for, a stop never nearer. */
  roundPrices(order: WorkingOrder): void {
    const { tick } = this.#rules[order.instrument.index]!;
    const isBuy = order.side === 'buy';
    order.limit = ontoGrid(order.limit, tick, isBuy ? 'down' : 'up');
    order.stop = ontoGrid(order.stop, tick, isBuy ? 'up' : 'down');
  }

  /** Puts the worst price for an order on the tick, within what it was. */
  roundCollar({ instrument, side }: Order, collar: number): number {
    return ontoGrid(collar, this.#rules[instrument.index]!.tick, side === 'buy' ? 'down' : 'up');
  }

  hand(order: WorkingOrder, step: number, collar: number): void {
    this.sent.set(order.id, {
      order,
      step,
      collar,
      isReported: false,
      canceling: undefined,
      cost: 0,
      fee: 0,
      feeUnits: 0,
      corrections: 0,
      trade: undefined,
    });
  }

  /**
   * Takes a report into the order's sums; what that adds to the account, undefined for nothing new.
   * Each sum only ever grows away from 0, so that reports may come late, twice and in any order;
   * where trades were corrected since, what is told counts, and what was told before does not.
   *
   * @throws RangeError for a report of no order that was handed over, or with numbers that are none.
   */
  take(report: VenueReport): {
    readonly sent: SentOrder;
    readonly booking: ReportedChange | undefined;
  } {
    const sent = this.sent.get(report.order);
    if (sent === undefined) {
      throw new RangeError(`no order of this session that the venue has is ${report.order}`);
    }
    checkNumbers(report);
    const { order } = sent;
    const { corrections = 0 } = report;
    sent.isReported = true;
    if (corrections < sent.corrections) return { sent, booking: undefined };
    const isCorrection = corrections > sent.corrections;
    const sum = (known: number, told: number): number =>
      isCorrection ? told : farther(known, told);
    const filled = sum(order.filled, report.filled);
    const cost = sum(sent.cost, report.cost);
    const fee = sum(sent.fee, report.fee);
    const feeUnits = sum(sent.feeUnits, report.fee_units);
    const sign = order.side === 'buy' ? 1 : -1;
    const units = filled - order.filled;
    const paid = cost - sent.cost;
    const charged = fee - sent.fee;
    const quantity = sign * units - (feeUnits - sent.feeUnits);
    const isFill = units > 0 && !isCorrection;
    const isFirstFill = isFill && order.filled === 0;
    // What was told too late, or is known of fees only now, belongs to the fills before it.
    const price = units !== 0 ? paid / units : filled === 0 ? 0 : cost / filled;
    const isNew = isFill || quantity !== 0 || paid !== 0 || charged !== 0;
    this.feeUnits[order.instrument.index]! += feeUnits - sent.feeUnits;
    order.filled = filled;
    sent.corrections = corrections;
    sent.cost = cost;
    sent.fee = fee;
    sent.feeUnits = feeUnits;
    if (!isNew) return { sent, booking: undefined };
    // Whatever the price: cash is to change by what was paid and charged, and by nothing else.
    const total = sign * paid + charged - quantity * price;
    return { sent, booking: { quantity, price, fee: total, isFill, isFirstFill, isCorrection } };
  }
}

function isShut(rules: InstrumentRules | undefined): boolean {
  return rules === undefined || rules.phase === 'halted' || rules.phase === 'closed';
}

/** Whether a venue has orders of the kind that last as it is to: what waits there does so until canceled. */
function canLastSo({ type, timeInForce, postOnly }: Readonly<Order>): boolean {
  if (timeInForce === 'gtc') return true;
  if (timeInForce === 'day') return false;
  return type === 'limit' ? !postOnly : type === 'market' && timeInForce === 'ioc';
}

/** Why an order ended of which the venue reports this. */
export function endReason(
  { status, reason }: VenueReport,
  { order, canceling, collar }: SentOrder,
): OrderReason {
  const told = ORDER_REASONS.find((known) => known === reason);
  if (status === 'rejected') return told ?? 'refused_by_venue';
  const atOnce = order.timeInForce === 'ioc' || order.timeInForce === 'fok';
  const isHeldBack = order.type === 'market' && !Number.isNaN(collar);
  if (isHeldBack) return canceling ?? told ?? 'price_collar_bps';
  if (status === 'expired') return told ?? (atOnce ? 'not_filled_at_once' : 'expired_at_venue');
  return canceling ?? told ?? (atOnce ? 'not_filled_at_once' : 'canceled_by_venue');
}

/** The one farther from 0: fees may be rebates. */
function farther(known: number, told: number): number {
  return Math.abs(told) > Math.abs(known) ? told : known;
}

function checkNumbers(report: VenueReport): void {
  for (const name of ['filled', 'cost', 'fee', 'fee_units', 'corrections', 'time'] as const) {
    const value = report[name] ?? 0;
    const isMoney = name === 'fee' || name === 'fee_units';
    // The last instant that has a date.
    if (!(Math.abs(value) <= 8.64e15) || (!isMoney && value < 0)) {
      throw new RangeError(`report of order ${report.order}: ${name} must not be ${value}`);
    }
  }
}

/** The multiple of `step` next to `value`, as the decimal number that the venue writes; NaN stays. */
function ontoGrid(value: number, step: number, direction: 'down' | 'up'): number {
  if (step === 0 || Number.isNaN(value)) return value;
  const count = value / step;
  // 0.3 / 0.1 is less than 3.
  const whole =
    direction === 'down' ? Math.floor(count * (1 + 1e-12)) : Math.ceil(count * (1 - 1e-12));
  return Number((whole * step).toFixed(decimalsOf(step)));
}

function decimalsOf(step: number): number {
  let decimals = 0;
  while (decimals < 20 && Number(step.toFixed(decimals)) !== step) decimals += 1;
  return decimals;
}
