import { isoTime } from '../base/iso-time.ts';
import {
  ORDER_REASONS,
  ORDER_TYPES,
  TIMES_IN_FORCE,
  type ExitPrice,
  type Order,
  type OrderReason,
  type OrderType,
  type TimeInForce,
} from './orders/order.ts';
import { EngineMemory } from './memory.ts';
import { Rows, type RowsData } from './number-rows.ts';
import type { Booking, Portfolio } from './portfolio.ts';

/** Units held and cash after a booking. */
type Balance = { readonly position: number; readonly cash: number };

/** Event of an order or of its account. `events.ndjson` has one per line, in order of `seq`. */
export type OrderEvent = {
  /** Sequence number from 1, which orders events. */
  readonly seq: number;
  /** Opening instant of the bar, or time of the venue's report; RFC 3339 UTC. */
  readonly time: string;
  readonly order: number;
  readonly symbol: string;
} & (
  | {
      readonly kind: 'order.submitted';
      readonly side: 'buy' | 'sell';
      readonly type: OrderType;
      readonly time_in_force: TimeInForce;
      readonly quantity?: number;
      readonly weight?: number;
      readonly limit?: number;
      readonly stop?: number;
      readonly trail?: ExitPrice;
      readonly take_profit?: ExitPrice;
      readonly stop_loss?: ExitPrice;
      readonly post_only?: true;
      readonly reduce_only?: true;
      readonly oco_group?: number;
      readonly parent?: number;
    }
  | ({
      readonly kind: 'order.filled';
      readonly side: 'buy' | 'sell';
      readonly quantity: number;
      /** Slippage included. */
      readonly price: number;
      /** Price before slippage, which lies within the bar; at a venue, the same as `price`. */
      readonly reference: number;
      readonly fee: number;
      /** Cost of slippage, account currency. */
      readonly slippage: number;
    } & Balance)
  | { readonly kind: 'order.triggered' }
  | {
      readonly kind: 'order.canceled' | 'order.expired' | 'order.rejected' | 'order.denied';
      readonly reason: OrderReason;
    }
  | { readonly kind: 'account.margin_call'; readonly equity: number; readonly required: number }
  | {
      /** All further orders are denied, because too many like this one were executed. */
      readonly kind: 'account.latched';
      readonly control: 'repeated_execution';
      readonly side: 'buy' | 'sell';
      /** Number of orders executed within `seconds`. */
      readonly count: number;
      readonly seconds: number;
    }
  /** The venue is asked to cancel the order, but may still fill it. */
  | { readonly kind: 'order.pending_cancel'; readonly reason: OrderReason }
  | ({
      /** A venue has undone or corrected trades of the order. */
      readonly kind: 'order.corrected';
      /** Change of the position, signed units, and its price. */
      readonly quantity: number;
      readonly price: number;
      /** Fees and changes of the price of the remaining units, account currency. */
      readonly fee: number;
    } & Balance)
  | ({
      /** The venue has reported a fee after its fill. */
      readonly kind: 'order.fee';
      /** Units taken as a fee; above 0 if given back. */
      readonly quantity: number;
      /** Account currency, including the value of the units. */
      readonly fee: number;
    } & Balance)
);

/** Codes in place 0 of a row. */
export const KINDS = [
  'order.submitted',
  'order.filled',
  'order.triggered',
  'order.canceled',
  'order.expired',
  'order.rejected',
  'order.denied',
  'account.margin_call',
  'order.pending_cancel',
  'order.fee',
  'account.latched',
  'order.corrected',
] as const;
type Kind = (typeof KINDS)[number];

/** Numbers in a row. */
export const WIDTH = 12;
/** Bits of a request. The next four bits are the order type, and the four above them the time in force. */
export const BUY = 1;
export const POST_ONLY = 2;
export const REDUCE_ONLY = 4;
export const TARGET = 8;

/** A journal as plain data, for another thread. */
export interface JournalData {
  readonly symbols: readonly string[];
  readonly rows: RowsData;
}

/** Read side of a journal. */
export interface JournalRows {
  readonly count: number;
  readonly data: JournalData;
  /** Events with a sequence number above `seq`; all by default. */
  events(seq?: number): Generator<OrderEvent>;
}

/**
 * Order events as rows of numbers. Objects and text are created only when they are read: creating
 * them while the engine runs costs more than the simulation itself.
 */
export class Journal implements JournalRows {
  readonly #symbols: readonly string[];
  readonly #rows: Rows;

