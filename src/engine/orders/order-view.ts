import type { Instrument } from '../instrument.ts';
import type {
  ExitPrice,
  Order,
  OrderReason,
  OrderStatus,
  OrderType,
  TimeInForce,
} from './order.ts';
import type { WorkingOrder } from './working-order.ts';

const INSPECT = Symbol.for('nodejs.util.inspect.custom');

/** Read-only view of an order, for strategies. */
class OrderView implements Order {
  readonly #order: Order;

  constructor(order: Order) {
    this.#order = order;
    // A property of the strategy's own, such as another id, would stand before what is read here.
    Object.preventExtensions(this);
  }

  get id(): number {
    return this.#order.id;
  }

  get instrument(): Instrument {
    return this.#order.instrument;
  }

  get side(): 'buy' | 'sell' {
    return this.#order.side;
  }

  get type(): OrderType {
    return this.#order.type;
  }

  get timeInForce(): TimeInForce {
    return this.#order.timeInForce;
  }

  get quantity(): number {
    return this.#order.quantity;
  }

  get weight(): number {
    return this.#order.weight;
  }

  get limit(): number {
    return this.#order.limit;
  }

  get stop(): number {
    return this.#order.stop;
  }

  get trail(): ExitPrice | undefined {
    return this.#order.trail;
  }

  get postOnly(): boolean {
    return this.#order.postOnly;
  }

  get reduceOnly(): boolean {
    return this.#order.reduceOnly;
  }

  get takeProfit(): ExitPrice | undefined {
    return this.#order.takeProfit;
  }

  get stopLoss(): ExitPrice | undefined {
    return this.#order.stopLoss;
  }

  get ocoGroup(): number {
    return this.#order.ocoGroup;
  }

  get parent(): number {
    return this.#order.parent;
  }

  get status(): OrderStatus {
    return this.#order.status;
  }

  get reason(): OrderReason | undefined {
    return this.#order.reason;
  }

  get filled(): number {
    // The engine begins with −0.
    return this.#order.filled + 0;
  }

  get triggered(): boolean {
    return this.#order.triggered;
  }

  get session(): number {
    return this.#order.session;
  }

  /** The order's fields as they are now, its instrument as a symbol; without those that are not set. */
  toJSON(): Record<string, unknown> {
    const { instrument, ...fields } = Object.fromEntries(FIELDS.map((name) => [name, this[name]]));
    const set = Object.entries(fields).filter(([, value]) => !Number.isNaN(value));
    return { symbol: (instrument as Instrument).symbol, ...Object.fromEntries(set) };
  }

  /** Representation for `console.log`. */
  [INSPECT](): Record<string, unknown> {
    return this.toJSON();
  }
}

const FIELDS = Object.getOwnPropertyNames(OrderView.prototype).filter(
  (name) => name !== 'constructor' && name !== 'toJSON',
) as (keyof Order)[];

Object.freeze(OrderView.prototype);
Object.freeze(OrderView);

/** The single view of an order, so that strategies can compare orders by identity. */
export function viewOf(order: WorkingOrder): Order {
  return (order.view ??= new OrderView(order));
}
