import type { Order } from './order.ts';
import type { WorkingOrder } from './working-order.ts';

const INSPECT = Symbol.for('nodejs.util.inspect.custom');

/** Fields of an order, in the order of its JSON. */
const FIELDS = [
  'id',
  'instrument',
  'side',
  'type',
  'timeInForce',
  'quantity',
  'weight',
  'limit',
  'stop',
  'trail',
  'postOnly',
  'reduceOnly',
  'takeProfit',
  'stopLoss',
  'ocoGroup',
  'parent',
  'status',
  'reason',
  'filled',
  'triggered',
  'session',
] as const satisfies readonly (keyof Order)[];

/** Read-only view of an order, for strategies: a getter for each field. */
class OrderView {
  readonly #order: Order;

  constructor(order: Order) {
    this.#order = order;
    // An own property that a strategy adds, such as `id`, would shadow the getter.
    Object.preventExtensions(this);
  }

  /** Current fields of the order without those that are not set; `instrument` is the symbol. */
  toJSON(): Record<string, unknown> {
    const view = this as unknown as Order;
    const { instrument, ...fields } = Object.fromEntries(FIELDS.map((name) => [name, view[name]]));
    const set = Object.entries(fields).filter(([, value]) => !Number.isNaN(value));
    return { symbol: (instrument as Order['instrument']).symbol, ...Object.fromEntries(set) };
  }

  /** Representation for `console.log`. */
  [INSPECT](): Record<string, unknown> {
    return this.toJSON();
  }

  static {
    for (const name of FIELDS) {
      Object.defineProperty(OrderView.prototype, name, {
        get(this: OrderView) {
          const value = this.#order[name];
          // The engine begins `filled` with −0.
          return Object.is(value, -0) ? 0 : value;
        },
      });
    }
  }
}

Object.freeze(OrderView.prototype);
Object.freeze(OrderView);

/** The single view of an order, so that strategies can compare orders by identity. */
export function viewOf(order: WorkingOrder): Order {
  return (order.view ??= new OrderView(order) as unknown as Order);
}
