import fc from 'fast-check';
import type { Engine } from '../../src/engine/engine.ts';
import type { SentOrder } from '../../src/engine/execution/sent-orders.ts';
import type { VenueReport } from '../../src/engine/execution/venue-protocol.ts';

export const REPLY_KINDS = [
  'silence',
  'open',
  'part',
  'fill',
  'reject',
  'cancel',
  'expire',
  'duplicate',
  'late',
  'correct',
  'fee',
] as const;

/** Reasons for the end of an order; one is no machine code. */
const REASONS = [
  'text for people',
  'would_trigger',
  'not_fillable',
  'invalid_order',
  'market_closed',
  'unknown_symbol',
  'not_permitted',
  'not_at_venue',
] as const;

/** Action of a venue on one order between two steps. */
export interface Reply {
  readonly kind: (typeof REPLY_KINDS)[number];
  /** Part of what is left that is filled; 1 fills it all. */
  readonly share: number;
  /** Added to the price of the order, or else to the last close. */
  readonly shift: number;
  /** Part of a fill that is taken as a fee in units. */
  readonly feeShare: number;
  readonly reason: string | undefined;
}

const fills = { weight: 5, arbitrary: fc.constantFrom('part' as const, 'fill' as const) };

export const replies: fc.Arbitrary<Reply[]> = fc.array(
  fc.record({
    kind: fc.oneof(fills, { weight: 7, arbitrary: fc.constantFrom(...REPLY_KINDS) }),
    share: fc.constantFrom(0.1, 0.25, 0.5),
    shift: fc.constantFrom(-1, 0, 0, 0.5),
    feeShare: fc.constantFrom(0, 0, 0, 0.001, 0.01),
    reason: fc.constantFrom(undefined, undefined, ...REASONS),
  }),
  { minLength: 5, maxLength: 30 },
);

/** A venue whose answers are drawn. Its reports may come twice, late, and after corrections. */
export class SimulatedVenue {
  readonly #engine: Engine;
  readonly #replies: readonly Reply[];
  readonly #reports = new Map<number, VenueReport[]>();
  #replied = 0;
  /** Number of reports by kind of reply. */
  readonly counts: Partial<Record<Reply['kind'], number>> = {};

  constructor(engine: Engine, drawn: readonly Reply[]) {
    this.#engine = engine;
    this.#replies = drawn;
  }

  /** Reports on every order that was sent to it, the ended ones included. */
  work(time: number): void {
    for (const sent of Array.from(this.#engine.venue!.sent.values())) {
      const reply = this.#replies[this.#replied++ % this.#replies.length]!;
      const report = this.#reportOf(sent, reply, time + 1000 * this.#replied);
      if (report === undefined) continue;
      this.counts[reply.kind] = (this.counts[reply.kind] ?? 0) + 1;
      this.#engine.venue!.report(report);
    }
  }

  #reportOf(sent: SentOrder, reply: Reply, time: number): VenueReport | undefined {
    const { id } = sent.order;
    const past = this.#reports.get(id) ?? [];
    const last = past.at(-1);
    if (reply.kind === 'duplicate') return last;
    if (reply.kind === 'late') return past[Math.floor(past.length / 2)];
    const isOpen = last === undefined || last.status === 'open';
    const report = isOpen ? advanced(sent, last, reply, time) : amended(last, reply, time);
    if (report !== undefined) this.#reports.set(id, [...past, report]);
    return report;
  }
}

/** The next report of an order that works. */
function advanced(
  { order }: SentOrder,
  last: VenueReport | undefined,
  reply: Reply,
  time: number,
): VenueReport | undefined {
  const before = last ?? {
    order: order.id,
    client_order_id: `${order.id}`,
    status: 'open' as const,
    filled: 0,
    cost: 0,
    fee: 0,
    fee_units: 0,
    time,
  };
  const report = { ...before, time };
  const reason = reply.reason === undefined ? {} : { reason: reply.reason };
  if (order.pendingCancel !== undefined && reply.kind !== 'fill' && reply.kind !== 'part') {
    return { ...report, status: 'canceled' };
  }
  switch (reply.kind) {
    case 'silence':
      return undefined;
    case 'reject':
      return before.filled > 0 ? report : { ...report, status: 'rejected', ...reason };
    case 'cancel':
      return { ...report, status: 'canceled', ...reason };
    case 'expire':
      return { ...report, status: 'expired', ...reason };
    case 'part':
    case 'fill':
      return filled(order, report, reply);
    case 'correct':
    case 'fee':
      return amended(report, reply, time);
    case 'open':
    case 'duplicate':
    case 'late':
      return report;
    default:
      return reply.kind satisfies never;
  }
}

function filled(order: SentOrder['order'], report: VenueReport, reply: Reply): VenueReport {
  const isWhole = reply.kind === 'fill';
  const left = Math.max(0, order.quantity - report.filled);
  const units = isWhole ? left : left * reply.share;
  const price = Number.isNaN(order.limit) ? order.instrument.close + reply.shift : order.limit;
  return {
    ...report,
    status: isWhole ? 'filled' : 'open',
    filled: isWhole ? order.quantity : report.filled + units,
    cost: report.cost + units * price,
    fee: report.fee + (reply.feeShare === 0 ? units * price * 0.001 : 0),
    fee_units: report.fee_units + (order.side === 'buy' ? units * reply.feeShare : 0),
  };
}

/** A report that undoes or reprices trades, or adds fees; undefined for any other reply. */
function amended(last: VenueReport, reply: Reply, time: number): VenueReport | undefined {
  if (reply.kind === 'fee') {
    const units = last.filled * reply.feeShare;
    return { ...last, fee: last.fee + 0.25, fee_units: last.fee_units + units, time };
  }
  if (reply.kind !== 'correct' || last.filled === 0) return undefined;
  const kept = reply.shift === 0 ? 1 - reply.share : 1;
  return {
    ...last,
    filled: last.filled * kept,
    cost: last.cost * kept + last.filled * kept * (kept === 1 ? reply.shift : 0),
    fee_units: last.fee_units * kept,
    corrections: (last.corrections ?? 0) + 1,
    time,
  };
}