  constructor(symbols: readonly string[], memory: EngineMemory, rows = new Rows(WIDTH, memory)) {
    this.#symbols = symbols;
    this.#rows = rows;
  }

  static read({ symbols, rows }: JournalData): JournalRows {
    return new Journal(symbols, new EngineMemory(), Rows.from(WIDTH, rows));
  }

  static empty(symbols: readonly string[]): JournalRows {
    return Journal.read({ symbols, rows: { chunks: [], count: 0 } });
  }

  /** Joins journals of consecutive runs over the same symbols; order numbers continue from run to run. */
  static join(journals: readonly JournalRows[]): JournalRows {
    const joined = new Journal(journals[0]?.data.symbols ?? [], new EngineMemory());
    let before = 0;
    for (const { data } of journals) {
      let orders = 0;
      for (const row of Rows.from(WIDTH, data.rows).after(0)) {
        const at = joined.#rows.append();
        const { chunk } = joined.#rows;
        chunk.set(row, at);
        const order = row[2]!;
        orders = Math.max(orders, order);
        if (order > 0) chunk[at + 2] = before + order;
        const hasParent = KINDS[row[0]!] === 'order.submitted' && row[11] !== 0;
        if (hasParent) chunk[at + 11] = before + row[11]!;
      }
      before += orders;
    }
    return joined;
  }

  get data(): JournalData {
    return { symbols: this.#symbols, rows: this.#rows.data };
  }

  get count(): number {
    return this.#rows.count;
  }

  /** Appends a row and writes its head. Returns its offset in the current chunk of the rows. */
  #row(kind: Kind, time: number, order: number, instrument: number): number {
    const at = this.#rows.append();
    const { chunk } = this.#rows;
    chunk[at] = KINDS.indexOf(kind);
    chunk[at + 1] = time;
    chunk[at + 2] = order;
    chunk[at + 3] = instrument;
    return at;
  }

  submitted(time: number, order: Readonly<Order>): void {
    const at = this.#row('order.submitted', time, order.id, order.instrument.index);
    const { chunk } = this.#rows;
    const isTarget = !Number.isNaN(order.weight);
    chunk[at + 4] =
      (order.side === 'buy' ? BUY : 0) |
      (order.postOnly ? POST_ONLY : 0) |
      (order.reduceOnly ? REDUCE_ONLY : 0) |
      (isTarget ? TARGET : 0) |
      (ORDER_TYPES.indexOf(order.type) << 4) |
      (TIMES_IN_FORCE.indexOf(order.timeInForce) << 8);
    chunk[at + 5] = isTarget ? order.weight : order.quantity;
    chunk[at + 6] = order.limit;
    chunk[at + 7] = order.type === 'trailing_stop' ? encodeExit(order.trail) : order.stop;
    chunk[at + 8] = encodeExit(order.takeProfit);
    chunk[at + 9] = encodeExit(order.stopLoss);
    chunk[at + 10] = order.ocoGroup;
    chunk[at + 11] = order.parent;
  }

  /** Records a booking. Call it after the portfolio has booked it. */
  booked(
    kind: 'order.filled' | 'order.fee' | 'order.corrected',
    { id }: Readonly<Order>,
    booking: Booking,
    { positions, cash }: Portfolio,
  ): void {
    const at = this.#row(kind, booking.time, id, booking.instrument);
    const { chunk } = this.#rows;
    chunk[at + 4] = booking.quantity;
    chunk[at + 5] = booking.price;
    chunk[at + 6] = booking.reference;
    chunk[at + 7] = booking.fee;
    chunk[at + 8] = booking.slippage;
    chunk[at + 9] = positions[booking.instrument]!;
    chunk[at + 10] = cash;
  }

  triggered(time: number, order: Readonly<Order>): void {
    this.#row('order.triggered', time, order.id, order.instrument.index);
  }

  /** Records that an order has ended, or that the venue is asked to cancel it. */
  ended(
    kind: `order.${'canceled' | 'expired' | 'rejected' | 'denied' | 'pending_cancel'}`,
    time: number,
    order: Readonly<Order>,
    reason: OrderReason,
  ): void {
    const at = this.#row(kind, time, order.id, order.instrument.index);
    this.#rows.chunk[at + 4] = ORDER_REASONS.indexOf(reason);
  }

  marginCall(time: number, equity: number, required: number): void {
    const at = this.#row('account.margin_call', time, 0, -1);
    this.#rows.chunk[at + 4] = equity;
    this.#rows.chunk[at + 5] = required;
  }

