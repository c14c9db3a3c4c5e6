import { ORDER_REASONS, type OrderReason } from '../orders/order.ts';
import { signOf, type WorkingOrder } from '../orders/working-order.ts';
import type { VenueReport } from './venue-protocol.ts';

/** An order at the venue, with the sums of its reports. It is kept after the order has ended. */
export interface SentOrder {
  readonly order: WorkingOrder;
  /** The step in which it was sent. */
  readonly step: number;
  /** The worst price for an order without a limit; NaN for any price. */
  readonly collar: number;
  isReported: boolean;
  /** Account currency. */
  cost: number;
  fee: number;
  feeUnits: number;
  corrections: number;
  /** Id of the trade that contains its newest fill. */
  trade: number | undefined;
}

/** Difference between a report and earlier ones, signed from the view of the account. */
export interface ReportedChange {
  readonly kind: 'fill' | 'fee' | 'correction';
  /** Units, net of fees in units; 0 if only money moved. A correction may be in either direction. */
  readonly quantity: number;
  /** Per unit. */
  readonly price: number;
  /** Account currency, including fees in units at the price. */
  readonly fee: number;
  /** Nothing of the order was filled before. */
  readonly isFirst: boolean;
}

/** Orders that were sent to the venue. */
export class SentOrders {
  /** By id of the order, oldest first. */
  readonly byId = new Map<number, SentOrder>();
  /** Units of each instrument that the venue has kept as fees. */
  readonly feeUnits: number[];

  constructor(instruments: number) {
    this.feeUnits = Array.from({ length: instruments }, () => 0);
  }

  add(order: WorkingOrder, step: number, collar: number): void {
    order.isSent = true;
    this.byId.set(order.id, {
      order,
      step,
      collar,
      isReported: false,
      cost: 0,
      fee: 0,
      feeUnits: 0,
      corrections: 0,
      trade: undefined,
    });
  }

  /** Removes an order that has not left the process yet. */
  remove(order: WorkingOrder): void {
    order.isSent = false;
    this.byId.delete(order.id);
  }

  /**
   * Adds a report to the sums of its order. Returns the change of the account, if there is one.
   * Sums only move away from 0, so reports may be late, repeated and in any order. After a
   * correction, reports that do not contain it are ignored.
   *
   * @throws RangeError for an order that was not sent, or for invalid numbers.
   */
  take(report: VenueReport): { readonly sent: SentOrder; readonly change?: ReportedChange } {
    const sent = this.byId.get(report.order);
    if (sent === undefined) {
      throw new RangeError(`this session has sent no order ${report.order} to the venue`);
    }
    checkNumbers(report);
    const { order } = sent;
    const { corrections = 0 } = report;
    sent.isReported = true;
    if (corrections < sent.corrections) return { sent };
    const isCorrection = corrections > sent.corrections;
    const sum = (known: number, reported: number): number =>
      isCorrection ? reported : fartherFrom0(known, reported);
    const filled = sum(order.filled, report.filled);
    const cost = sum(sent.cost, report.cost);
    const fee = sum(sent.fee, report.fee);
    const feeUnits = sum(sent.feeUnits, report.fee_units);
    const sign = signOf(order);
    const units = filled - order.filled;
    const paid = cost - sent.cost;
    const charged = fee - sent.fee;
    const quantity = sign * units - (feeUnits - sent.feeUnits);
    // An amount without units belongs to the earlier fills.
    const price = units !== 0 ? paid / units : filled === 0 ? 0 : cost / filled;
    const isFill = units > 0 && !isCorrection;
    const isFirst = order.filled === 0;
    this.feeUnits[order.instrument.index]! += feeUnits - sent.feeUnits;
    order.filled = filled;
    sent.corrections = corrections;
    sent.cost = cost;
    sent.fee = fee;
    sent.feeUnits = feeUnits;
    // Fees in units may offset a correction of the filled sum, so that the account does not change.
    if (!isFill && quantity === 0 && paid === 0 && charged === 0) return { sent };
    // Rounding of the price must not change the total amount of cash.
    const total = sign * paid + charged - quantity * price;
    const kind = isCorrection ? 'correction' : isFill ? 'fill' : 'fee';
    return { sent, change: { kind, quantity, price, fee: total, isFirst } };
  }
}

/** Why the order ended, according to the final report of the venue. */
export function endReason(
  { status, reason }: VenueReport,
  { order, collar }: SentOrder,
): OrderReason {
  const { timeInForce, type, pendingCancel } = order;
  const known = ORDER_REASONS.find((one) => one === reason);
  if (status === 'rejected') return known ?? 'refused_by_venue';
  const isImmediate = timeInForce === 'ioc' || timeInForce === 'fok';
  const isCollared = type === 'market' && !Number.isNaN(collar);
  if (isCollared) return pendingCancel ?? known ?? 'price_collar_bps';
  if (status === 'expired') {
    return known ?? (isImmediate ? 'not_filled_at_once' : 'expired_at_venue');
  }
  return pendingCancel ?? known ?? (isImmediate ? 'not_filled_at_once' : 'canceled_by_venue');
}

/** Compares magnitudes, because fees are negative if they are rebates. */
function fartherFrom0(known: number, reported: number): number {
  return Math.abs(reported) > Math.abs(known) ? reported : known;
}

function checkNumbers(report: VenueReport): void {
  for (const name of ['filled', 'cost', 'fee', 'fee_units', 'corrections', 'time'] as const) {
    const value = report[name] ?? 0;
    const isMoney = name === 'fee' || name === 'fee_units';
    // 8.64e15 ms is the last time that a `Date` can represent.
    if (!(Math.abs(value) <= 8.64e15) || (!isMoney && value < 0)) {
      throw new RangeError(`report of order ${report.order}: ${name} must not be ${value}`);
    }
  }
}