  latched(time: number, order: Readonly<Order>, count: number, seconds: number): void {
    const at = this.#row('account.latched', time, order.id, order.instrument.index);
    const { chunk } = this.#rows;
    chunk[at + 4] = order.side === 'buy' ? BUY : 0;
    chunk[at + 5] = count;
    chunk[at + 6] = seconds;
  }

  *events(seq = 0): Generator<OrderEvent> {
    for (const row of this.#rows.after(seq)) {
      seq += 1;
      yield this.#decode(seq, row);
    }
  }

  #decode(seq: number, row: Float64Array): OrderEvent {
    const kind = KINDS[row[0]!]!;
    const time = isoTime(row[1]!);
    const order = row[2]!;
    const symbol = this.#symbols[row[3]!] ?? '';
    switch (kind) {
      case 'order.submitted':
        return submittedEvent({ seq, time, kind, order, symbol }, row);
      case 'order.triggered':
        return { seq, time, kind, order, symbol };
      case 'order.filled':
        return {
          seq,
          time,
          kind,
          order,
          symbol,
          side: row[4]! > 0 ? 'buy' : 'sell',
          quantity: Math.abs(row[4]!),
          price: row[5]!,
          reference: row[6]!,
          fee: row[7]!,
          slippage: row[8]!,
          position: row[9]!,
          cash: row[10]!,
        };
      case 'order.fee': {
        const balance = { position: row[9]!, cash: row[10]! };
        return { seq, time, kind, order, symbol, quantity: row[4]!, fee: row[7]!, ...balance };
      }
      case 'order.corrected': {
        const [quantity, price, fee] = [row[4]!, row[5]!, row[7]!];
        const balance = { position: row[9]!, cash: row[10]! };
        return { seq, time, kind, order, symbol, quantity, price, fee, ...balance };
      }
      case 'account.margin_call':
        return { seq, time, kind, order, symbol, equity: row[4]!, required: row[5]! };
      case 'account.latched': {
        const side = row[4] === BUY ? 'buy' : 'sell';
        const repeated = {
          control: 'repeated_execution',
          side,
          count: row[5]!,
          seconds: row[6]!,
        } as const;
        return { seq, time, kind, order, symbol, ...repeated };
      }
      case 'order.canceled':
      case 'order.expired':
      case 'order.rejected':
      case 'order.denied':
      case 'order.pending_cancel':
        return { seq, time, kind, order, symbol, reason: ORDER_REASONS[row[4]!]! };
      default:
        return kind satisfies never;
    }
  }
}

type SubmittedEvent = Extract<OrderEvent, { readonly kind: 'order.submitted' }>;
type Head = Pick<SubmittedEvent, 'seq' | 'time' | 'kind' | 'order' | 'symbol'>;

/** The fields are added in the order of `OrderEvent`, and those that do not apply are absent. */
function submittedEvent({ seq, time, kind, order, symbol }: Head, row: Float64Array): OrderEvent {
  const bits = row[4]!;
  const type = ORDER_TYPES[(bits >> 4) & 15]!;
  const event: { -readonly [K in keyof SubmittedEvent]: SubmittedEvent[K] } = {
    seq,
    time,
    kind,
    order,
    symbol,
    side: (bits & BUY) !== 0 ? 'buy' : 'sell',
    type,
    time_in_force: TIMES_IN_FORCE[(bits >> 8) & 15]!,
  };
  if ((bits & TARGET) !== 0) event.weight = row[5]!;
  else event.quantity = row[5]!;
  if (!Number.isNaN(row[6]!)) event.limit = row[6]!;
  if (!Number.isNaN(row[7]!)) {
    if (type === 'trailing_stop') event.trail = decodeExit(row[7]!);
    else event.stop = row[7]!;
  }
  if (!Number.isNaN(row[8]!)) event.take_profit = decodeExit(row[8]!);
  if (!Number.isNaN(row[9]!)) event.stop_loss = decodeExit(row[9]!);
  if ((bits & POST_ONLY) !== 0) event.post_only = true;
  if ((bits & REDUCE_ONLY) !== 0) event.reduce_only = true;
  if (row[10] !== 0) event.oco_group = row[10]!;
  if (row[11] !== 0) event.parent = row[11]!;
  return event;
}

// Prices are above 0, so a negative number can stand for a share of the price.
function encodeExit(exit: ExitPrice | undefined): number {
  if (exit === undefined) return Number.NaN;
  return typeof exit === 'number' ? exit : -exit.percent;
}

function decodeExit(code: number): ExitPrice {
  return code < 0 ? { percent: -code } : code;
}
